"""Checks that a merged text says exactly what its sources say.

In any language, it may concatenate whole sources in order.

In a language with known function words (`MemoryWords.light`), a sentence may also share the beginning of
several sources ("Anna likes tea and coffee"), and a longer source may contain a shorter one ("Anna lives in
Oulu and teaches"). No word of such a sentence may affect another part of it, by negating,
limiting, counting, comparing, reporting or referring to something.

In case of doubt, the text counts as lossy, and the memories stay unchanged.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memlog.eventlog.text import normalise_width
from memlog.projector.text import stemming
from memlog.projector.text.language_files import load_languages_with_table
from memlog.projector.text.tokens import is_cjk
from memlog.service.memory.compared_text import (
    Text,
    changes_meaning,
    has_certain_words,
    is_in_dictionary,
    languages_with_fillers,
)
from memlog.service.memory.duplicates import LONGEST

_PAUSE, _END, _QUESTION = ",", ".", "?"
_STRENGTH = (_PAUSE, _END, _QUESTION)
_MARKS = {_PAUSE: ",;:()[]—،؛、", _END: ".!…。।։።", _QUESTION: "?؟՞"}
_MARK = {sign: mark for mark, signs in _MARKS.items() for sign in signs}
_OPENING = "(["
_BULLET = re.compile(r"^\s*[-–*•]\s+(?!\d)", re.MULTILINE)
_ANYWHERE = re.compile("[—،؛、。।։።؟՞…]|(?<=[^\x00-\u2fff])[,;:()!?.]|[,;:()!?.](?=[^\x00-\u2fff])")
"""Matches punctuation that needs no space beside it; other marks inside a word or number belong to it."""


class _Joining(NamedTuple):
    """The words of a language that matter for joining sentences.

    joints: conjunctions. light: function words allowed in a joined sentence. stops: all function words.
    reaching: words that affect other parts of a sentence.
    """

    joints: Collection[str] = ()
    light: Collection[str] = ()
    stops: Collection[str] = ()
    reaching: re.Pattern[str] = re.compile(".*")

    def are_independent(self, words: Iterable[str]) -> bool:
        """Whether no word affects another part of the sentence."""
        return all(
            word in (_PAUSE, _END)
            or word in self.joints
            or _has_digit(word)
            or (word.isalpha() and not self._affects_others(word.lower()))
            for word in words
        )

    def _affects_others(self, word: str) -> bool:
        plain = word.replace("ё", "е")
        is_function_word = word in self.stops or plain in self.stops
        return (
            changes_meaning(plain)
            or self.reaching.fullmatch(plain) is not None
            or (is_function_word and word not in self.light)
        )


def describe_loss(sources: Sequence[str], text: str) -> str | None:
    """Describe what `text` omits from `sources` or adds to them, such as "a number"; None if neither."""
    language = _find_joining_words(" ".join([*sources, text]))
    told = [_split_words(source, language) for source in sources]
    merged = _split_words(text, language)
    used = _decompose_into_sources(merged, told, language)
    order = [told.index(each) for each in used]
    is_whole = all(each in used or _is_within_longer_source(each, used, language) for each in told)
    if used and is_whole and order == sorted(order):
        return None
    lost = {word.lower() for words in told for word in words} - {*map(str.lower, merged), *_STRENGTH}
    if lost:
        return _describe_number_or_word(lost)
    return _describe_unsaid(merged, told, language) or "what belongs together"


def describe_additions(sources: Sequence[str], text: str) -> str | None:
    """Describe what `text` adds to `sources`, such as "a number that nobody said"; None if nothing.

    Function words that do not reverse the meaning may be added.
    """
    language = _find_joining_words(" ".join([*sources, text]))
    texts = [
        word
        for word in _split_words(text, language)
        if word.lower() not in language.stops or changes_meaning(word.lower().replace("ё", "е"))
    ]
    return _describe_unsaid(texts, [_split_words(source, language) for source in sources], language)


def _describe_unsaid(texts: Sequence[str], told: Sequence[list[str]], language: _Joining) -> str | None:
    known = {word.lower() for words in told for word in words}
    unsaid = {*map(str.lower, texts)} - known - {*_STRENGTH, *language.joints}
    return f"{_describe_number_or_word(unsaid)} that nobody said" if unsaid else None


def _describe_number_or_word(words: Iterable[str]) -> str:
    return "a number" if any(map(_has_digit, words)) else "a word"


def _find_joining_words(text: str) -> _Joining:
    """Return the words that matter for joining sentences in a text's language; none if it is unknown."""
    name = (Text(text).language or _guess_language(text)) if len(text) <= LONGEST else None
    if name is None:
        return _Joining()
    words = load_languages_with_table("memories")[name].memories
    if not words.light:
        return _Joining()
    reaching = "|".join(re.escape(word).replace(r"\*", r"\w*") for word in words.reaching.split())
    return _Joining(
        joints=words.joints.split(),
        light=words.light.split(),
        stops=stemming.stop_words().get(name, frozenset()),
        reaching=re.compile(reaching),
    )


def _guess_language(text: str) -> str | None:
    """Return the likely language of a short text; English only if the dictionary has all its words."""
    found = stemming.detect_language(text)
    if found not in languages_with_fillers() or not has_certain_words(text.lower(), found):
        return None
    is_listed = found != stemming.ENGLISH or all(map(is_in_dictionary, re.findall(r"\b[a-z]+\b", text)))
    return found if is_listed else None


