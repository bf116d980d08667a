"""WordPiece tokens of the bundled vocabulary, so that passages do not depend on the machine or model."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from memlog.eventlog.text import normalise_to_nfkc, split_into_pieces
from memlog.projector.text.language_files import load_languages_with_table, split_pairs
from memlog.projector.text.stemming import ENGLISH

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""The SHA-256 of vocab.txt; part of the projection id."""

# Characters per call of the tokenizer, which holds the GIL: 5 ms for Chinese, the slowest text. 10 MB of
# prose take 11 s of CPU time at once, and 3 s in such pieces.
_PIECE = 4096


def read_vocabulary() -> list[str]:
    """Return the words and word parts in vocab.txt; the index of each is its token id."""
    return (Path(__file__).parents[1] / "vocab.txt").read_bytes().decode().split("\n")


def make_tokenizer() -> "Tokenizer":
    """Return BERT's uncased WordPiece tokenizer, without truncation or padding."""
    # Imported here: most messages are short enough to need no counting.
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    numbers = {word: number for number, word in enumerate(read_vocabulary()) if word}
    made = Tokenizer(WordPiece(numbers, unk_token="[UNK]"))  # noqa: S106 - a token of text
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])],
    )
    return made


_tokenizer = cache(make_tokenizer)


def count_tokens(text: str) -> int:
    """Return the number of tokens in `text`, without start and end markers."""
    encode = _tokenizer().encode
    return sum(len(encode(piece, add_special_tokens=False)) for piece in split_into_pieces(text, _PIECE))


def has_surely_few_tokens(text: str, limit: int) -> bool:
    """Whether `text` certainly has at most `limit` tokens; does not count them.

    Each token takes at least one byte of UTF-8, even after accents are stripped, so most messages never need
    the tokenizer.
    """
    length = len(text)
    return length * 4 <= limit or (length <= limit and (text.isascii() or len(text.encode()) <= limit))


class Ruler:
    """Measures a text in tokens. Positions are in code points."""

    def __init__(self, text: str) -> None:
        self._end = len(text)
        self._starts: list[int] = []
        self._words: list[int] = []
        encode = _tokenizer().encode
        start = words = 0
        for piece in split_into_pieces(text, _PIECE):
            encoding = encode(piece, add_special_tokens=False)
            self._starts += [start + offset for offset, _ in encoding.offsets]
            self._words += [words + word for word in encoding.word_ids if word is not None]
            start, words = start + len(piece), self._words[-1] + 1 if self._words else 0

    def count_tokens(self, start: int, end: int) -> int:
        """Return the number of tokens that start in [`start`, `end`)."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def boundary_after(self, start: int, tokens: int) -> int:
        """Return the last word boundary within `tokens` tokens after `start`, or else the next one."""
        first = bisect_left(self._starts, start)
        index = first + tokens
        if index >= len(self._starts):
            return self._end
        while index > first + 1 and self._words[index] == self._words[index - 1]:
            index -= 1
        if self._starts[index] > start:
            return self._starts[index]
        index = bisect_right(self._starts, start)
        return self._starts[index] if index < len(self._starts) else self._end

    def boundary_before(self, end: int, tokens: int) -> int:
        """Return the first word boundary that is at most `tokens` tokens before `end`."""
        last = bisect_right(self._starts, end - 1)
        index = max(0, last - tokens)
        while 0 < index < last and self._words[index] == self._words[index - 1]:
            index += 1
        return self._starts[index] if index < last else end


CJK_CHARACTERS = (
    "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)

SOUTH_EAST_ASIAN = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f\u19e0-\u19ff"
)
"""Thai, Lao, Burmese, Khmer: letters, vowels and tones."""


spaceless_pattern = cache(partial(re.compile, f"[{CJK_CHARACTERS}]+|[{SOUTH_EAST_ASIAN}]+"))
"""Returns the pattern for runs in scripts without spaces."""

_south_east_asian_pattern = cache(partial(re.compile, f"[{SOUTH_EAST_ASIAN}]"))


def is_spaceless(token: str) -> bool:
    """Whether `token` is in a script without spaces, which is indexed as bigrams or trigrams."""
    return not token.isascii() and spaceless_pattern().fullmatch(token) is not None


def gram_length(run: str) -> int:
    """Return the n-gram length for a run in a script without spaces.

    Chinese, Japanese and Korean use bigrams; Thai and its neighbours, which have fewer letters, use trigrams.
    For XQuAD's Thai questions, trigrams find 99.7% of the answers in the first ten results; bigrams, 97.2%.
    """
    return 3 if _south_east_asian_pattern().match(run) else 2


def is_cjk(token: str) -> bool:
    """Whether `token` is Chinese, Japanese or Korean."""
    return is_spaceless(token) and not _south_east_asian_pattern().match(token)


def split_into_ngrams(run: str, *, is_whole: bool = False) -> Iterator[str]:
    """Return the overlapping n-grams of a run; with `is_whole`, also the shorter ones at its end."""
    size = gram_length(run)
    return (run[index : index + size] for index in range(len(run) if is_whole else len(run) - size + 1))


@cache
def _load_spellings() -> tuple[re.Pattern[str], dict[str, str], dict[str, str]]:
    """Return a pattern for word beginnings with two spellings, then the American and the other spellings."""
    american = split_pairs(load_languages_with_table("english")[ENGLISH].english.american)
    other = american | {american: british for british, american in american.items()}
    return re.compile("|".join(other)), american, other


def to_american(word: str) -> str:
    """Convert a folded word to American spelling."""
    begins, american, _ = _load_spellings()
    found = begins.match(word)
    return word if found is None else american.get(found[0], found[0]) + word[found.end() :]


def other_spelling(word: str) -> str | None:
    """Return the other spelling, British or American, of a folded word, or None."""
    begins, _, other = _load_spellings()
    found = begins.match(word)
    return None if found is None else other[found[0]] + word[found.end() :]


# In NFKC ﷺ becomes 18 characters, so a text of nothing else becomes 18 times as long.
_LONGEST_GROWTH = 3
_LONGEST_FORM = 18

_INVISIBLE = dict.fromkeys((0x00AD, 0x034F, 0x061C, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF))
"""Soft hyphens, joiners and direction marks: they do not end a word."""

_INDIC = (0x0900, 0x0980, 0x0A00, 0x0A80, 0x0B00, 0x0B80, 0x0C00, 0x0C80, 0x0D00)
"""Unicode blocks with the same layout: a letter has the same offset in each of them."""

_CHANDRABINDU, _ANUSVARA, _NUKTA, _VIRAMA = 0x01, 0x02, 0x3C, 0x4D
_NASALS = (0x19, 0x1E, 0x23, 0x28, 0x2E)

_EMOJI = (*range(0x2600, 0x27C0), *range(0x2B00, 0x2C00), *range(0x1F000, 0x1FB00))
"""Code points that are indexed as words, even if Python's `unicodedata` does not know them."""


