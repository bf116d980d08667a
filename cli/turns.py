"""What was said and written around a place, for people."""

from memlog import Surroundings, WindowMessage
from memlog.cli.output import dim, minute, one_line, printable
from memlog.query.speakers import speaker


def who(message: WindowMessage) -> str:
    """Who says it: the role, and the speaker's name."""
    return speaker(message.role, message.name)


def turn(message: WindowMessage) -> str:
    """A message, on lines of its own."""
    head = one_line(f"[{minute(message.ts)}] {who(message)}:")
    return set_in(f"{head} {printable(message.content)}", 4)


def lines_around(found: Surroundings, own_id: str) -> list[str]:
    """The messages around the one with the id `own_id`, which has a `>`; or the text around a passage."""
    if found.content is not None:
        head = dim(f"  lines {found.start_line} to {found.end_line}:")
        return [head, set_in(f"    {printable(found.content.rstrip())}", 4)]
    return [
        set_in(f"{'>' if message.id == own_id else ' '} {turn(message)}", 2) for message in found.messages
    ]


def set_in(text: str, width: int) -> str:
    """`text` with its further lines set in, so that none can pass for what begins farther left."""
    return text.replace("\n", "\n" + " " * width)
