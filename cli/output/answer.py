"""Prints the answers of commands: as a table, JSON, JSON Lines, Markdown, or a sentence.

A command returns its answer; `printing_answer` wraps the command so that the answer is printed.
"""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from itertools import compress, islice, zip_longest
from operator import attrgetter
from typing import Any, ClassVar

import click
import msgspec

from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.output import (
    JSON_FORMATS,
    JSON_ON_TERMINAL_OPTION,
    add_options_to_command,
    bold,
    chosen_format,
    dim,
    escape_controls,
    format_option,
    measure_terminal_width,
    print_done,
    print_json,
    print_note,
    put_on_one_line,
)
from memlog.cli.process.error_handler import ignoring_closed_pipe
from memlog.eventlog import timestamps

_GAP = "  "
_LEAST = 14
"""The minimum width of a table column, however narrow the terminal."""
_NEVER_FOLDED = ("id", "position", "file", "folder", "root", "segment", "setting", "topic")
"""Columns whose texts people copy into their next command."""
_LINES_AT_ONCE = 1000
_WIDE = ("W", "F")
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")

FORMAT_OPTIONS = (
    format_option(
        "--format",
        type=click.Choice(("table", *JSON_FORMATS, "md")),
        help="The output format; table by default, md is a Markdown table.",
    ),
    format_option("--json", is_flag=True, help="Short for --format json: one JSON document for programs."),
    format_option(
        "--jsonl", is_flag=True, help="Short for --format jsonl: one JSON object per line for each record."
    ),
)
"""The options of a command that prints records."""

JSON_OPTION = format_option("--json", is_flag=True, help="Print JSON for programs.")
"""The option of a command that prints text unless JSON is requested."""

Columns = Mapping[str, str | Callable[[Any], object]]
"""A table's columns: each name is mapped to the record attribute to show, or to a function of the record."""


class Table(msgspec.Struct, frozen=True):
    """Rows of cells under column names. None is an empty cell.

    is_headed: whether to print the column names; a table of names and values omits them.
    """

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    is_headed: bool = True


class Answer(msgspec.Struct, frozen=True):
    """A command's answer, in every format.

    document: for `json`.
    table: for `table` and `md`.
    records: for `jsonl`, one per line; None if the document is a single record.
    text: lines that `table` prints instead of the table, with control characters escaped.
    notes: further parts of the document, which the other formats print on stderr.
    exit_code: for a command with a verdict; used even if the reader closes the pipe.
    """

    options: ClassVar[tuple[click.Option, ...]] = FORMAT_OPTIONS

    document: object
    table: Table = Table((), ())
    records: Sequence[object] | None = None
    text: Iterable[str] | None = None
    notes: Sequence[str] = ()
    exit_code: int | None = None

    def print(self, ctx: click.Context) -> int:
        """Print the answer in the chosen format, and return the exit code."""
        with nullcontext() if self.exit_code is None else ignoring_closed_pipe():
            self._print_as(chosen_format(ctx))
        return self.exit_code or 0

    def _print_as(self, form: str) -> None:
        if form == "json" or (form == "jsonl" and self.records is None):
            print_json(self.document)
            return
        if form == "jsonl":
            print_json(*(self.records or ()))
        elif form == "md":
            heads = (self.table.columns, ["---"] * len(self.table.columns))
            _echo_lines(
                f"| {' | '.join(map(_markdown_cell, cells))} |" for cells in (*heads, *self.table.rows)
            )
        else:
            self._print_text()
        for text in self.notes:
            print_note(text)

    def _print_text(self) -> None:
        _echo_lines(_align_rows(self.table) if self.text is None else self.text)


class TextAnswer(Answer, frozen=True):
    """An answer printed as lines of text, or as JSON."""

    options: ClassVar = (JSON_OPTION,)


class Done(msgspec.Struct, frozen=True):
    """The result of a command: a sentence on a terminal, otherwise JSON."""

    options: ClassVar = (JSON_ON_TERMINAL_OPTION,)

    document: object
    sentence: str

    def print(self, ctx: click.Context) -> int:
        """Print the result and return the exit code."""
        print_done(ctx, self.document, self.sentence)
        return 0


