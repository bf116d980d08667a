"""The program of the bounded process: libraries read files, and patterns search texts, of strangers.

It opens no file of them and no connection: requests come through stdin, replies go to stdout, and what
libraries print goes to stderr, which memlog keeps. Limits of the kernel end it, whatever code runs.
"""

import math
import os
import re
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from memlog.service.bounded_process.protocol import (
    LENGTH_BYTES,
    MAX_TEXT_BYTES,
    Extract,
    Failed,
    Match,
    Reply,
    Request,
    SearchTexts,
    TextReply,
    Verdicts,
    framed,
    length_of,
)

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_PR_SET_PDEATHSIG = 1
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "os.spawn")
_DETAIL = 300
"""Characters of a library's message that are kept."""

_specs: "dict[bytes, GitIgnoreSpec]" = {}


def main() -> None:
    """Answer requests until stdin ends. The only argument: bytes of memory that it may take."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _confine(int(sys.argv[1]))
        decoder = msgspec.msgpack.Decoder(Request)
        while (message := _next(sys.stdin.buffer)) is not None:
            request = decoder.decode(message)
            _give_seconds(request.seconds)
            reply = _answer(request)
            sys.stderr.flush()
            replies.write(framed(reply))
            replies.flush()


def _confine(memory: int) -> None:
    """Limit what this process can do, even when hostile code runs in it."""
    # Ctrl-C is for the process that asks; it ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        _lower(limit, most)
    sys.addaudithook(_refuse)


def _lower(limit: int, most: int) -> None:
    _, hard = resource.getrlimit(limit)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(limit, (bound, bound))
    except (OSError, ValueError):
        # macOS bounds no address space.
        if sys.platform != "darwin":
            raise


def _die_with_parent() -> None:
    """Elsewhere than on Linux the end of stdin ends it, and its processor time while it is busy."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _refuse(event: str, _: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError(f"a reader of documents may not: {event}")


def _give_seconds(seconds: int) -> None:
    """Seconds of the processor from now on; the kernel ends the process behind them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    wanted = math.ceil(used.ru_utime + used.ru_stime) + seconds
    bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (bound, hard))


def _next(requests: BinaryIO) -> bytes | None:
    head = requests.read(LENGTH_BYTES)
    return requests.read(length_of(head)) if len(head) == LENGTH_BYTES else None


def _answer(request: Request) -> Reply:
    try:
        match request:
            case Extract():
                return _extracted(request)
            case Match():
                return _matched(request)
            case SearchTexts():
                return _searched(request)
    except MemoryError:
        return Failed("memory")


def _extracted(request: Extract) -> Reply:
    from memlog.service.documents.extracts import Damaged, NoReader, extracted

    try:
        text = extracted(request.data, request.filetype)
    except NoReader:
        return Failed("no_reader")
    except Damaged as error:
        return Failed("damaged", _cut(error))
    return TextReply(text) if len(text.encode()) <= MAX_TEXT_BYTES else Failed("too_large")


def _matched(request: Match) -> Reply:
    try:
        spec = _spec(request)
        paths = (path.decode("utf-8", "surrogateescape") for path in request.paths)
        return Verdicts([spec.check_file(path).include for path in paths])
    except (ValueError, RecursionError, OverflowError) as error:
        return Failed("damaged", _cut(error))


def _searched(request: SearchTexts) -> Reply:
    try:
        return Verdicts([any(map(re.compile(request.pattern).search, request.texts))])
    except (re.error, OverflowError, RecursionError) as error:
        return Failed("damaged", _cut(error))


def _spec(request: Match) -> "GitIgnoreSpec":
    """The rules of a request. As git does, it takes names as bytes and ignores a line that is no rule."""
    if request.rules is not None:
        from pathspec import GitIgnoreSpec

        lines = request.rules.decode("utf-8-sig", "surrogateescape").splitlines()
        try:
            _specs[request.key] = GitIgnoreSpec.from_lines(lines)
        except ValueError:
            _specs[request.key] = GitIgnoreSpec.from_lines(line for line in lines if _is_rule(line))
    return _specs[request.key]


def _is_rule(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _cut(error: Exception) -> str:
    """The message of an error, in valid UTF-8."""
    return str(error)[:_DETAIL].encode(errors="backslashreplace").decode()


if __name__ == "__main__":
    main()
