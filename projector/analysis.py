"""The analyzer: what the full text is made of, for the index and for queries alike.

FTS5's own tokenizer then splits words, folds case and diacritics, and stems English (porter).
"""

import re
import unicodedata
from collections.abc import Iterator

VERSION = 1
"""Changes with any change to what this module makes of a text; part of the projection id."""

_CJK = re.compile(
    "[\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]+"
)


def analysed(text: str) -> str:
    """`text` with runs of Chinese, Japanese and Korean as overlapping pairs, and a single last character.

    So each character begins one token, and one character alone is found as a prefix: 喝绿茶 becomes
    喝绿 绿茶 茶.
    """
    if text.isascii():
        return text.replace("\0", " ")
    return _CJK.sub(lambda run: f" {' '.join(_pairs(run[0]))} {run[0][-1]} ", _prepared(text))


def analysed_query(text: str) -> str:
    """`text` as `analysed` has it, without the single last characters of runs of two and more.

    Those stand in the index only at the end of a run, so a phrase that asked for one would miss.
    """
    return _CJK.sub(lambda run: f" {' '.join(_pairs(run[0])) or run[0]} ", _prepared(text))


def is_cjk(token: str) -> bool:
    """Whether `token` is of a script that is indexed in pairs of characters."""
    return _CJK.fullmatch(token) is not None


def passage(label: str | None, content: str) -> str:
    """The text of a passage as it is indexed and embedded: with its speaker, or its memory's title."""
    return f"{label}: {content}" if label else content


def memory_label(title: str, content: str) -> str | None:
    """The title where it says what the content does not: the default title is the content's beginning."""
    return None if content.startswith(title) else title


def _pairs(run: str) -> Iterator[str]:
    return (run[index : index + 2] for index in range(len(run) - 1))


def _prepared(text: str) -> str:
    # NUL would end the text inside SQLite's tokenizer.
    return unicodedata.normalize("NFC", text).replace("\0", " ")
