"""Whether a merged text says what its sources say, word for word.

It does where it puts its sources one after another in their order, each whole. That holds in any language.

In a language whose words memlog knows (`MemoryWords.light`), a sentence may also give the beginning of
several sources once ("Anna likes tea and coffee"), and a source may stand within a longer one ("Anna lives
in Oulu and teaches"). No word of such a sentence may reach from one part into another: none that denies,
limits, counts, compares, reports or refers to something.

In doubt something is lost, and the memories stay as they are.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memlog.eventlog.text import same_width
from memlog.projector.text import stemming
from memlog.projector.text.language_files import languages
from memlog.projector.text.tokens import is_cjk
from memlog.service.memory.compared_text import Text, is_certain, is_known, turns, understood
from memlog.service.memory.duplicates import LONGEST

_PAUSE, _END, _QUESTION = ",", ".", "?"
_STRENGTH = (_PAUSE, _END, _QUESTION)
_MARKS = {_PAUSE: ",;:()[]—،؛、", _END: ".!…。।։።", _QUESTION: "?؟՞"}
_MARK = {sign: mark for mark, signs in _MARKS.items() for sign in signs}
_OPENING = "(["
_BULLET = re.compile(r"^\s*[-–*•]\s+(?!\d)", re.MULTILINE)
_ANYWHERE = re.compile("[—،؛、。।։።؟՞…]|(?<=[^\x00-\u2fff])[,;:()!?.]|[,;:()!?.](?=[^\x00-\u2fff])")
"""Marks without a space beside them; within a word or a number, others belong to it."""


class _Joining(NamedTuple):
    """The words with which sentences are joined.

    light: the function words that may be in a joined one.
    """

    joints: Collection[str] = ()
    light: Collection[str] = ()
    stops: Collection[str] = ()
    reaching: re.Pattern[str] = re.compile(".*")

    def keeps_apart(self, words: Iterable[str]) -> bool:
        """Whether none of some words reaches beyond the part of a sentence that it stands in."""
        return all(
            word in (_PAUSE, _END)
            or word in self.joints
            or _is_number(word)
            or (word.isalpha() and not self._reaches(word.lower()))
            for word in words
        )

    def _reaches(self, word: str) -> bool:
        plain = word.replace("ё", "е")
        is_function_word = word in self.stops or plain in self.stops
        return (
            turns(plain)
            or self.reaching.fullmatch(plain) is not None
            or (is_function_word and word not in self.light)
        )


def loss(sources: Sequence[str], text: str) -> str | None:
    """Name what `text` loses of `sources`, or makes up, such as "a number"; None where nothing."""
    language = _language_of(" ".join([*sources, text]))
    told = [_words(source, language) for source in sources]
    merged = _words(text, language)
    used = _parts(merged, told, language)
    order = [told.index(each) for each in used]
    is_whole = all(each in used or _is_within(each, used, language) for each in told)
    if used and is_whole and order == sorted(order):
        return None
    lost = {word.lower() for words in told for word in words} - {*map(str.lower, merged), *_STRENGTH}
    if lost:
        return _kind_of(lost)
    return _unsaid(merged, told, language) or "what belongs together"


def made_up(sources: Sequence[str], text: str) -> str | None:
    """Name what `text` has and none of `sources` has, such as "a number that nobody said".

    It may have function words of its own that turn nothing round.
    """
    language = _language_of(" ".join([*sources, text]))
    texts = [
        word
        for word in _words(text, language)
        if word.lower() not in language.stops or turns(word.lower().replace("ё", "е"))
    ]
    return _unsaid(texts, [_words(source, language) for source in sources], language)


def _unsaid(texts: Sequence[str], told: Sequence[list[str]], language: _Joining) -> str | None:
    known = {word.lower() for words in told for word in words}
    unsaid = {*map(str.lower, texts)} - known - {*_STRENGTH, *language.joints}
    return f"{_kind_of(unsaid)} that nobody said" if unsaid else None


def _kind_of(words: Iterable[str]) -> str:
    return "a number" if any(map(_is_number, words)) else "a word"


def _language_of(text: str) -> _Joining:
    """Return the language of a text; one without words where memlog does not know them."""
    name = (Text(text).language or _probable(text)) if len(text) <= LONGEST else None
    if name is None:
        return _Joining()
    words = languages("memories")[name].memories
    if not words.light:
        return _Joining()
    reaching = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in words.reaching.split())
    return _Joining(
        joints=words.joints.split(),
        light=words.light.split(),
        stops=stemming.stop_words().get(name, frozenset()),
        reaching=re.compile(reaching),
    )


def _probable(text: str) -> str | None:
    """Return the language of a text too short to detect; English if the dictionary has all its words."""
    found = stemming.language_of(text)
    if found not in understood() or not is_certain(text.lower(), found):
        return None
    is_listed = found != stemming.ENGLISH or all(map(is_known, re.findall(r"\b[a-z]+\b", text)))
    return found if is_listed else None


def _words(text: str, language: _Joining) -> list[str]:
    """Return the words and marks of a text, with one mark between two words.

    A word includes whatever sticks to it.

    A word that begins a sentence is in lower case, unless it has capitals in it.
    """
    found: list[str] = []
    for word in _pieces(same_width(text).replace("’", "'"), is_cut=any(map(is_cjk, language.joints))):
        if word in _STRENGTH:
            if found and found[-1] in _STRENGTH:
                found[-1] = max(found[-1], word, key=_STRENGTH.index)
            elif found:
                found.append(word)
        elif not found or found[-1] in (_END, _QUESTION):
            found.append(_uncapitalized(word))
        elif found[-1] == _PAUSE and word in language.joints:
            found[-1] = word
        else:
            found.append(word)
    return found[:-1] if found[-1:] in ([_PAUSE], [_END]) else found


def _pieces(text: str, *, is_cut: bool) -> Iterator[str]:
    """Yield words and marks.

    is_cut: whether each Chinese character is a word.
    """
    for chunk in _ANYWHERE.sub(r" \g<0> ", _BULLET.sub("", text).replace("\n", " . ")).split():
        opened = chunk.lstrip(_OPENING)
        bare = opened.rstrip("".join(_MARK))
        yield from chunk[: -len(opened)] and (_PAUSE,)
        yield from re.findall("[^\x00-\u2fff]|[\x00-\u2fff]+", bare) if is_cut else filter(None, [bare])
        yield from map(_MARK.__getitem__, opened[len(bare) :])


def _parts(text: Sequence[str], told: Sequence[list[str]], language: _Joining) -> list[list[str]]:
    """Return the sources that a text is composed of; none where it is not composed of sources."""
    found: list[list[str]] = []
    at = 0
    while at < len(text):
        whole = [each for each in told if each and _stands(each, text, at) and _ends(text, at + len(each))]
        if whole:
            longest = max(whole, key=len)
            found.append(longest)
            at += len(longest)
        else:
            end = next((n for n in range(at, len(text)) if text[n] in (_END, _QUESTION)), len(text))
            joined = _joined(text[at:end], told, language)
            if not joined or not _ends(text, end):
                return []
            found += joined
            at = end
        at += at < len(text) and text[at] == _END
    return found


def _stands(part: Sequence[str], text: Sequence[str], at: int) -> bool:
    return list(text[at : at + len(part)]) == list(part)


def _ends(text: Sequence[str], at: int) -> bool:
    """Whether a sentence ends at a place, without a question mark that is none of its own."""
    return at == len(text) or text[at] == _END or text[at - 1] == _QUESTION


def _joined(sentence: Sequence[str], told: Sequence[list[str]], language: _Joining) -> list[list[str]]:
    """Return the sources that a sentence joins, with one beginning or each with its own."""
    if not language.keeps_apart(sentence):
        return []
    single = [each for each in told if _END not in each and _QUESTION not in each]
    for length in range(len(sentence) - 1, -1, -1):
        head = list(sentence[:length])
        tails = [each[length:] for each in single if each[:length] == head and len(each) > length]
        found = list(_in_a_row(sentence[length:], tails, language.joints))
        if sum(map(len, found)) + len(found) - 1 != len(sentence) - length or len(found) < 2:
            continue
        counts = {any(map(_is_number, tail)) for tail in found}
        if len(counts) == 1 and (not head or not any(map(_names_another, found[:-1]))):
            return [[*head, *tail] for tail in found]
    return []


def _in_a_row(
    words: Sequence[str], tails: Sequence[list[str]], joints: Collection[str]
) -> Iterator[list[str]]:
    """Yield the parts that follow each other, with a joint between two."""
    at = 0
    while at < len(words):
        # A word that began a sentence may have got its capital back.
        here = words if at == 0 else [*words[:at], _uncapitalized(words[at]), *words[at + 1 :]]
        fitting = [
            tail
            for tail in tails
            if (_stands(tail, words, at) or _stands(tail, here, at))
            and (at + len(tail) == len(words) or _is_joint(words[at + len(tail)], joints))
        ]
        if not fitting:
            return
        longest = max(fitting, key=len)
        yield longest
        at += len(longest) + 1


def _is_within(part: list[str], others: Iterable[list[str]], language: _Joining) -> bool:
    """Whether a longer source has a sentence, with more behind it only after a joint, or as in "in Oulu"."""
    if not part or _is_number(part[-1]):
        return False
    for other in others:
        for at in range(len(other) - len(part) + 1):
            begins = at == 0 or other[at - 1] == _END
            behind = at + len(part)
            goes_on = (
                _ends(other, behind)
                or _is_joint(other[behind], language.joints)
                or (other[behind] in language.light and _is_precise(other[behind + 1 : behind + 2]))
            )
            rest = [*other[:at], *other[behind:]]
            if begins and goes_on and _stands(part, other, at) and language.keeps_apart([*part, *rest]):
                return True
    return False


def _is_joint(word: str, joints: Collection[str]) -> bool:
    return word == _PAUSE or word in joints


def _names_another(part: Sequence[str]) -> bool:
    """Whether a part goes on behind a name, so that the next part may be about that one."""
    capitals = [word != word.lower() for word in part]
    return any(before and not behind for before, behind in pairwise(capitals))


def _is_precise(words: Sequence[str]) -> bool:
    """Whether a word is a name or a number: "in training" makes another thing of what is before."""
    return any(word != word.lower() or _is_number(word) for word in words)


def _is_number(word: str) -> bool:
    return any(map(str.isnumeric, word))


def _uncapitalized(word: str) -> str:
    return word.lower() if word[1:] == word[1:].lower() else word
