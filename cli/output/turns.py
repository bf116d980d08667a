"""Formats messages, and the surroundings of a hit, as text."""

from memlog import Surroundings, WindowMessage
from memlog.cli.options.zone import format_minute
from memlog.cli.output.output import dim, escape_controls, one_line


def format_message(message: WindowMessage) -> str:
    """Format a message with its time and speaker."""
    head = one_line(f"[{format_minute(message.ts)}] {message.speaker}:")
    return indent_rest(f"{head} {escape_controls(message.content)}", 4)


def surroundings_lines(found: Surroundings, own_id: str) -> list[str]:
    """Format the messages around a hit, marking the hit with `>`, or the text around a passage."""
    if found.content is not None:
        head = dim(f"  lines {found.start_line} to {found.end_line}:")
        return [head, indent_rest(f"    {escape_controls(found.content.rstrip())}", 4)]
    return [
        indent_rest(f"{'>' if message.id == own_id else ' '} {format_message(message)}", 2)
        for message in found.messages
    ]


def indent_rest(text: str, width: int) -> str:
    """Indent all lines of `text` but the first, so that none looks like one of memlog's own."""
    return text.replace("\n", "\n" + " " * width)
