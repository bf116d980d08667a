"""The faults that make a line unreadable, and how they are detected."""

import re
from collections import deque
from collections.abc import Iterator

from memlog.eventlog.errors import BadInput, LineFault
from memlog.eventlog.events import TYPES

MAX_LINE = 16 * 1024 * 1024
"""The greatest length of a line in bytes, without its newline; longer lines are quarantined unread."""

MAX_DEPTH = 64
"""The deepest allowed nesting of objects and lists. The parser's own limit depends on the caller's stack, so
a rebuild could quarantine lines that a catch-up accepted."""

DAMAGE: tuple[LineFault, ...] = ("bad_crc", "missing_crc", "conflict_marker")
"""The faults that show that a segment was altered after it was written."""

HINTS: dict[LineFault, str] = {
    "bad_crc": "the line changed after it was written: restore a backup; in input, omit `at` and `crc`",
    "torn": "a line must be one complete JSON object",
    "not_json": "a line must be one JSON object (https://jsonlines.org)",
    "not_utf8": "encode text as UTF-8",
    "lone_surrogate": "write the character itself or both halves of the pair",
    "too_long": "split it: an event can have at most 16 MiB",
    "too_deep": "use fewer levels of nesting",
    "duplicate_key": "remove the duplicate member",
    "invalid": "help(memlog.TYPE) lists the members of a type",
    "unknown_type": f"known types: {', '.join(TYPES)}",
    "newer_version": "update memlog to read this line",
    "conflict_marker": "keep the lines of both sides and remove git's markers; then run store.erasure.scrub()"
    " if one side was scrubbed; see docs/copies.md",
    "missing_crc": "the line was edited: memlog writes `at` only together with `crc`",
    "wrong_stream": "the event's chat or type does not match its folder",
}
"""Advice for each fault."""

TOO_LONG = BadInput("the input is longer than 16 MiB", hint=HINTS["too_long"], code="too_long")
"""The error for an input over 16 MiB."""


class BadLine(Exception):
    """A line cannot be projected. `detail` is for people; its wording varies with library versions."""

    def __init__(self, reason: LineFault, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason: LineFault = reason
        self.detail = detail


# Plain strings, which `re` compiles at first use, because valid lines need none of these patterns.
_ESCAPE = rb"(?s)\\u([0-9a-fA-F]{4})|\\."
# https://git-scm.com/docs/git-merge#_how_conflicts_are_presented
_CONFLICT_MARKER = rb"(?s)(?:<{7}|>{7}|\|{7}) .*|={7}\r?"
# Possessive, because an unclosed string would otherwise cost a backtracking point per byte.
_STRING_OR_BRACKET = rb'(?s)"(?:[^"\\]++|\\.)*+(?P<end>"?)|[{}\[\]]'


def check_line_length(length: int) -> None:
    """Raise BadLine if a line is longer than 16 MiB."""
    if length > MAX_LINE:
        raise BadLine("too_long", f"{length:,} bytes")


def check_utf8_and_depth(line: bytes) -> None:
    """Raise BadLine if a line is not valid UTF-8 or is nested deeper than MAX_DEPTH."""
    try:
        # Decode all bytes, because msgspec does not check members that it skips.
        line.decode()
    except UnicodeDecodeError as error:
        if _is_torn(line) and error.end == len(line):
            raise BadLine("torn", "the line ends inside a character") from error
        raise BadLine("not_utf8", f"byte {error.start}: {error.reason}") from error
    if line.find(b"{", 1) < 0 and line.find(b"[") < 0:  # most lines: faster than counting
        return
    if (
        line.count(b"{") + line.count(b"[") > MAX_DEPTH
        and max(_measure_nesting_depths(line), default=0) > MAX_DEPTH
    ):
        raise BadLine("too_deep", f"more than {MAX_DEPTH} nested objects and lists")


def diagnose_json(line: bytes, parser_says: str) -> BadLine:
    """Determine what is wrong with a line that the JSON parser rejected."""
    if re.fullmatch(_CONFLICT_MARKER, line):
        return BadLine("conflict_marker", "git could not merge two versions of the file")
    if _is_torn(line):
        return BadLine("torn", "the line ends inside an object")
    surrogate = _find_lone_surrogate(line)
    return BadLine("not_json", parser_says) if surrogate is None else BadLine("lone_surrogate", surrogate)


def _is_torn(line: bytes) -> bool:
    """Whether `line` is an incomplete object."""
    if not line.startswith(b"{"):
        return False
    (last,) = deque(_measure_nesting_depths(line), maxlen=1) or (0,)
    return last > 0


def _measure_nesting_depths(line: bytes) -> Iterator[int]:
    """Yield the nesting depth after each bracket; an unterminated string counts as one more level."""
    depth = 0
    for token in re.finditer(_STRING_OR_BRACKET, line):
        match token[0][:1]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case _ if token["end"]:
                continue
            case _:
                yield depth + 1
                return
        yield depth


def _find_lone_surrogate(line: bytes) -> str | None:
    """Return the first escape of an unpaired surrogate, or None."""
    high: re.Match[bytes] | None = None
    for escape in re.finditer(_ESCAPE, line):
        code = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= code <= 0xDFFF
        if high is not None and not (is_low and escape.start() == high.end()):
            return high[0].decode()
        if high is None and is_low:
            return escape[0].decode()
        high = escape if 0xD800 <= code <= 0xDBFF else None
    return None if high is None else high[0].decode()
