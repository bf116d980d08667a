"""The text of files that are no plain text: HTML and PDF, by the libraries of memlog-store[documents]."""

from collections.abc import Callable
from importlib import import_module

EXTRA = "memlog-store[documents]"
_READERS = {"html": "memlog.service.documents.html_text", "pdf": "memlog.service.documents.pdf_text"}


class NoReader(Exception):
    """The library for this type is not installed."""


class Damaged(Exception):
    """The file is not what its name says; the message is what the library says of it."""


def extracted(data: bytes, filetype: str) -> str:
    """The text of the bytes of a file; HTML is UTF-8.

    Raises:
        NoReader: the extra is not installed.
        Damaged: the library cannot read it.
    """
    text_of = _reader(filetype)
    try:
        return text_of(data)
    except MemoryError:
        raise
    except RecursionError as error:
        raise Damaged("it is nested too deeply") from error
    except Exception as error:  # a damaged file leads the libraries into errors of any kind
        raise Damaged(f"{type(error).__name__}: {error}") from error


def _reader(filetype: str) -> Callable[[bytes], str]:
    try:
        reader: Callable[[bytes], str] = import_module(_READERS[filetype]).text_of
    except ModuleNotFoundError as error:
        raise NoReader(filetype) from error
    return reader
