"""The analyzer: turns texts and questions into the words of the full-text index.

FTS5's own tokenizer splits words and stems English (porter). The analyzer prepares the text for it:

- It unifies Unicode compatibility forms (NFKC) and case, and strips diacritics. Cyrillic й remains a letter;
  ё becomes е.
- Chinese, Japanese and Korean become overlapping bigrams; Thai, Lao, Burmese and Khmer become trigrams.
- The text is followed, after a gap, by the stems of its words in languages other than English, and by the
  parts of names such as getUserName, E1234, v1.2.3 and C++.

The words of the text stay adjacent and unchanged. So phrases and prefixes match the words as written, and a
wrong guess of the language loses no words. Stems start with a mark that no word has: the stem "car" of a
Finnish question does not match an English car.

A question searches for its words and for their stems in its language. If its language cannot be detected, as
with a single word, it searches for the stems in every language of its script.

All functions are pure functions of the text: to remove an entry from the index, its text is analysed again.
"""

import math
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache, partial
from itertools import groupby
from typing import NamedTuple

from memlog.eventlog.text import PIECE, split_into_pieces
from memlog.projector.limits import are_short_enough_to_structure
from memlog.projector.text import stemming, tokens
from memlog.projector.text.stemming import ENGLISH, latin_languages

VERSION = 4
"""Increment whenever the output of this module or the language files change; part of the projection id."""

# FTS5 treats a private-use character as a letter, and no indexed text contains one.
_STEM = "\ue000"
_APART = " \ue001 "

_CASES_AND_DIGITS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VERSION = re.compile(r"(?<![^\W_])[vV]([0-9]+(?:\.[0-9]+)+)")
_SIGNED = re.compile(r"(?<![^\W_])([A-Za-z])(\+\+|#)(?![\w#+])")
_SIGNS = {"++": "plusplus", "#": "sharp"}
_LONGEST_NAME = 64  # characters; longer ones are data, such as base64

# Translating a text to these shows whether it may have a name, at a tenth of the cost of a pattern.
_SHAPES = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+#",
    b"A" * 26 + b"a" * 26 + b"0" * 10 + b"00",
)
_DIGIT = ord("0")
_NAME_SHAPES = (b"a0", b"0a", b"A0", b"0A")
_CASE_SHAPES = (b"aA", b"AAa")
"""The changes of case within names such as getName and HTTPServer."""

_PREFIX_LENGTH = 3

_FEW_WORDS = 8
"""A question with no stop word and at most this many words is stemmed in every Latin-script language."""

# Patterns that take milliseconds to compile are compiled at first use: listing memories needs none.

# Russian stems only truncate words, so a prefix search finds the forms.
_unstemmed_pattern = cache(
    partial(re.compile, f"[{tokens.CJK_CHARACTERS}{tokens.SOUTH_EAST_ASIAN}\u0400-\u052f]+")
)


