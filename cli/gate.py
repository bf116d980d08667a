"""memlog gate."""

import click
import msgspec

from memlog import should_retrieve
from memlog.cli.answer import Answer, named_values, printed
from memlog.cli.param_types import TEXT
from memlog.cli.stdin import stdin_text


@click.command()
@click.argument("text", type=TEXT, required=False)
@printed
def gate(text: str | None) -> Answer:
    """Say whether a look into the memory is worth it for TEXT; for stdin without one, or with -.

    Not for greetings, acknowledgements, pure code and what is too short; but for questions, words of memory,
    and whatever says enough, in Chinese, English, Finnish, German, Russian, Spanish and Swedish. By fixed
    rules, without a model or a store. The exit code is 0 where it is worth it, 1 where it is not.
    """
    said = stdin_text() if text in (None, "-") else str(text)
    found = should_retrieve(said)
    told = f" ({found.words})" if found.words else ""
    return Answer(
        document=found,
        table=named_values(msgspec.structs.asdict(found)),
        text=[f"{'yes' if found else 'no'}: {found.reason}{told}"],
        exit_code=0 if found else 1,
    )
