"""The analyzer: the words of the full text, for the index and for questions alike.

FTS5's own tokenizer splits words, and stems English (porter). The analyzer prepares the text:

- Unicode's compatible forms are one (NFKC), as are upper and lower case; letters lose the marks above and
  below them. Cyrillic й is a letter of its own, ё is е.
- Chinese, Japanese and Korean become overlapping pairs of characters, Thai, Lao, Burmese and Khmer triples.
- Behind the text, apart from it, come the stems of its words in other languages than English, and the parts
  of names such as getUserName, E1234, v1.2.3, C++.

The words of the text stay as they are, next to each other. So phrases and prefixes match written words, and a
language that was mistaken for another loses no word. A stem begins with a mark that no word has: a question
in Finnish that asks for the stem "car" finds no English car.

A question in one language asks for its words and their stems. One without signs of a language, such as a
single word, asks for the stems in each language of its script.

All functions are pure functions of the text: an entry is removed from the index by analysing it again.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from memlog.eventlog.text import PIECE, pieces
from memlog.projector.limits import is_structured
from memlog.projector.text import stemming
from memlog.projector.text.stemming import ENGLISH, latin
from memlog.projector.text.tokens import (
    CJK_CHARACTERS,
    SOUTH_EAST_ASIAN,
    compatible,
    folded,
    grams,
    is_spaceless,
    plain,
    spaceless,
)

VERSION = 4
"""Changes with any change to what this module or `languages` makes of a text; part of the projection id."""

# A private character is a letter to FTS5, and no text that is indexed has one.
_STEM = "\ue000"
_APART = " \ue001 "

_CASES_AND_DIGITS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VERSION = re.compile(r"(?<![^\W_])[vV]([0-9]+(?:\.[0-9]+)+)")
_SIGNED = re.compile(r"(?<![^\W_])([A-Za-z])(\+\+|#)(?![\w#+])")
_SIGNS = {"++": "plusplus", "#": "sharp"}
_LONGEST_NAME = 64  # characters; what is longer is data, such as base64

# A copy of a text in these shows whether it may have a name, at a tenth of the price of an expression.
_SHAPES = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+#",
    b"A" * 26 + b"a" * 26 + b"0" * 10 + b"00",
)
_DIGIT = ord("0")
_NAME_SHAPES = (b"a0", b"0a", b"A0", b"0A")
_CASE_SHAPES = (b"aA", b"AAa")
"""Of getName and HTTPServer."""

_PREFIX_LENGTH = 3

_FEW_WORDS = 8
"""A question with no stop word and at most this many words is stemmed in every Latin-script language."""


# Expressions that take `re` milliseconds are compiled at first use: a command that lists memories needs none.


@cache
def _without_stems() -> re.Pattern[str]:
    # Russian is stemmed by shortening words alone: what begins with a stem is found by it.
    return re.compile(f"[{CJK_CHARACTERS}{SOUTH_EAST_ASIAN}\u0400-\u052f]+")


@cache
def _marks() -> str:
    """Return the vowels of Indian and other scripts, as ranges of a regular expression.

    They are no letters to `re`, but to the tokenizer of schema.sql, and the two must split alike.
    """
    blocks = (range(0x0300, 0x2100), range(0x302A, 0x309B), range(0xA66F, 0xABEE), range(0xFE00, 0xFE30))
    codes = (code for block in blocks for code in block if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    runs = groupby(enumerate(codes), key=lambda numbered: numbered[1] - numbered[0])
    ends = [[chr(code) for _, code in run] for _, run in runs]
    return "".join(f"{run[0]}-{run[-1]}" for run in ends)


# ASCII has none of them: without them an expression takes a tenth of the time to compile.


def _letters(is_ascii: bool) -> str:
    return r"[^\W_]+" if is_ascii else rf"(?:[^\W_]|[{_marks()}])+"


@cache
def _word_pattern(is_ascii: bool) -> re.Pattern[str]:
    return re.compile(_letters(is_ascii))


def words_in(text: str) -> Iterator[re.Match[str]]:
    """Return the words of `text` as they are written, with their places."""
    return _word_pattern(text.isascii()).finditer(text)


def _words(text: str) -> list[str]:
    return _word_pattern(text.isascii()).findall(text)


@cache
def _sign() -> re.Pattern[str]:
    # To the tokenizer, newer signs are letters: an emoji would be a part of the word before.
    return re.compile(rf"[^\w\s{_marks()}]+")


def _whole_word(is_ascii: bool) -> str:
    # Possessive, and only from where a word begins: else a long word is read again from each of its letters.
    begins = r"(?<![^\W_])" + ("" if is_ascii else f"(?<![{_marks()}])")
    return f"{begins}{_letters(is_ascii)}+"


@cache
def _divided(is_ascii: bool) -> re.Pattern[str]:
    """Return a word that a hyphen divides at the end of a line."""
    return re.compile(rf"({_whole_word(is_ascii)})-\n\s*+({_letters(is_ascii)}+)")


@cache
def _joined(is_ascii: bool) -> re.Pattern[str]:
    """Return the pattern of a path, an address, a version or a code: words with signs between them."""
    word = _letters(is_ascii)
    return re.compile(rf"{_whole_word(is_ascii)}(?:(?:[._\-/\\@:+~]|://|::|->){word}+)+")


class Word(NamedTuple):
    """A word of a question.

    written: folded, as the index has it.
    stem: the beginning of its forms, if its language is known.
    stems: the marked stems that the index may have of its forms.
    is_stop: whether it is a function word.
    """

    written: str
    stem: str | None = None
    stems: tuple[str, ...] = ()
    is_stop: bool = False


def analysed(text: str) -> str:
    """Return `text` as it is indexed.

    A run of a script without spaces has also what is left at its end, so each character begins one token, and
    is found as a prefix: 喝绿茶 becomes 喝绿 绿茶 茶.
    """
    if len(text) <= PIECE:
        written, added = _analysed(text)
    else:
        analysed_piece = _analysed if is_structured(text) else _plainly_analysed
        found = [analysed_piece(piece) for piece in pieces(text)]
        written = "".join(words for words, _ in found)
        added = [word for _, words in found for word in words]
    return f"{written}{_APART}{' '.join(added)}" if added else written


def _analysed(text: str) -> tuple[str, list[str]]:
    """Return the words of `text` as they are indexed, and those that are put behind them."""
    if text.isascii():
        # NUL would end the text inside SQLite's tokenizer.
        text = text.replace("\0", " ")
        # Most texts end here: what is added to this path, every English message costs.
        if stemming.is_plain_english(text) and not _may_have_names(text) and "-\n" not in text:
            return text, []
        return text, _stems(text) + _parts_of_names(text) + _hyphenated(text)
    text = compatible(text)
    lower = text.casefold()
    return _words_as_indexed(lower), _stems(lower) + _parts_of_names(text) + _hyphenated(lower)


def _hyphenated(text: str) -> list[str]:
    """Return the words that a hyphen divides at the end of a line, whole; their halves stay as they are."""
    if "-\n" not in text:
        return []
    divided = _divided(text.isascii()).finditer(text)
    return [plain(f"{match[1]}{match[2]}").casefold() for match in divided]


def _plainly_analysed(text: str) -> tuple[str, list[str]]:
    """As `_analysed`, without stems and parts of names."""
    return text.replace("\0", " ") if text.isascii() else _words_as_indexed(compatible(text).casefold()), []


def _words_as_indexed(lower: str) -> str:
    signless = _sign().sub(" ", plain(lower))
    return spaceless().sub(lambda run: f" {' '.join(grams(run[0], is_whole=True))} ", signless)


def written_words(text: str) -> list[str]:
    """Return the words of `text` in their order, folded, as the index has them next to each other.

    Runs of scripts without spaces are pairs or triples, without what is left at the end of longer runs: that
    stands in the index only at the end of a run, so a phrase that contained it would miss.
    """
    text = folded(text)
    if not text.isascii():
        text = spaceless().sub(lambda run: f" {' '.join(grams(run[0])) or run[0]} ", text)
    return _words(text)


def question_words(text: str) -> list[Word]:
    """Return the words that a question asks for, each once.

    Of paths and versions, only those of two letters or more.
    """
    text = compatible(text)
    names = _names(text)
    text = _without_single_parts(text)
    lower = text.casefold()
    between = _words(lower if lower.isascii() else spaceless().sub(" ", lower))
    spoken = stemming.languages(filter(stemming.is_latin, between), by_letters=False)
    stop_words = stemming.stop_words_in(spoken or (ENGLISH,))
    stemmed_in = _stem_languages(between, spoken)
    found = {plain(word): _word(word, spoken, stemmed_in, stop_words) for word in dict.fromkeys(between)}
    words = {word: found.get(word) or Word(word) for word in written_words(text)}
    # A name is no word of a language: it and its parts have no stems.
    bare = [*filter(_inner_parts, _words(text)), *_telling_parts(names)]
    return list((words | {word: Word(word) for word in map(folded, bare)}).values())


def question_names(text: str) -> list[list[str]]:
    """Return the words of each path, address, version or code in `text`, as the index has them.

    Each has two words or more.
    """
    joined = [written_words(match[0]) for match in _joined(text.isascii()).finditer(text)]
    return [words for words in (*joined, *_names(text)) if len(words) > 1]


def passage(label: str | None, content: str) -> str:
    """Return the text of a passage as it is indexed and embedded: with its speaker, or its memory's title."""
    return f"{label}: {content}" if label else content