@cache
def _combining_marks() -> str:
    """Return the combining vowels of Indic and other scripts, as ranges for a regular expression.

    The tokenizer in schema.sql treats them as letters and `re` does not, but both must split texts alike.
    """
    blocks = (range(0x0300, 0x2100), range(0x302A, 0x309B), range(0xA66F, 0xABEE), range(0xFE00, 0xFE30))
    codes = (code for block in blocks for code in block if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    runs = groupby(enumerate(codes), key=lambda numbered: numbered[1] - numbered[0])
    ends = [[chr(code) for _, code in run] for _, run in runs]
    return "".join(f"{run[0]}-{run[-1]}" for run in ends)


def _letters_pattern(is_ascii: bool) -> str:
    # ASCII has no marks, without which a pattern compiles in a tenth of the time.
    return r"[^\W_]+" if is_ascii else rf"(?:[^\W_]|[{_combining_marks()}])+"


@cache
def _word_pattern(is_ascii: bool) -> re.Pattern[str]:
    return re.compile(_letters_pattern(is_ascii))


def find_words(text: str) -> Iterator[re.Match[str]]:
    """Yield a match for each word in `text`."""
    return _word_pattern(text.isascii()).finditer(text)


def _list_words(text: str) -> list[str]:
    return _word_pattern(text.isascii()).findall(text)


@cache
def _symbol_pattern() -> re.Pattern[str]:
    # The tokenizer takes newer symbols for letters: an emoji would join the word before.
    return re.compile(rf"[^\w\s{_combining_marks()}]+")


def _whole_word_pattern(is_ascii: bool) -> str:
    # Possessive, and anchored at the start of a word: otherwise long words cost quadratic time.
    begins = r"(?<![^\W_])" + ("" if is_ascii else f"(?<![{_combining_marks()}])")
    return f"{begins}{_letters_pattern(is_ascii)}+"


@cache
def _line_break_hyphen_pattern(is_ascii: bool) -> re.Pattern[str]:
    """Return the pattern for a word hyphenated at a line end."""
    return re.compile(rf"({_whole_word_pattern(is_ascii)})-\n\s*+({_letters_pattern(is_ascii)}+)")


@cache
def _joined_pattern(is_ascii: bool) -> re.Pattern[str]:
    """Return the pattern for words joined by symbols: a path, address, version or code."""
    word = _letters_pattern(is_ascii)
    return re.compile(rf"{_whole_word_pattern(is_ascii)}(?:(?:[._\-/\\@:+~]|://|::|->){word}+)+")


class Word(NamedTuple):
    """A word of a question.

    written: folded, as in the index. stem: the common prefix of its forms, if its language is known.
    stems: the marked stems of its forms in the index. is_stop: whether it is a stop word.
    """

    written: str
    stem: str | None = None
    stems: tuple[str, ...] = ()
    is_stop: bool = False


def analyse_for_index(text: str) -> str:
    """Return `text` as it is indexed.

    A run in a script without spaces also gets the shorter n-grams at its end, so that every character starts
    a token and is found as a prefix: 喝绿茶 becomes 喝绿 绿茶 茶.
    """
    if len(text) <= PIECE:
        written, added = _analyse_words(text)
    else:
        is_plain = not are_short_enough_to_structure(text)
        found = [_analyse_words(piece, is_plain=is_plain) for piece in split_into_pieces(text)]
        written = "".join(words for words, _ in found)
        added = [word for _, words in found for word in words]
    return f"{written}{_APART}{' '.join(added)}" if added else written


def _analyse_words(text: str, *, is_plain: bool = False) -> tuple[str, list[str]]:
    """Return the indexed words of `text`, and the words to add after them (none if `is_plain`)."""
    if text.isascii():
        # NUL would end the text inside SQLite's tokenizer.
        text = text.replace("\0", " ")
        # The path of most texts: keep it fast.
        if is_plain or (stemming.is_plain_english(text) and not _may_have_names(text) and "-\n" not in text):
            return text, []
        return text, _find_stems(text) + _find_name_parts(text) + _join_words_split_at_line_ends(text)
    text = tokens.normalise_compatible(text)
    lower = text.casefold()
    signless = _symbol_pattern().sub(" ", tokens.strip_diacritics(lower))
    words = tokens.spaceless_pattern().sub(
        lambda run: f" {' '.join(tokens.split_into_ngrams(run[0], is_whole=True))} ", signless
    )
    return words, [] if is_plain else _find_stems(lower) + _find_name_parts(
        text
    ) + _join_words_split_at_line_ends(lower)


def _join_words_split_at_line_ends(text: str) -> list[str]:
    """Return the words that are hyphenated at line ends, joined; the text itself keeps the halves."""
    if "-\n" not in text:
        return []
    divided = _line_break_hyphen_pattern(text.isascii()).finditer(text)
    return [tokens.strip_diacritics(f"{match[1]}{match[2]}").casefold() for match in divided]


def split_into_written_words(text: str) -> list[str]:
    """Return the folded words of `text`, in index order.

    Runs in scripts without spaces become n-grams, without the shorter ones at the end: the index has those
    only at the end of a run, so a phrase containing them would not match.
    """
    text = tokens.fold_text(text)
    if not text.isascii():
        text = tokens.spaceless_pattern().sub(
            lambda run: f" {' '.join(tokens.split_into_ngrams(run[0])) or run[0]} ", text
        )
    return _list_words(text)


def split_question_into_words(text: str) -> list[Word]:
    """Return the distinct words to search for, without the one-letter parts of paths and versions."""
    text = tokens.normalise_compatible(text)
    names = _find_names(text)
    # Many texts have the one-character parts of names such as v1.2.3, E_NOENT.
    text = _joined_pattern(text.isascii()).sub(
        lambda joined: " ".join(
            part for part in _list_words(joined[0]) if len(part) > 1 or tokens.is_spaceless(part)
        ),
        _SIGNED.sub(" ", text),
    )
    lower = text.casefold()
    between = _list_words(lower if lower.isascii() else tokens.spaceless_pattern().sub(" ", lower))
    spoken = stemming.detect_languages(filter(stemming.starts_with_latin_letter, between), by_letters=False)
    stop_words = stemming.stop_words_of_languages(spoken or (ENGLISH,))
    stemmed_in = _stem_languages(between, spoken)
    found = {
        tokens.strip_diacritics(word): _make_search_word(word, spoken, stemmed_in, stop_words)
        for word in dict.fromkeys(between)
    }
    words = {word: found.get(word) or Word(word) for word in split_into_written_words(text)}
    # Names are not words of a language, so they have no stems. Of w00059n00007 neither number alone is
    # specific.
    parts = [part for name in names for part in name if len(part) > 1 and (len(name) == 1 or part.isalpha())]
    bare = [*filter(_split_name, _list_words(text)), *parts]
    return list((words | {word: Word(word) for word in map(tokens.fold_text, bare)}).values())


def find_names_in_question(text: str) -> list[list[str]]:
    """Return the indexed words of each path, address, version or code in `text` with more than one word."""
    joined = [split_into_written_words(match[0]) for match in _joined_pattern(text.isascii()).finditer(text)]
    return [words for words in (*joined, *_find_names(text)) if len(words) > 1]


def format_passage_text(label: str | None, content: str) -> str:
    """Return a passage's text for indexing and embedding. label: the speaker, or the memory's title."""
    return f"{label}: {content}" if label else content


def choose_memory_label(title: str, content: str) -> str | None:
    """Return a memory's title; None for the default title, which is the start of the content."""
    return None if content.startswith(title) else title


def _find_stems(text: str) -> list[str]:
    """Return the marked stems of `text` for the index, without non-Latin stems that are word prefixes."""
    is_english = stemming.is_plain_english(text)
    if is_english and text.isascii():
        return []
    words = _list_words(_unstemmed_pattern().sub(" ", text.lower()))
    spoken = () if is_english else stemming.detect_languages(filter(stemming.starts_with_latin_letter, words))
    pairs = stemming.stem_words(words, [name for name in spoken if name != ENGLISH])
    return [
        _STEM + tokens.strip_diacritics(stem)
        for word, stem in pairs
        if stemming.starts_with_latin_letter(word)
        or not tokens.strip_diacritics(word).startswith(tokens.strip_diacritics(stem))
    ]


def _stem_languages(words: Sequence[str], spoken: Sequence[str]) -> Sequence[str]:
    """Return the languages in which to stem a question's Latin words."""
    if not spoken and len(set(words)) <= _FEW_WORDS:
        return latin_languages()
    found = spoken or stemming.detect_languages(filter(stemming.starts_with_latin_letter, words))
    return [name for name in found if name != ENGLISH]


def _make_search_word(
    word: str, spoken: Sequence[str], stemmed_in: Sequence[str], stop_words: Collection[str]
) -> Word:
    # A word with a non-English letter is not English, whatever the others are.
    in_latin = stemmed_in if stemmed_in or word.isascii() else latin_languages()
    stems = list(
        dict.fromkeys(tokens.strip_diacritics(stem) for _, stem in stemming.stem_words([word], in_latin))
    )
    is_one = len(stems) == 1 and tokens.strip_diacritics(word).startswith(stems[0])
    stem = stems[0] if is_one and len(stems[0]) >= _least_stem_length(word, spoken) else None
    return Word(
        tokens.strip_diacritics(word), stem, tuple(_STEM + each for each in stems), word in stop_words
    )


def _least_stem_length(word: str, spoken: Sequence[str]) -> float:
    """Return the least length at which few unrelated words start with the same stem; infinity if none."""
    if not stemming.starts_with_latin_letter(word):
        return _PREFIX_LENGTH
    return _PREFIX_LENGTH + 1 if len(spoken) == 1 and ENGLISH not in spoken else math.inf


def _find_names(text: str) -> list[list[str]]:
    """Return the parts of each name in a text: get, user, name for getUserName; 1, 2, 3 for v1.2.3."""
    if not _may_have_names(text):
        return []
    found = [parts for word in _list_words(text) if (parts := _split_name(word))]
    found += [match[1].split(".") for match in _VERSION.finditer(text)]
    found += [[match[1].lower() + _SIGNS[match[2]]] for match in _SIGNED.finditer(text)]
    return found


def _find_name_parts(text: str) -> list[str]:
    return [part for name in _find_names(text) for part in name]


def _split_name(word: str) -> list[str]:
    if (word.islower() and word.isalpha()) or not word.isascii() or len(word) > _LONGEST_NAME:
        return []
    parts = [part.lower() for part in _CASES_AND_DIGITS.findall(word)]
    return [part for part in parts if len(part) > 1] if len(parts) > 1 else []


def _may_have_names(text: str) -> bool:
    shapes = text.encode(errors="replace").translate(_SHAPES)
    # `b"aA" in` and `b"0" in` take three times as long.
    has_cases = any(shapes.rfind(shape) >= 0 for shape in _CASE_SHAPES)
    return has_cases or (_DIGIT in shapes and any(shape in shapes for shape in _NAME_SHAPES))