def printing_answer(command: Callable[..., Answer | Done]) -> Callable[..., int]:
    """Wrap a command to print its answer, and add the options of the answer's class."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> int:  # noqa: ANN401
        return command(*args, **kwargs).print(click.get_current_context())

    return add_options_to_command(*command.__annotations__["return"].options)(run)


def list_answer(
    name: str,
    records: Sequence[object],
    columns: Columns,
    *,
    text: Iterable[str] | None = None,
    notes: Sequence[str] = (),
    if_empty: str | None = None,
) -> Answer:
    """Return an answer with the document `{name: records}` and a table with one row per record.

    text: lines to print instead of the table.
    if_empty: the note if there are no records; `no <name>` by default.
    """
    if not records:
        notes = [if_empty or f"no {name.replace('_', ' ')}"]
    return records_answer({name: records}, records, columns, text=text, notes=notes)


def records_answer(
    document: object,
    records: Sequence[object],
    columns: Columns,
    **others: Any,  # noqa: ANN401
) -> Answer:
    """Return an answer with a document and a table with one row for each of its records.

    others: fields of `Answer`.
    """
    return Answer(document, table_of_records(records, columns), records, **others)


def table_of_records(records: Iterable[object], columns: Columns) -> Table:
    """Return a table with one row per record."""
    cells = [attrgetter(cell) if isinstance(cell, str) else cell for cell in columns.values()]
    # Generated lazily, in the order of printing: the first time of an answer names its zone.
    return Table([*columns], ([cell(record) for cell in cells] for record in records))


def rows_answer(
    document: object, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: Iterable[str]
) -> Answer:
    """Return an answer whose table shows parts of a document; `jsonl` prints each row as an object."""
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return Answer(document=document, table=Table(columns, rows), records=records, notes=[*notes])


def table_of_named_values(values: Mapping[str, object]) -> Table:
    """Return a table with one row per name and value."""
    return Table(("name", "value"), list(values.items()), is_headed=False)


def notes_on_omitted_parts(silent: Mapping[str, str]) -> list[str]:
    """Return a note on each part of a search that was left out, and why."""
    return [f"{side}: {why}" for side, why in silent.items()]


def align_table_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table, for an answer that prints more than the table."""
    return [*_align_rows(Table(columns, rows))]


def fold_text_into_lines(text: str, indent: str = "") -> Iterator[str]:
    """Yield a text in lines that fit the terminal; as one line if stdout is not a terminal."""
    room = measure_terminal_width(sys.stdout)
    for line in [text] if room is None else _wrap_text(text, max(_LEAST, room - len(indent))):
        yield indent + line


def _echo_lines(lines: Iterable[str]) -> None:
    # click.echo flushes and strips styles: calling it for each of 200,000 lines took 1 s.
    rest = iter(lines)
    while some := list(islice(rest, _LINES_AT_ONCE)):
        click.echo("\n".join(some))


def _markdown_cell(cell: object) -> str:
    """Escape what would end a cell or start a tag (https://github.github.com/gfm/#tables-extension-)."""
    text = escape_controls(_format_cell(cell)).replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<")
    return "<br>".join(text.splitlines())


def _align_rows(table: Table) -> Iterator[str]:
    rows = [[put_on_one_line(_format_cell(cell)) for cell in row] for row in table.rows]
    room = measure_terminal_width(sys.stdout)
    names = table.columns
    if room is not None and rows:
        filled = [any(texts) for texts in zip(*rows, strict=True)]
        names = list(compress(names, filled))
        rows = list(_fold_rows(names, [list(compress(row, filled)) for row in rows], room, table.is_headed))
    columns = list(zip(*rows, strict=True))
    printed = [
        _pad_column(name, texts, is_headed=table.is_headed, is_last=number == len(columns))
        for number, (name, texts) in enumerate(zip(names, columns, strict=False), 1)
    ]
    for cells in zip(*printed, strict=True):
        yield _GAP.join(cells).rstrip()


def _pad_column(name: str, cells: Iterable[str], *, is_headed: bool, is_last: bool) -> list[str]:
    texts = [name, *cells] if is_headed else [*cells]
    # The last column is not padded: its texts may be long, and slow to measure.
    width = 0 if is_last else max(map(_display_width, texts))
    padded = texts if is_last else [text + " " * (width - _display_width(text)) for text in texts]
    head = [bold(text) for text in padded[:is_headed]]
    body = padded[is_headed:]
    return head + ([dim(text) for text in body] if name == "position" else body)


def _fold_rows(
    names: Sequence[str], rows: list[list[str]], room: int, is_headed: bool
) -> Iterator[list[str]]:
    """Yield the rows as lines of cells, folding the widest foldable columns to fit into `room`."""
    widths = [max(map(_display_width, texts)) for texts in zip(*rows, strict=True)]
    if is_headed:
        widths = [max(width, len(name)) for width, name in zip(widths, names, strict=True)]
    foldable = [name not in _NEVER_FOLDED for name in names]
    taken = len(_GAP) * (len(widths) - 1)

    def fits_in_room(most: int) -> bool:
        folded = [min(width, most) if can else width for width, can in zip(widths, foldable, strict=True)]
        return taken + sum(folded) <= room

    most = next((most for most in range(room, _LEAST, -1) if fits_in_room(most)), _LEAST)
    for row in rows:
        lines = [
            list(_wrap_text(text, most)) if can else [text] for text, can in zip(row, foldable, strict=True)
        ]
        yield from map(list, zip_longest(*lines, fillvalue=""))


def _wrap_text(text: str, width: int) -> Iterator[str]:
    start = 0
    while (end := _find_end_of_line(text, start, width)) < len(text):
        space = text.rfind(" ", start + 1, end + 1)
        end = space if space > 0 else end
        yield text[start:end].rstrip()
        start = end + (space > 0)
    yield text[start:]


def _find_end_of_line(text: str, start: int, width: int) -> int:
    if text.isascii():
        return min(start + width, len(text))
    for index in range(start, len(text)):
        width -= _character_width(text[index])
        if width < 0:
            return index
    return len(text)


def _format_cell(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    text = "" if cell is None else str(cell)
    return format_in_local_time(text) if timestamps.is_canonical(text) else text


def _display_width(text: str) -> int:
    """Return the width of `text` on a terminal: Chinese characters take two columns, combining marks none."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
