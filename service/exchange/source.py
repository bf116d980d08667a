"""The files and tables of another program, as an importer reads them: nothing of them is changed."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import pathname2url

from memlog.eventlog import timestamps
from memlog.eventlog.streams import shown
from memlog.projector.sqlite import binding, error_types
from memlog.service.importers import Unreadable

_LONGEST = 64 * 2**20
"""Bytes of a text file."""

_PATIENCE = 2.0
"""Seconds to wait for a program that writes to its database."""

_MILLISECONDS = 1e11
"""A number above this counts milliseconds since 1970, one below seconds: it is the year 5138 in seconds."""


class ForeignFiles:
    """A file or a folder of another program.

    suffix: of the prefix of its ids, where another source has them: `~1f0c9a3e`.
    unknown: how many rows have a value in a column that the importer does not know, by `table.column`.
    """

    def __init__(self, path: Path, suffix: str = "") -> None:
        self.path, self.suffix = path, suffix
        self.unknown: Counter[str] = Counter()

    def files(self, *patterns: str) -> list[Path]:
        """The files of a folder that match, sorted, without links that lead out of it; or the file itself."""
        if not self.path.is_dir():
            return [self.path]
        root = self.path.resolve()
        found = {path for pattern in patterns for path in self.path.glob(pattern)}
        return sorted(
            path
            for path in found
            if path.is_file()
            and path.resolve().is_relative_to(root)
            and not any(part.startswith(".") for part in path.relative_to(self.path).parts)
        )

    def name(self, path: Path) -> str:
        """The name of a file below the folder, for people."""
        return shown(path.relative_to(self.path) if path != self.path else path.name)

    def text(self, path: Path) -> str | Unreadable:
        """The text of a file in UTF-8 or UTF-16, without its byte order mark."""
        try:
            with path.open("rb") as file:
                data = file.read(_LONGEST + 1)
        except OSError as error:
            return Unreadable(self.name(path), error.strerror or str(error))
        if len(data) > _LONGEST:
            return Unreadable(self.name(path), "more than 64 MiB")
        encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            why = f"neither UTF-8 nor UTF-16 with its mark (at byte {error.start})"
            return Unreadable(self.name(path), why)

    def document(self, path: Path) -> Any:  # noqa: ANN401 - whatever it holds
        """The JSON of a file, or an `Unreadable`."""
        text = self.text(path)
        if isinstance(text, Unreadable):
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            return Unreadable(self.name(path), f"no JSON: {error}")

    def rows(
        self, path: Path, table: str, known: Collection[str], *, is_optional: bool = False
    ) -> Iterator[dict[str, Any] | Unreadable]:
        """The rows of a table of SQLite, as far as they can be read; what is broken last, as a record.

        known: columns that the importer reads, which may be missing; values in others are counted.
        is_optional: whether the table may be missing.
        """
        # Imported here: most commands read no database of another program.
        from sqlite_utils import Database

        where = f"{self.name(path)}, table {table}"
        found: list[dict[str, Any]] = []
        try:
            with closing(binding().connect(_address(path), uri=True, timeout=_PATIENCE)) as connection:
                connection.text_factory = _text
                database = Database(connection)
                if table in database.table_names():
                    # Read at once: the program that writes to it waits for no append.
                    for row in database[table].rows:
                        found.append(self._known(table, row, known))
                elif not is_optional:
                    yield Unreadable(where, "there is no such table")
        except OSError as error:
            yield Unreadable(where, error.strerror or str(error))
        except error_types() as error:
            yield from found
            yield Unreadable(where, _explained(path, str(error)))
        else:
            yield from found

    def _known(self, table: str, row: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
        for column, value in row.items():
            if column not in known and value is not None:
                self.unknown[f"{table}.{column}"] += 1
        return {column: row.get(column) for column in known}

    def changed(self, path: Path) -> str:
        """When a file was changed last."""
        return timestamps.of_seconds(path.stat().st_mtime)

    def time(self, value: object) -> str | None:
        """A time as another program wrote it: text, in UTC without an offset, or a number since 1970.

        None where there is none; one that cannot be read is counted as unknown.
        """
        if value is None or value == "":
            return None
        try:
            text = str(value).strip()
            if re.fullmatch(r"-?\d+(?:\.\d*)?", text):
                number = float(text)
                return timestamps.of_seconds(number / 1000 if number > _MILLISECONDS else number)
            if len(text) == len("2026-02-24"):
                return timestamps.of_day_or_time(text)
            return timestamps.normalised(text, naive_is_utc=True)
        except (ValueError, OverflowError, OSError):
            self.unknown["times that cannot be read"] += 1
            return None


def _explained(path: Path, error: str) -> str:
    """An error of SQLite, with what can be done about it."""
    if "not a database" in error:
        is_zip = path.open("rb").read(2) == b"PK"
        return f"{error}: it is a zip archive, unpack it" if is_zip else error
    if "locked" in error:
        return f"{error}: end the program that writes to it"
    return (
        f"{error}: the .recover of the sqlite3 command saves what it can" if "malformed" in error else error
    )


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _address(path: Path) -> str:
    """The address of a database that is only read.

    Where nobody writes to one in WAL mode, SQLite is told so: it would leave files beside it.
    """
    with path.open("rb") as file:
        is_wal = file.read(20)[18:] == b"\2\2"
    is_idle = is_wal and not path.with_name(f"{path.name}-wal").exists()
    address = f"file:{pathname2url(str(path.absolute()))}?mode=ro"
    return f"{address}&immutable=1" if is_idle else address
