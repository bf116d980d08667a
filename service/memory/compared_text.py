"""Splits a text into tokens and detects its language, to compare near duplicates."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import NamedTuple

from memlog.eventlog.codec.content_ids import fold_content, mark_quantities
from memlog.projector.text import stemming
from memlog.projector.text.language_files import load_languages_with_table
from memlog.projector.text.stemming import ENGLISH, starts_with_latin_letter
from memlog.projector.text.tokens import is_cjk, read_vocabulary


def changes_meaning(word: str) -> bool:
    """Whether `word`, in lower case, changes the meaning of a sentence in any language.

    These are days, negations, limits and possessives: memories that differ in such a word stay separate.
    """
    words, begins = _meaning_changing_words()
    return (
        word in words
        or negates_next_word(word)
        or word.startswith(begins)
        or _meaning_changing_endings().fullmatch(word) is not None
    )


def languages_with_fillers() -> list[str]:
    """Return the languages with known filler words, which do not change the meaning of a sentence."""
    return [
        name for name, language in load_languages_with_table("memories").items() if language.memories.filling
    ]


def has_certain_words(text: str, language: str) -> bool:
    """Whether `text`, in lower case, has words that only `language` has among the languages in its script."""
    words = load_languages_with_table("memories")[language].memories
    return bool(re.search(words.certain, text)) and not (words.foreign and re.search(words.foreign, text))


def negates_next_word(word: str) -> bool:
    """Whether `word`, in lower case, negates or modifies the next word."""
    return word in _all_words("negating") or word.endswith("n't")


def is_filler(word: str, language: str | None) -> bool:
    """Whether a sentence means the same without `word`, which may be a run of Chinese characters."""
    if language is None:
        return False
    return word in _filler_words(language) or _filler_run_pattern(language).fullmatch(word) is not None


def is_conjunction(word: str) -> bool:
    """Whether `word` joins two clauses that may be swapped, like "and"."""
    return word in _all_words("joints")


@cache
def _all_words(name: str) -> Collection[str]:
    """Return the words in table `name` for all languages, in order, with ё replaced by е as in tokens."""
    tables = (getattr(language.memories, name) for language in load_languages_with_table("memories").values())
    return dict.fromkeys(" ".join(tables).replace("ё", "е").split())


@cache
def _meaning_changing_words() -> tuple[frozenset[str], tuple[str, ...]]:
    listed = _all_words("turning")
    begins = tuple(word[:-1] for word in listed if word.endswith("*"))
    return frozenset(word for word in listed if not word.endswith("*")), begins


@cache
def _meaning_changing_endings() -> re.Pattern[str]:
    endings = (re.escape(ending).replace(r"\*", r"\w{1,20}") for ending in _all_words("turning_endings"))
    return re.compile(f".+(?:{'|'.join(endings)})")


@cache
def _filler_words(language: str) -> frozenset[str]:
    known = load_languages_with_table("memories").get(language)  # None if memlog does not know its words
    return frozenset() if known is None else frozenset(known.memories.filling.replace("ё", "е").split())


@cache
def _filler_run_pattern(language: str) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(filter(is_cjk, _filler_words(language)))})*")


_LETTER = r"[^\W_]"
_SIGNED_NUMBER = r"(?<!\S)[+\-−](?=\d)"
_TOKEN = re.compile(rf"(?:{_SIGNED_NUMBER})?{_LETTER}(?:{_LETTER}|[_.@/:\\,'’\-](?={_LETTER}))*|[^\w\s]|_")
_PARTS = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)*")
_ADDRESS = re.compile(r"[_.@/\\]")
_JOINTS = "_.@/:\\,'’-"
_ENDS = re.compile(r"[.!?。！？:;\n]")
_SIGNS = frozenset("?؟՞%#&@*/\\_")
_ROMAN = re.compile("[ivxlcdm]+")

_CODE = re.compile(r"[={}<>|`\\]|[a-zA-Z0-9_][(\[]|::")
"""Matches signs that occur in code, but not in sentences."""

_OPENS = "([\"'"
_CLOSES = ".,:;!)]\"'"
_OF_A_NUMBER = "\"'′″"

_MOST_KNOWN = 2 / 3
"""The minimum fraction of an English text's words that must be in the dictionary; all words, if none is a
function word."""

_FEWEST_WORDS = 4
"""The minimum number of words in an English text without a function word."""

_ENDINGS = (("s$", ""), ("ed$", ""), ("ing$", ""), ("ies$", "y"))
_SHORTEST_STEM = 5
"""The minimum number of letters in a stem; a shorter word with an ending may just as well be a typo."""


class Token(NamedTuple):
    """A word, a number, an address or a sign; or one character of a script written without spaces.

    word: the folded text. is_fixed: whether near duplicates must share the token.
    is_cjk: whether the token is a character of a script written without spaces.
    """

    word: str
    is_fixed: bool
    is_cjk: bool


class Text:
    """A text of at most `LONGEST` characters, prepared for comparison."""

    def __init__(self, content: str) -> None:
        self._content = mark_quantities(content)

    @cached_property
    def normalised(self) -> str:
        """The text with whitespace, case and compatibility forms folded."""
        return fold_content(self._content)

    @cached_property
    def language(self) -> str | None:
        """The language of the text; None if it is uncertain, or memlog does not know its words.

        English requires most words to be in the dictionary; a non-Latin language requires a function word.
        """
        text = self._content.lower()
        words = re.findall(f"{_LETTER}+", text)
        latin = stemming.detect_languages(filter(starts_with_latin_letter, words), by_letters=False)
        stops = stemming.stop_words()
        found = [
            name
            for name in languages_with_fillers()
            if (
                latin == (name,)
                if is_in_latin(name)
                else not stops.get(name, frozenset(words)).isdisjoint(words)
            )
            and has_certain_words(text, name)
        ]
        is_plain = text.isascii() and len(words) >= _FEWEST_WORDS
        if is_plain and not (found or latin) and self._fraction_of_known_words() == 1:
            return ENGLISH  # without function words: `User prefers concise summaries`
        if len(found) != 1 or (found == [ENGLISH] and self._fraction_of_known_words() < _MOST_KNOWN):
            return None
        return found[0]

    def _fraction_of_known_words(self) -> float:
        """Return the fraction of the words that are in the English dictionary; 1 if there are none."""
        # Lower case only: names are in no dictionary.
        words = re.findall(
            r"\b[a-z]+\b", self._content if not self._content.isupper() else self._content.lower()
        )
        return sum(is_in_dictionary(word) for word in words) / len(words) if words else 1.0

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens, without spaces and sentence punctuation."""
        language = self.language
        stops = stemming.stop_words().get(language or "", frozenset())
        # In all capitals, names look like other words.
        is_shouted = self._content.isupper()
        found: list[Token] = []
        for text, begins, is_fixed in split_pieces(self._content):
            word = text.lower().replace("ё", "е").replace("’", "'")
            is_name = (
                not is_shouted
                and text[0].isupper()
                and word not in stops
                and not (begins and is_filler(word, language))
            )
            is_ideograph = not word.isascii() and is_cjk(word)
            # A letter or Roman number, as in `plan b` and `part ii`.
            is_label = (len(word) == 1 and not is_ideograph) or _ROMAN.fullmatch(word) is not None
            is_fixed |= is_name or is_label or _is_number_or_sign(text) or changes_meaning(word)
            found.append(Token(word, is_fixed, is_ideograph))
        return found

    @cached_property
    def joined(self) -> str:
        """The tokens joined into a text; see `join_tokens`."""
        return join_tokens(self.tokens)


