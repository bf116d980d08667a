"""Renders messages, and the surroundings of a hit, as text."""

from memlog import Surroundings, WindowMessage
from memlog.cli.options.zone import minute
from memlog.cli.output.output import dim, one_line, printable


def turn(message: WindowMessage) -> str:
    """Return a message with its time and speaker."""
    head = one_line(f"[{minute(message.ts)}] {message.speaker}:")
    return set_in(f"{head} {printable(message.content)}", 4)


def lines_around(found: Surroundings, own_id: str) -> list[str]:
    """Return the messages around a hit, with `>` before the hit itself, or the text around a passage."""
    if found.content is not None:
        head = dim(f"  lines {found.start_line} to {found.end_line}:")
        return [head, set_in(f"    {printable(found.content.rstrip())}", 4)]
    return [
        set_in(f"{'>' if message.id == own_id else ' '} {turn(message)}", 2) for message in found.messages
    ]


def set_in(text: str, width: int) -> str:
    """Indent all lines of `text` except the first, so that none looks like a line of memlog's own."""
    return text.replace("\n", "\n" + " " * width)
