"""The bounded process's program: parses untrusted files, and searches with untrusted patterns.

Requests arrive on stdin, and replies go to stdout. Libraries print to stderr, which memlog keeps. The
program opens no connection. Kernel limits kill it even if it runs hostile code.
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

from memlog.query.foreign_tables import TablePage, read_table_in_pages
from memlog.service.engine import sandbox
from memlog.service.engine.sandbox import Failed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pathspec import GitIgnoreSpec

_READERS = {"html": "memlog.service.documents.html_text", "pdf": "memlog.service.documents.pdf_text"}
_PR_SET_PDEATHSIG = 1
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "os.spawn")
_DETAIL = 300
"""How many characters of a library's message are kept."""


def main() -> None:
    """Answer requests until stdin ends. The arguments limit memory and written files, in bytes."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _restrict_process(int(sys.argv[1]), int(sys.argv[2]))
        decoder = msgspec.msgpack.Decoder(sandbox.Request)
        while (message := _read_message(sys.stdin.buffer)) is not None:
            request = decoder.decode(message)
            _limit_seconds(request.seconds)
            reply = _answer_request(request)
            sys.stderr.flush()
            replies.write(sandbox.frame_message(reply))
            replies.flush()


def _restrict_process(memory: int, file_bytes: int) -> None:
    """Limit what this process can do, even if hostile code runs in it."""
    # Ctrl-C is for the parent, which kills this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # On other systems, an orphan ends at the end of stdin or, while it is busy, at its time limit.
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _set_limit(resource.RLIMIT_AS, memory)
    _set_limit(resource.RLIMIT_FSIZE, file_bytes)
    _set_limit(resource.RLIMIT_CORE, 0)
    sys.addaudithook(_forbid_audit_event)


def _set_limit(limit: int, most: int, *, for_good: bool = True) -> None:
    _, hard = resource.getrlimit(limit)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(limit, (bound, bound if for_good else hard))
    except (OSError, ValueError):
        # macOS cannot limit the address space.
        if sys.platform != "darwin":
            raise


def _forbid_audit_event(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"a reader of documents may not: {event}")


def _limit_seconds(seconds: int) -> None:
    """Limit the CPU time that may be used from now on. The kernel kills the process if it needs more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime) + seconds
    _set_limit(resource.RLIMIT_CPU, most, for_good=False)


def _read_message(requests: BinaryIO) -> bytes | None:
    head = requests.read(sandbox.LENGTH_BYTES)
    return requests.read(sandbox.message_length(head)) if len(head) == sandbox.LENGTH_BYTES else None


def _answer_request(request: sandbox.Request) -> sandbox.Reply:
    try:
        match request:
            case sandbox.Extract(data, filetype):
                return extract_text(data, filetype)
            case sandbox.Match(rules, paths):
                spec = _parse_rules(rules)
                names = (path.decode("utf-8", "surrogateescape") for path in paths)
                return [spec.check_file(name).include for name in names]
            case sandbox.ReadTable(path, table, known):
                return _read_first_page(path, table, known)
            case sandbox.MoreRows():
                return next(_PAGES[0])
            case sandbox.EmbedTexts(texts, is_query):
                return _embed_texts(texts, is_query=is_query)
            case sandbox.SearchTexts(pattern, texts):
                return any(map(re.compile(pattern).search, texts))
    except MemoryError:
        most = int(sys.argv[1]) // 1024**2
        return Failed("limit", f"it takes more than {most} MiB of memory", is_final=False)
    except (ValueError, RecursionError, OverflowError, OSError, re.error) as error:
        return Failed("damaged", _shorten(str(error)))


def _embed_texts(texts: list[str], *, is_query: bool) -> bytes | Failed:
    # Imported here: reading documents needs no numpy.
    from memlog.service.engine.multilingual import load_model, why_package_is_unusable

    if (why := why_package_is_unusable()) is not None:
        return Failed("no_reader", _shorten(why))
    vectors: bytes = load_model().encode(texts, is_query=is_query).tobytes()
    return vectors


_PAGES: "list[Iterator[TablePage]]" = []
"""The remaining pages of the table being read."""


def _read_first_page(path: str, table: str, known: list[str]) -> TablePage | Failed:
    # Imported here: most requests read no table.
    from memlog.projector.sqlite import error_types_of_binding

    _PAGES[:] = [read_table_in_pages(path, table, known)]
    try:
        return next(_PAGES[0])
    except error_types_of_binding() as error:
        return Failed("damaged", _shorten(str(error)))


def extract_text(data: bytes, filetype: str) -> str | Failed:
    """Extract the text of an HTML (UTF-8) or PDF file.

    Raises:
        MemoryError: the process has too little memory.
    """
    try:
        reader = import_module(_READERS[filetype])
    except ModuleNotFoundError:
        return Failed("no_reader")
    try:
        text: str = reader.extract_text(data)
    except MemoryError:
        raise
    except RecursionError:
        return Failed("damaged", "it is nested too deeply")
    except Exception as error:  # noqa: BLE001 - a damaged file can cause any error in a library
        return Failed("damaged", _shorten(f"{type(error).__name__}: {error}"))
    if len(text.encode()) > sandbox.MAX_TEXT_BYTES:
        return Failed("limit", "its text is too long for an event")
    return text


@cache
def _parse_rules(rules: bytes) -> "GitIgnoreSpec":
    """Parse a .gitignore as git does: names are bytes, and invalid lines are ignored."""
    from pathspec import GitIgnoreSpec

    lines = rules.decode("utf-8-sig", "surrogateescape").splitlines()
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(line for line in lines if _is_valid_ignore_pattern(line))


def _is_valid_ignore_pattern(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _shorten(message: str) -> str:
    return message[:_DETAIL].encode(errors="backslashreplace").decode()


if __name__ == "__main__":
    main()
