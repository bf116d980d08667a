"""Classifies a text as a near duplicate of an older one, whose place it may then take.

Their normalised Levenshtein similarity must be above 0.8. That alone would merge "pays 300" with "pays 800".
So the newer text must also contain each word of the older one, in order: unchanged, with a typo, or in
another form. It may add a few words, and two clauses may change places. Numbers, names, signs and words that
change the meaning of a sentence (`meaning_words`) must be the same.

In doubt, two memories stay apart.
"""

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from functools import cache, cached_property
from itertools import groupby, islice
from typing import NamedTuple

from memlog.eventlog.content_ids import folded
from memlog.eventlog.text import nfkc
from memlog.projector.text import stemming
from memlog.projector.text.analyzer import is_cjk
from memlog.projector.text.spelling import american
from memlog.projector.text.stemming import ENGLISH, is_latin
from memlog.projector.text.tokens import vocabulary
from memlog.service.memories.meaning_words import fills, joins, turns, verb_stem

ALIKE = 0.8
"""The similarity, from 0 to 1, above which a text may be a near duplicate."""

LONGEST = 10_000
"""Characters. Longer texts are documents, and a fifth of one is too much to lose."""

_MOST_ADDED = 3
"""Words that a near duplicate may add."""

_CLAUSES = 8
"""Orders of clauses to try."""

_SHORTEST_CHINESE_CLAUSE = 4
"""Characters: 上海 and 海上 are two words, 蜜蜂 and 蜂蜜, too."""

_LETTER = r"[^\W_]"
_SIGNED_NUMBER = r"(?<!\S)[+\-−](?=\d)"
_TOKEN = re.compile(rf"(?:{_SIGNED_NUMBER})?{_LETTER}(?:{_LETTER}|[_.@/:\\,'’\-](?={_LETTER}))*|[^\w\s]")
_PARTS = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*")
_ADDRESS = re.compile(r"[_.@/\\]")
_JOINTS = "_.@/:\\,'’-"
_ENDS = re.compile(r"[.!?。！？:;\n]")
_CYRILLIC = re.compile("[а-я]+")
_SIGNS = frozenset("?%#&@*/\\")

_SHORTEST_STEM = 5
"""Letters; a shorter word with an ending is as likely a typo."""

# Letters of a word in which a typo is recognised.
_SHORTEST_TYPO = 4
_SHORTEST_TWO_TYPOS = 9
# The same without a dictionary: a letter too many or too few, and another letter.
_SHORTEST_UNKNOWN_TYPO = 5
_SHORTEST_OTHER_LETTER = 7


class Token(NamedTuple):
    """A word, a Chinese character, a number, an address or a sign.

    word: folded. is_fixed: whether near duplicates have it unchanged.
    is_cjk: whether it is a character of a script without spaces.
    """

    word: str
    is_fixed: bool
    is_cjk: bool


class Text:
    """A text of at most `LONGEST` characters, prepared for comparison."""

    def __init__(self, content: str) -> None:
        self._content = nfkc(content)

    @cached_property
    def normalised(self) -> str:
        """The text without differences of white space, case and compatible forms."""
        return folded(self._content)

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The likeliest languages of its Latin words; English by default."""
        words = filter(is_latin, re.findall(f"{_LETTER}+", self._content.lower()))
        return stemming.languages(words) or (ENGLISH,)

    @cached_property
    def tokens(self) -> list[Token]:
        """Its tokens, without spaces and punctuation."""
        stops = stemming.stop_words_in(self.languages)
        # In capitals, names look like other words.
        is_shouted = self._content.isupper()
        found: list[Token] = []
        for text, begins in _cut(self._content):
            word = text.lower().replace("ё", "е").replace("’", "'")
            is_name = (
                not is_shouted and text[0].isupper() and word not in stops and not (begins and fills(word))
            )
            is_fixed = is_name or _is_number_or_sign(text) or turns(word)
            found.append(Token(word, is_fixed, not word.isascii() and is_cjk(word)))
        return found

    @cached_property
    def joined(self) -> str:
        """Its tokens with spaces between words."""
        return _joined(self.tokens)


def similarity(older: Text, newer: Text) -> float | None:
    """The similarity, above `ALIKE` to 1, if `newer` is a near duplicate of `older`; else None."""
    for words in _orders(older.tokens, newer.tokens):
        alike = _alike(_joined(words), newer.joined)
        if alike is not None and _says_all(words, newer.tokens, newer.languages):
            return alike
    return None


def says_all(text: Text, other: Text) -> bool:
    """Whether `text` says all that `other` says, whatever their similarity."""
    return any(_says_all(words, text.tokens, text.languages) for words in _orders(other.tokens, text.tokens))


def _alike(older: str, newer: str) -> float | None:
    from rapidfuzz.distance import Levenshtein

    found = Levenshtein.normalized_similarity(older, newer, score_cutoff=ALIKE)
    return found if found > ALIKE else None


def _joined(tokens: Sequence[Token]) -> str:
    runs = groupby(tokens, key=lambda token: token.is_cjk)
    return " ".join(("" if without_spaces else " ").join(t.word for t in run) for without_spaces, run in runs)


def _cut(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces to make tokens of, and whether each begins a sentence."""
    end, begins = 0, True
    for match in _TOKEN.finditer(text):
        begins = begins or _ENDS.search(text, end, match.start()) is not None
        end = match.end()
        if not match[0][-1].isalnum():
            begins = begins or _ENDS.match(match[0]) is not None
            if _is_sign(match[0]):
                yield match[0], False
            continue
        for piece in _pieces(match[0]):
            yield piece, begins
            begins = False


