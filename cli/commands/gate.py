"""memlog gate."""

import click
import msgspec

from memlog import should_retrieve
from memlog.cli.options.param_types import TEXT
from memlog.cli.options.settings import Command
from memlog.cli.output.answer import Answer, printing_answer, table_of_named_values
from memlog.cli.process.stdin import read_stdin_text


@click.command(cls=Command)
@click.argument("text", type=TEXT, required=False)
@printing_answer
def gate(text: str | None) -> Answer:
    """Decide whether TEXT is worth a search of the memory; without TEXT, or with -, read it from stdin.

    Questions, words about memory, and texts with enough content are worth it, in Chinese, English, Finnish,
    German, Russian, Spanish and Swedish; greetings, acknowledgements, pure code and very short texts are not.
    Fixed rules decide, without a model or a store. Exits with 0 if it is worth it, otherwise 1.
    """
    message = read_stdin_text() if text in (None, "-") else str(text)
    found = should_retrieve(message)
    told = f" ({found.words})" if found.words else ""
    return Answer(
        document=found,
        table=table_of_named_values(msgspec.structs.asdict(found)),
        text=[f"{'yes' if found else 'no'}: {found.reason}{told}"],
        exit_code=0 if found else 1,
    )