def normalise_compatible(text: str) -> str:
    """Return `text` in NFKC without invisible characters; unchanged if that would make it much longer."""
    found = normalise_to_nfkc(text).translate(_INVISIBLE)
    return found if len(found) <= _LONGEST_GROWTH * len(text) + _LONGEST_FORM else text


def fold_text(text: str) -> str:
    """Fold `text` for the index: NFKC, case-folded, without diacritics."""
    return strip_diacritics(normalise_compatible(text).casefold())


def strip_diacritics(folded: str) -> str:
    """Strip diacritics from case-folded NFKC text, and turn emoji into words.

    Also unifies spelling variants of letters: ک and ك, ی and ي, हिन्दी and हिंदी.
    """
    if folded.isascii():
        return folded
    dotted = _pattern_of_nasal_consonants().sub(
        lambda nasal: chr(ord(nasal[0][0]) & ~0x7F | _ANUSVARA), folded
    )
    return dotted.translate(_letter_replacements())


@cache
def _pattern_of_nasal_consonants() -> re.Pattern[str]:
    """Return the pattern for a nasal before a consonant, which may also be written as a dot (anusvara)."""
    return re.compile(
        "|".join(
            f"[{''.join(chr(block + nasal) for nasal in _NASALS)}]{chr(block + _VIRAMA)}"
            f"(?=[{chr(block + 0x15)}-{chr(block + 0x39)}])"
            for block in _INDIC
        )
    )


def _emoji_word(code: int) -> str:
    """Return a word for an emoji; letters only, since digits would make it split like a name."""
    return " emoji" + "".join(chr(ord("a") + int(digit, 16)) for digit in f"{code:x}") + " "


@cache
def _letter_replacements() -> dict[int, int | str | None]:
    """Return replacements for letters that unicode61 does not fold, and for characters that mislead it."""
    points = (*range(0x0591, 0x05C8), 0x0640, *range(0x064B, 0x0653), 0x0670)  # Hebrew, Arabic
    combining = (*range(0x0300, 0x0370), *range(0xFE00, 0xFE10))
    private = (0, *range(0xE000, 0xF900))
    greek = (*range(0x0370, 0x0400), *range(0x1F00, 0x2000))
    return {
        **dict.fromkeys((*points, *combining)),
        **dict.fromkeys(private, " "),
        **{code: unicodedata.normalize("NFD", chr(code))[0] for code in greek},
        **str.maketrans("ёѐѝđħıłøŧð", "ееиdhilotd"),
        **{ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th"},
        **str.maketrans("کیىۀەہة", "كييهههه"),
        **{block + _CHANDRABINDU: block + _ANUSVARA for block in _INDIC},
        **dict.fromkeys(block + _NUKTA for block in _INDIC),
        **{code: _emoji_word(code) for code in _EMOJI},
    }