def memory_label(title: str, content: str) -> str | None:
    """Return the title where it adds to the content.

    The default title is the content's beginning.
    """
    return None if content.startswith(title) else title


def _stems(text: str) -> list[str]:
    """Return the marked stems that the index has of a text.

    Of other scripts, those that do not begin the word.
    """
    is_english = stemming.is_plain_english(text)
    if is_english and text.isascii():
        return []
    words = _words(_without_stems().sub(" ", text.lower()))
    spoken = () if is_english else stemming.languages(filter(stemming.is_latin, words))
    pairs = stemming.stems(words, [name for name in spoken if name != ENGLISH])
    return [
        _STEM + plain(stem)
        for word, stem in pairs
        if stemming.is_latin(word) or not plain(word).startswith(plain(stem))
    ]


def _stem_languages(words: Sequence[str], spoken: Sequence[str]) -> Sequence[str]:
    """Return the languages in whose stems a question in Latin letters is looked up."""
    if not spoken and len(set(words)) <= _FEW_WORDS:
        return latin()
    found = spoken or stemming.languages(filter(stemming.is_latin, words))
    return [name for name in found if name != ENGLISH]


def _word(word: str, spoken: Sequence[str], stemmed_in: Sequence[str], stop_words: Collection[str]) -> Word:
    # A word with a letter that English has not is not English, whatever the others are.
    in_latin = stemmed_in if stemmed_in or word.isascii() else latin()
    stems = list(dict.fromkeys(plain(stem) for _, stem in stemming.stems([word], in_latin)))
    is_one = len(stems) == 1 and plain(word).startswith(stems[0])
    stem = stems[0] if is_one and len(stems[0]) >= _least_stem(word, spoken) else None
    return Word(plain(word), stem, tuple(_STEM + each for each in stems), word in stop_words)