def _pieces(word: str) -> Iterator[str]:
    """The numbers, addresses, words and Chinese characters in a run of letters and digits."""
    if word.isascii() and word.isalpha():
        yield word
        return
    for is_run, run in groupby(word, key=is_cjk):
        text = "".join(run)
        if is_run:
            yield from text
        elif _is_one(text):
            yield text.rstrip(_JOINTS)
        else:
            yield from _PARTS.findall(text)


def _is_one(text: str) -> bool:
    return any(map(str.isdigit, text)) or (_ADDRESS.search(text) is not None and any(map(str.isalpha, text)))


def _is_sign(character: str) -> bool:
    """Whether a character that is no letter has a meaning, as the vowels of Indian scripts have."""
    return character in _SIGNS or unicodedata.category(character)[0] in "SM"


def _is_number_or_sign(text: str) -> bool:
    if text.isalpha():
        return False
    return (
        any(map(str.isdigit, text))
        or _ADDRESS.search(text) is not None
        or _is_sign(text[0])
        or text.endswith(("'s", "’s"))
    )


def _orders(older: Sequence[Token], newer: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The older text's words as they are, then with two clauses exchanged as in the newer text."""
    yield older
    start = _alike_from(older, newer)
    end = _alike_from(older[start:][::-1], newer[start:][::-1])
    for first, last in dict.fromkeys(((0, len(older)), (start, len(older) - end))):
        if first < len(newer):
            fixed = {token.word for token in newer if token.is_fixed}
            for part in islice(_exchanged(older[first:last], newer[first].word, fixed), _CLAUSES):
                yield [*older[:first], *part, *older[last:]]


def _alike_from(one: Sequence[Token], other: Sequence[Token]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a.word != b.word), min(len(one), len(other)))


def _exchanged(part: Sequence[Token], first: str, fixed: Container[str]) -> Iterator[Sequence[Token]]:
    """Two clauses in the other order, adjacent or joined by "and", so that `first` begins them.

    fixed: the fixed words of the newer text. A capital at the beginning of one text makes no name.
    """
    for at in range(1, len(part)):
        before, here, behind = part[:at], part[at], part[at + 1 :]
        if here.word == first and _is_clause(before, fixed) and _is_clause(part[at:], fixed):
            yield [*part[at:], *before]
        is_joint = joins(here.word) and behind and behind[0].word == first
        if is_joint and min(len(before), len(behind)) > 1:
            yield [*behind, here, *before]


def _is_clause(tokens: Sequence[Token], fixed: Container[str]) -> bool:
    """Whether words may be moved: not a number, name or "not" alone, and not a single Chinese word.

    The place of a name tells who does what, but in Russian its ending does.
    """
    if all(token.is_cjk for token in tokens):
        return len(tokens) >= _SHORTEST_CHINESE_CLAUSE
    word = tokens[0].word
    is_russian_name = _CYRILLIC.fullmatch(word) is not None and not turns(word)
    return len(tokens) > 1 or not tokens[0].is_fixed or word not in fixed or is_russian_name


