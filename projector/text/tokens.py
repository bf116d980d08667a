"""WordPiece tokens by the vocabulary that memlog ships, so that chunks are the same on every machine,
whichever embedding model is installed."""

from bisect import bisect_left, bisect_right
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memlog.eventlog.text import pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""Of vocab.txt; part of the projection id."""

# Characters that the tokenizer is given at once. It holds the GIL: 5 ms for Chinese, the slowest text. For
# 10 MB of prose it takes 11 s of CPU time at once, and 3 s in such pieces.
_PIECE = 4096


def vocabulary() -> list[str]:
    """The lines of vocab.txt: a word, or a part of one, at its number."""
    return (Path(__file__).parents[1] / "vocab.txt").read_bytes().decode().split("\n")


def new_tokenizer() -> "Tokenizer":
    """BERT's uncased WordPiece tokenizer, without truncation and padding."""
    # Imported here: most messages are short enough to need no counting.
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    numbers = {word: number for number, word in enumerate(vocabulary()) if word}
    made = Tokenizer(WordPiece(numbers, unk_token="[UNK]"))  # noqa: S106 - a token of text
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])],
    )
    return made


_tokenizer = cache(new_tokenizer)


def count_tokens(text: str) -> int:
    """The number of tokens of `text`, without the two that mark its beginning and end."""
    encode = _tokenizer().encode
    return sum(len(encode(piece, add_special_tokens=False)) for piece in pieces(text, _PIECE))


def surely_within(text: str, limit: int) -> bool:
    """Whether `text` has at most `limit` tokens for a reason that needs no counting.

    A token is at least one byte of UTF-8, also after accents are split off, so most messages never need
    the tokenizer.
    """
    length = len(text)
    return length * 4 <= limit or (length <= limit and (text.isascii() or len(text.encode()) <= limit))


class Ruler:
    """Measures one text in tokens. Places in the text are in code points."""

    def __init__(self, text: str) -> None:
        self._end = len(text)
        self._starts: list[int] = []
        self._words: list[int] = []
        encode = _tokenizer().encode
        start = words = 0
        for piece in pieces(text, _PIECE):
            encoding = encode(piece, add_special_tokens=False)
            self._starts += [start + offset for offset, _ in encoding.offsets]
            self._words += [words + word for word in encoding.word_ids if word is not None]
            start, words = start + len(piece), self._words[-1] + 1 if self._words else 0

    def count(self, start: int, end: int) -> int:
        """The tokens that begin from `start` to before `end`."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def forward(self, start: int, tokens: int) -> int:
        """The last place that is at most `tokens` behind `start` and breaks no word.

        Always behind `start`: one character may be several tokens.
        """
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

    def back(self, end: int, tokens: int) -> int:
        """The first place that is at most `tokens` before `end` and breaks no word."""
        last = bisect_right(self._starts, end - 1)
        index = max(0, last - tokens)
        while 0 < index < last and self._words[index] == self._words[index - 1]:
            index += 1
        return self._starts[index] if index < last else end
