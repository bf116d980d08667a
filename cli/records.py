"""Answers of commands that list records."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from memlog.cli.answer import Answer, Table

T = TypeVar("T")


def list_answer(
    name: str,
    records: Sequence[T],
    columns: tuple[str, ...],
    row: Callable[[T], Sequence[object]],
    *,
    text: Iterable[str] | None = None,
    if_empty: str | None = None,
) -> Answer:
    """A document `{name: records}`, and a table with a row for each record.

    text: lines for people in place of the table.
    if_empty: the note of an answer without records; `no <name>` by default.
    """
    return Answer(
        document={name: records},
        table=Table(columns, [row(each) for each in records]),
        records=records,
        text=None if text is None else list(text),
        notes=[] if records else [if_empty or f"no {name.replace('_', ' ')}"],
    )


def rows_answer(
    document: object, columns: tuple[str, ...], rows: Sequence[Sequence[object]], notes: Iterable[str]
) -> Answer:
    """A table of the parts of a document; `jsonl` prints each row as an object."""
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    return Answer(document=document, table=Table(columns, rows), records=records, notes=list(notes))
