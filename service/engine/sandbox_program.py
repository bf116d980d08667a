"""The program of the bounded process: libraries read files, and patterns search texts, of strangers.

It opens no file of them and no connection: requests come through stdin, replies go to stdout, and what
libraries print goes to stderr, which memlog keeps. Limits of the kernel end it, even if hostile code runs.
"""

import math
import os
import re
import resource
import signal
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from memlog.query.foreign_tables import TablePage, pages
from memlog.service.engine.sandbox import (
    LENGTH_BYTES,
    MAX_TEXT_BYTES,
    EmbedTexts,
    Extract,
    Failed,
    Match,
    MoreRows,
    ReadTable,
    Reply,
    Request,
    SearchTexts,
    TextReply,
    VectorsReply,
    Verdicts,
    framed,
    length_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pathspec import GitIgnoreSpec

_READERS = {"html": "memlog.service.documents.html_text", "pdf": "memlog.service.documents.pdf_text"}
_PR_SET_PDEATHSIG = 1
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "os.spawn")
_DETAIL = 300
"""Characters of a library's message that are kept."""


def main() -> None:
    """Answer requests until stdin ends. The arguments: bytes of memory that it may take, and of a file."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _confine(int(sys.argv[1]), int(sys.argv[2]))
        decoder = msgspec.msgpack.Decoder(Request)
        while (message := _next(sys.stdin.buffer)) is not None:
            request = decoder.decode(message)
            _give_seconds(request.seconds)
            reply = _answer(request)
            sys.stderr.flush()
            replies.write(framed(reply))
            replies.flush()


def _confine(memory: int, file_bytes: int) -> None:
    """Limit what this process can do, even when hostile code runs in it."""
    # Ctrl-C is for the parent, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    _lower(resource.RLIMIT_AS, memory)
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    sys.addaudithook(_refuse)


def _lower(limit: int, most: int, *, for_good: bool = True) -> None:
    _, hard = resource.getrlimit(limit)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(limit, (bound, bound if for_good else hard))
    except (OSError, ValueError):
        # macOS bounds no address space.
        if sys.platform != "darwin":
            raise


def _die_with_parent() -> None:
    """End this process when its parent dies, on Linux only.

    Elsewhere the end of stdin ends the process, or its time limit while it is busy.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"a reader of documents may not: {event}")


def _give_seconds(seconds: int) -> None:
    """Limit the processor time from now on; the kernel ends the process that exceeds it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime) + seconds
    _lower(resource.RLIMIT_CPU, most, for_good=False)


def _next(requests: BinaryIO) -> bytes | None:
    head = requests.read(LENGTH_BYTES)
    return requests.read(length_of(head)) if len(head) == LENGTH_BYTES else None


def _answer(request: Request) -> Reply:
    try:
        match request:
            case Extract(data, filetype):
                return extracted(data, filetype)
            case Match(rules, paths):
                spec = _spec(rules)
                names = (path.decode("utf-8", "surrogateescape") for path in paths)
                return Verdicts([spec.check_file(name).include for name in names])
            case ReadTable(path, table, known):
                return _first_rows(path, table, known)
            case MoreRows():
                return next(_PAGES[0])
            case EmbedTexts(texts, is_query):
                return _embedded(texts, is_query=is_query)
            case SearchTexts(pattern, texts):
                return Verdicts([any(map(re.compile(pattern).search, texts))])
    except MemoryError:
        most = int(sys.argv[1]) // 1024**2
        return Failed("limit", f"it takes more than {most} MiB of memory", is_final=False)
    except (ValueError, RecursionError, OverflowError, OSError, re.error) as error:
        return Failed("damaged", _cut(str(error)))


def _embedded(texts: list[str], *, is_query: bool) -> VectorsReply | Failed:
    # Imported here: readers of documents need no numpy.
    from memlog.service.engine.multilingual import load, why_unfit

    if (why := why_unfit()) is not None:
        return Failed("no_reader", _cut(why))
    vectors: bytes = load().encode(texts, is_query=is_query).tobytes()
    return VectorsReply(vectors)


_PAGES: "list[Iterator[TablePage]]" = []
"""What is left of the table that is read."""


def _first_rows(path: str, table: str, known: list[str]) -> TablePage | Failed:
    # Imported here: most readers read no table.
    from memlog.projector.sqlite import error_types

    _PAGES[:] = [pages(path, table, known)]
    try:
        return next(_PAGES[0])
    except error_types() as error:
        return Failed("damaged", _cut(str(error)))


def extracted(data: bytes, filetype: str) -> TextReply | Failed:
    """Return the text of the bytes of an HTML (UTF-8) or PDF file.

    Raises:
        MemoryError: the process has not enough.
    """
    try:
        reader = import_module(_READERS[filetype])
    except ModuleNotFoundError:
        return Failed("no_reader")
    try:
        text: str = reader.text_of(data)
    except MemoryError:
        raise
    except RecursionError:
        return Failed("damaged", "it is nested too deeply")
    except Exception as error:  # noqa: BLE001 - a damaged file leads the libraries into errors of any kind
        return Failed("damaged", _cut(f"{type(error).__name__}: {error}"))
    if len(text.encode()) > MAX_TEXT_BYTES:
        return Failed("limit", "its text is too long for an event")
    return TextReply(text)


@cache
def _spec(rules: bytes) -> "GitIgnoreSpec":
    """Parse the rules of a .gitignore.

    As git does, it takes names as bytes and ignores invalid lines.
    """
    from pathspec import GitIgnoreSpec

    lines = rules.decode("utf-8-sig", "surrogateescape").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(line for line in lines if _is_rule(line))


def _is_rule(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _cut(message: str) -> str:
    return message[:_DETAIL].encode(errors="backslashreplace").decode()


if __name__ == "__main__":
    main()