def _split_words(text: str, language: _Joining) -> list[str]:
    """Return the words and punctuation marks of a text, with at most one mark between two words.

    A word includes attached characters. At the beginning of a sentence it is in lower case, unless it has
    inner capitals.
    """
    found: list[str] = []
    for word in _split_pieces(
        normalise_width(text).replace("’", "'"), is_cut=any(map(is_cjk, language.joints))
    ):
        if word in _STRENGTH:
            if found and found[-1] in _STRENGTH:
                found[-1] = max(found[-1], word, key=_STRENGTH.index)
            elif found:
                found.append(word)
        elif not found or found[-1] in (_END, _QUESTION):
            found.append(_uncapitalise(word))
        elif found[-1] == _PAUSE and word in language.joints:
            found[-1] = word
        else:
            found.append(word)
    return found[:-1] if found[-1:] in ([_PAUSE], [_END]) else found


def _split_pieces(text: str, *, is_cut: bool) -> Iterator[str]:
    """Yield the words and punctuation marks of a text.

    is_cut: whether each Chinese character is a word.
    """
    for chunk in _ANYWHERE.sub(r" \g<0> ", _BULLET.sub("", text).replace("\n", " . ")).split():
        opened = chunk.lstrip(_OPENING)
        bare = opened.rstrip("".join(_MARK))
        yield from chunk[: -len(opened)] and (_PAUSE,)
        yield from re.findall("[^\x00-\u2fff]|[\x00-\u2fff]+", bare) if is_cut else filter(None, [bare])
        yield from map(_MARK.__getitem__, opened[len(bare) :])


def _decompose_into_sources(
    text: Sequence[str], told: Sequence[list[str]], language: _Joining
) -> list[list[str]]:
    """Return the sources that make up a text; [] if it has other parts."""
    found: list[list[str]] = []
    at = 0
    while at < len(text):
        whole = [
            each
            for each in told
            if each and _part_occurs_at(each, text, at) and _sentence_ends_at(text, at + len(each))
        ]
        if whole:
            longest = max(whole, key=len)
            found.append(longest)
            at += len(longest)
        else:
            end = next((n for n in range(at, len(text)) if text[n] in (_END, _QUESTION)), len(text))
            joined = _match_joined(text[at:end], told, language)
            if not joined or not _sentence_ends_at(text, end):
                return []
            found += joined
            at = end
        at += at < len(text) and text[at] == _END
    return found


def _part_occurs_at(part: Sequence[str], text: Sequence[str], at: int) -> bool:
    return list(text[at : at + len(part)]) == list(part)


def _sentence_ends_at(text: Sequence[str], at: int) -> bool:
    """Whether a sentence ends at `at`: the text ends, a full stop follows, or a question mark precedes."""
    return at == len(text) or text[at] == _END or text[at - 1] == _QUESTION


def _match_joined(sentence: Sequence[str], told: Sequence[list[str]], language: _Joining) -> list[list[str]]:
    """Return the sources that a sentence joins, with or without a shared beginning; [] if it joins none."""
    if not language.are_independent(sentence):
        return []
    single = [each for each in told if _END not in each and _QUESTION not in each]
    for length in range(len(sentence) - 1, -1, -1):
        head = list(sentence[:length])
        tails = [each[length:] for each in single if each[:length] == head and len(each) > length]
        found = list(_match_tails(sentence[length:], tails, language.joints))
        if sum(map(len, found)) + len(found) - 1 != len(sentence) - length or len(found) < 2:
            continue
        counts = {any(map(_has_digit, tail)) for tail in found}
        if len(counts) == 1 and (not head or not any(map(_continues_after_name, found[:-1]))):
            return [[*head, *tail] for tail in found]
    return []


def _match_tails(
    words: Sequence[str], tails: Sequence[list[str]], joints: Collection[str]
) -> Iterator[list[str]]:
    """Yield the tails that make up `words` in sequence, separated by joints."""
    at = 0
    while at < len(words):
        # A word that began a sentence may have regained its capital.
        here = words if at == 0 else [*words[:at], _uncapitalise(words[at]), *words[at + 1 :]]
        fitting = [
            tail
            for tail in tails
            if (_part_occurs_at(tail, words, at) or _part_occurs_at(tail, here, at))
            and (at + len(tail) == len(words) or _is_joint(words[at + len(tail)], joints))
        ]
        if not fitting:
            return
        longest = max(fitting, key=len)
        yield longest
        at += len(longest) + 1


def _is_within_longer_source(part: list[str], others: Iterable[list[str]], language: _Joining) -> bool:
    """Whether a longer source contains `part` before its end, a linking word or a detail ("in Oulu")."""
    if not part or _has_digit(part[-1]):
        return False
    for other in others:
        for at in range(len(other) - len(part) + 1):
            begins = at == 0 or other[at - 1] == _END
            behind = at + len(part)
            # A light word before a name or a number adds a detail; "in training" changes the meaning.
            following = other[behind + 1 : behind + 2]
            is_precise = any(word != word.lower() or _has_digit(word) for word in following)
            goes_on = (
                _sentence_ends_at(other, behind)
                or _is_joint(other[behind], language.joints)
                or (other[behind] in language.light and is_precise)
            )
            rest = [*other[:at], *other[behind:]]
            if (
                begins
                and goes_on
                and _part_occurs_at(part, other, at)
                and language.are_independent([*part, *rest])
            ):
                return True
    return False


def _is_joint(word: str, joints: Collection[str]) -> bool:
    return word == _PAUSE or word in joints


def _continues_after_name(part: Sequence[str]) -> bool:
    """Whether a part continues after a name, so that the next part may be about that name."""
    capitals = [word != word.lower() for word in part]
    return any(before and not behind for before, behind in pairwise(capitals))


def _has_digit(word: str) -> bool:
    return any(map(str.isnumeric, word))


def _uncapitalise(word: str) -> str:
    return word.lower() if word[1:] == word[1:].lower() else word