def join_tokens(tokens: Sequence[Token]) -> str:
    """Join tokens into text, with spaces except between adjacent CJK tokens."""
    runs = groupby(tokens, key=lambda token: token.is_cjk)
    return " ".join(("" if without_spaces else " ").join(t.word for t in run) for without_spaces, run in runs)


def is_in_latin(language: str) -> bool:
    """Whether a language is written in Latin letters, so that only its words identify it."""
    return language == ENGLISH or language in stemming.latin_languages()


def is_in_dictionary(word: str) -> bool:
    """Whether the dictionary contains `word`, as it is or without an English ending."""
    bare = (re.sub(ending, instead, word) for ending, instead in _ENDINGS)
    return word in _load_words() or any(len(b) >= _SHORTEST_STEM and b in _load_words() for b in bare)


def split_pieces(text: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield the pieces of a text, with whether each begins a sentence and whether it is code."""
    for line in text.split("\n"):
        is_code = _CODE.search(line) is not None
        end, begins = 0, True
        run, verdicts = (0, 0), dict[str, bool]()
        for match in _TOKEN.finditer(line):
            begins = begins or _ENDS.search(line, end, match.start()) is not None
            end = match.end()
            if not match[0][-1].isalnum():
                begins = begins or _ENDS.match(match[0]) is not None
                # Computed once per run: once per mark, a row of dots would take quadratic time.
                if match.start() >= run[1]:
                    run, verdicts = _run_of_marks(line, match.start()), {}
                if match[0] not in verdicts:
                    verdicts[match[0]] = _is_sentence_punctuation(line, match.start(), *run)
                if is_code or _is_sign(match[0]) or not verdicts[match[0]]:
                    yield match[0], False, True
                continue
            pieces = list(_split_word(match[0]))
            is_compound = len(pieces) > 1 and not is_cjk(match[0][0])
            for piece in pieces:
                yield piece, begins, is_code or is_compound
                begins = False


def _split_word(word: str) -> Iterator[str]:
    """Yield the numbers, addresses, words and Chinese characters in a run of letters and digits."""
    if word.isascii() and word.isalpha():
        yield word
        return
    for is_run, run in groupby(word, key=is_cjk):
        text = "".join(run)
        if is_run:
            yield from text
        elif any(map(str.isdigit, text)) or (_ADDRESS.search(text) and any(map(str.isalpha, text))):
            yield text.rstrip(_JOINTS)
        else:
            yield from _PARTS.findall(text)


def _is_sign(character: str) -> bool:
    """Whether a non-letter carries meaning, such as a symbol or a vowel sign of an Indian script."""
    return character in _SIGNS or unicodedata.category(character)[0] in "SM"


def _run_of_marks(line: str, at: int) -> tuple[int, int]:
    start, end = at, at + 1
    while start and not (line[start - 1].isalnum() or line[start - 1].isspace()):
        start -= 1
    while end < len(line) and not (line[end].isalnum() or line[end].isspace()):
        end += 1
    return start, end


def _is_sentence_punctuation(line: str, at: int, start: int, end: int) -> bool:
    """Whether the mark at `at` only separates or quotes: after a word, before one, or between spaces.

    start, end: the run of marks that contains it.
    """
    before, behind, run = line[:start][-1:].strip(), line[end : end + 1].strip(), line[start:end]
    if is_cjk(before or " ") or is_cjk(behind or " "):
        return True
    is_measure = before.isdigit() and (behind.isdigit() or line[at] in _OF_A_NUMBER)
    is_greek_question = line[at] == ";" and unicodedata.name(before or " ").startswith("GREEK")
    if is_measure or is_greek_question:
        return False
    if not line[at].isascii():
        return True
    if before and behind:
        return False
    if before or behind:
        marks = _CLOSES if before else _OPENS
        return all(mark in marks or not mark.isascii() for mark in run)
    return "!" not in run or not line[end:].strip()


def _is_number_or_sign(text: str) -> bool:
    if text.isalpha():
        return False
    return (
        any(map(str.isdigit, text))
        or _ADDRESS.search(text) is not None
        or _is_sign(text[0])
        or text.endswith(("'s", "’s"))
    )


@cache
def _load_words() -> frozenset[str]:
    """Load the dictionary: 30,000 words, most of them English, and a few additions."""
    return frozenset([*filter(str.isalpha, read_vocabulary()), *_all_words("known")])
