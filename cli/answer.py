"""The forms in which a command prints its answer: a table for people, JSON, JSON Lines, Markdown.

A command makes one `Answer` and prints it with `print_answer`; which form was asked for is known here alone.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import click
import msgspec

from memlog.cli.output import bold, dim, note, one_line, print_json, printable

FORMATS = ("table", "json", "jsonl", "md")
JSON_FORMATS = ("json", "jsonl")

_CHOSEN = "memlog.format"
_GAP = "  "
_LINES_AT_ONCE = 1000
_WIDE = ("W", "F")
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")


class Table(msgspec.Struct, frozen=True):
    """Rows of cells under the names of their columns. A cell of None is empty.

    is_headed: whether people need the names; a table of names and values speaks for itself.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    is_headed: bool = True


class Answer(msgspec.Struct, frozen=True):
    """What a command answers, ready for every form.

    document: what `json` prints, as one document.
    table: what `table` and `md` print.
    records: what `jsonl` prints, one a line; None where the document is one record itself.
    text: lines for people in the place of the table, where they say it more clearly; they are `printable`.
    notes: what the document says beside its records; in the other forms it goes to stderr.
    """

    document: object
    table: Table
    records: Sequence[object] | None = None
    text: Sequence[str] | None = None
    notes: Sequence[str] = ()


def named_values(values: Mapping[str, object]) -> Table:
    """A table of one record: a row per member."""
    return Table(("name", "value"), list(values.items()), is_headed=False)


def silence(silent: Mapping[str, str]) -> list[str]:
    """Notes of what did not take part, and why."""
    return [f"{side}: {why}" for side, why in silent.items()]


def format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--format`, `--json` and `--jsonl` of a command that prints its answer in any form."""
    for option in (
        click.option(
            "--jsonl",
            is_flag=True,
            expose_value=False,
            callback=_choose,
            help="Short for --format jsonl: a JSON object a line for each record.",
        ),
        click.option(
            "--json",
            is_flag=True,
            expose_value=False,
            callback=_choose,
            help="Short for --format json: one JSON document for programs.",
        ),
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_choose,
            help="How to print; table where not given, md is a Markdown table.",
        ),
    ):
        command = option(command)
    return command


def print_answer(ctx: click.Context, answer: Answer) -> None:
    """Print `answer` in the form that the command line asks for."""
    form = ctx.meta.get(_CHOSEN, "table")
    if form == "json" or (form == "jsonl" and answer.records is None):
        print_json(answer.document)
        return
    if form == "jsonl":
        print_json(*(answer.records or ()))
    elif form == "md":
        _echo(_markdown(answer.table))
    else:
        _echo(_aligned(answer.table) if answer.text is None else answer.text)
    for text in answer.notes:
        note(text)


def _choose(ctx: click.Context, option: click.Parameter, value: Any) -> None:  # noqa: ANN401 - a name or a flag
    if not value:
        return
    asked = value if option.name == "format" else str(option.name)
    if ctx.meta.setdefault(_CHOSEN, asked) != asked:
        raise click.UsageError(f"{asked} and {ctx.meta[_CHOSEN]}: the output can have one format only", ctx)


def _echo(lines: Iterable[str]) -> None:
    # Each echo flushes and looks for styles: a call for each of 200,000 lines took 1 s.
    rest = iter(lines)
    while some := list(islice(rest, _LINES_AT_ONCE)):
        click.echo("\n".join(some))


def _markdown(table: Table) -> Iterator[str]:
    for cells in (table.columns, ["---"] * len(table.columns), *table.rows):
        yield f"| {' | '.join(_markdown_cell(cell) for cell in cells)} |"


def _markdown_cell(cell: object) -> str:
    """What would end the cell, its row, or pass for a tag is escaped (https://github.github.com/gfm/#tables-extension-)."""
    text = printable(_text(cell)).replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<")
    return "<br>".join(text.splitlines())


def _aligned(table: Table) -> Iterator[str]:
    columns = list(zip(*table.rows, strict=True))
    printed = [
        _column(name, cells, is_headed=table.is_headed, is_last=number == len(columns))
        for number, (name, cells) in enumerate(zip(table.columns, columns, strict=False), 1)
    ]
    for cells in zip(*printed, strict=True):
        yield _GAP.join(cells).rstrip()


def _column(name: str, cells: Iterable[object], *, is_headed: bool, is_last: bool) -> list[str]:
    texts = [one_line(_text(cell)) for cell in cells]
    if is_headed:
        texts.insert(0, name)
    # The last column is not padded: its texts may be long, and to measure one takes a look at each character.
    width = 0 if is_last else max(map(_width, texts))
    padded = texts if is_last else [_padded(text, width) for text in texts]
    head = [bold(text) for text in padded[:is_headed]]
    body = padded[is_headed:]
    return head + ([dim(text) for text in body] if name == "position" else body)


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)


def _padded(text: str, width: int) -> str:
    return text.ljust(width) if text.isascii() else text + " " * (width - _width(text))


def _width(text: str) -> int:
    """How many columns of a terminal `text` takes: Chinese characters take two, marks none."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def asks_for_json(command: click.Command, args: Sequence[str]) -> bool:
    """Whether a command line asks for JSON: read as click reads it, also where the rest of it is wrong.

    A word that only looks like the option, since it is the value of another, does not ask for it.
    """
    words = iter(args)
    for word in words:
        name, equals, value = word.partition("=")
        option = _option(command, name)
        if name in ("--json", "--jsonl"):
            return True
        if name == "--format" or (option is not None and not option.is_flag):
            value = value if equals else next(words, "")
            if name == "--format" and value in JSON_FORMATS:
                return True
        elif word == "--" and not isinstance(command, click.Group):
            return False
        elif option is None:
            command = _subcommand(command, word)
    return False


def _option(command: click.Command, name: str) -> click.Option | None:
    return next(
        (option for option in command.params if isinstance(option, click.Option) and name in option.opts),
        None,
    )


def _subcommand(command: click.Command, word: str) -> click.Command:
    """The command that `word` calls; `command` itself where it calls none."""
    found = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
    return found or command