def _least_stem(word: str, spoken: Sequence[str]) -> float:
    """Return the letters that a stem needs so that few other words begin with it."""
    if not stemming.is_latin(word):
        return _PREFIX_LENGTH
    return _PREFIX_LENGTH + 1 if len(spoken) == 1 and ENGLISH not in spoken else math.inf


def _names(text: str) -> list[list[str]]:
    """Return the parts of each name: getUserName has get user name, v1.2.3 has 1 2 3."""
    if not _may_have_names(text):
        return []
    found = [parts for word in _words(text) if (parts := _inner_parts(word))]
    found += [match[1].split(".") for match in _VERSION.finditer(text)]
    found += [[match[1].lower() + _SIGNS[match[2]]] for match in _SIGNED.finditer(text)]
    return found


def _parts_of_names(text: str) -> list[str]:
    return [part for name in _names(text) for part in name]


def _telling_parts(names: list[list[str]]) -> list[str]:
    """Return the parts to ask for alone: of w00059n00007 neither number, which other names have too."""
    return [part for name in names for part in name if len(part) > 1 and (len(name) == 1 or part.isalpha())]


def _inner_parts(word: str) -> list[str]:
    if (word.islower() and word.isalpha()) or not word.isascii() or len(word) > _LONGEST_NAME:
        return []
    parts = [part.lower() for part in _CASES_AND_DIGITS.findall(word)]
    return [part for part in parts if len(part) > 1] if len(parts) > 1 else []


def _may_have_names(text: str) -> bool:
    shapes = text.encode(errors="replace").translate(_SHAPES)
    # Measured: `b"aA" in` and `b"0" in` take three times as long.
    has_cases = any(shapes.rfind(shape) >= 0 for shape in _CASE_SHAPES)
    return has_cases or (_DIGIT in shapes and any(shape in shapes for shape in _NAME_SHAPES))


def _without_single_parts(text: str) -> str:
    """Return `text` without the one-character parts of names such as v1.2.3, E_NOENT.

    Most texts have those somewhere.
    """
    return _joined(text.isascii()).sub(lambda joined: _longer_parts(joined[0]), _SIGNED.sub(" ", text))


def _longer_parts(joined: str) -> str:
    return " ".join(part for part in _words(joined) if len(part) > 1 or is_spaceless(part))
