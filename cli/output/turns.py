"""Formats messages, and the surroundings of a hit, as text."""

from memlog import Surroundings, WindowMessage
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.output import dim, escape_controls, put_on_one_line


def format_message(message: WindowMessage) -> str:
    """Format a message with its time and speaker."""
    head = put_on_one_line(f"[{format_in_local_time(message.ts)}] {message.speaker}:")
    return indent_all_but_first_line(f"{head} {escape_controls(message.content)}", 4)


def format_surroundings(found: Surroundings, own_id: str) -> list[str]:
    """Format the messages around a hit, marking the hit with `>`, or the text around a passage."""
    if found.content is not None:
        head = dim(f"  lines {found.start_line} to {found.end_line}:")
        return [head, indent_all_but_first_line(f"    {escape_controls(found.content.rstrip())}", 4)]
    return [
        indent_all_but_first_line(f"{'>' if message.id == own_id else ' '} {format_message(message)}", 2)
        for message in found.messages
    ]


def indent_all_but_first_line(text: str, width: int) -> str:
    """Indent all lines of `text` but the first, so that none looks like one of memlog's own."""
    return text.replace("\n", "\n" + " " * width)