def _says_all(older: Sequence[Token], newer: Sequence[Token], spoken: Sequence[str]) -> bool:
    told = 0
    for before, after in _differences(older, newer):
        lost, added = _unmatched(before, after, spoken)
        if any(token.is_fixed for token in (*lost, *added)):
            return False
        # Chinese words look like names, so only fillers may be added.
        if not _are_fillers(lost) or not _are_fillers([token for token in added if token.is_cjk]):
            return False
        told += sum(not fills(token.word) for token in added if not token.is_cjk)
    return told <= _MOST_ADDED


def _differences(older: Sequence[Token], newer: Sequence[Token]) -> Iterator[tuple[list[Token], list[Token]]]:
    """The parts that differ, between the words that both have in the same place."""
    from rapidfuzz.distance import Levenshtein

    steps = Levenshtein.opcodes([token.word for token in older], [token.word for token in newer])
    for is_equal, run in groupby(steps, key=lambda step: step.tag == "equal"):
        if not is_equal:
            each = list(run)
            yield (
                list(older[each[0].src_start : each[-1].src_end]),
                list(newer[each[0].dest_start : each[-1].dest_end]),
            )


def _unmatched(
    before: Sequence[Token], after: Sequence[Token], spoken: Sequence[str]
) -> tuple[list[Token], list[Token]]:
    """The words of each part without a match in the other part, in order."""
    lost: list[Token] = []
    added: list[Token] = []
    rest = list(after)
    for token in before:
        at = next((at for at, other in enumerate(rest) if _is_same(token, other, spoken)), None)
        if at is None:
            lost.append(token)
        else:
            added += rest[:at]
            rest = rest[at + 1 :]
    return lost, added + rest


def _are_fillers(tokens: Sequence[Token]) -> bool:
    characters = "".join(token.word for token in tokens if token.is_cjk)
    return fills(characters) and all(fills(token.word) for token in tokens if not token.is_cjk)


def _is_same(one: Token, other: Token, spoken: Sequence[str]) -> bool:
    """Whether two words are one: in another spelling, in another form, or with a typo."""
    if one.word == other.word:
        return True
    if one.is_fixed or other.is_fixed or one.is_cjk or other.is_cjk:
        return False
    return (
        _spelled(one.word) == _spelled(other.word)
        or not _stems(one.word, spoken).isdisjoint(_stems(other.word, spoken))
        or _is_typo(one.word, other.word, spoken)
    )


def _spelled(word: str) -> str:
    return american(word).replace("is", "iz").replace("ys", "yz")


def _stems(word: str, spoken: Sequence[str]) -> set[str]:
    verb = verb_stem(word)
    return {stem for _, stem in stemming.stems([word], spoken)} | ({verb} if verb else set())


def _is_typo(one: str, other: str, spoken: Sequence[str]) -> bool:
    """Whether one word is the other with a typo, which rarely hits the first letter or makes another word.

    In English just one of the two must be in the dictionary.
    """
    from rapidfuzz.distance import OSA

    is_english = ENGLISH in spoken and is_latin(one)
    known = [_is_known(word) for word in (one, other)]
    longest = max(len(one), len(other))
    if one[0] != other[0] or all(known) or longest < _SHORTEST_TYPO:
        return False
    if is_english:
        most = 2 if longest >= _SHORTEST_TWO_TYPOS else 1
        return any(known) and OSA.distance(one, other, score_cutoff=most) <= most
    return OSA.distance(one, other, score_cutoff=1) <= 1 and _is_slip(one, other)


def _is_slip(one: str, other: str) -> bool:
    """Whether two words that differ in one place are long enough to be one."""
    if len(one) != len(other):
        return max(len(one), len(other)) >= _SHORTEST_UNKNOWN_TYPO
    return sorted(one) == sorted(other) or len(one) >= _SHORTEST_OTHER_LETTER


def _is_known(word: str) -> bool:
    bare = (word.removesuffix(ending) for ending in ("s", "ed", "ing"))
    return word in _dictionary() or any(len(b) >= _SHORTEST_STEM and b in _dictionary() for b in bare)


@cache
def _dictionary() -> frozenset[str]:
    """30,000 words, most of them English."""
    return frozenset(filter(str.isalpha, vocabulary()))
