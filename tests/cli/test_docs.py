"""memlog docs: what a user sees of adding, listing and removing documents."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile_files import pdf_of_shared_pages, pdf_that_warns

Run = Callable[..., Any]
KEY = "AKIA" + "Q3EGRTKY7ZK4WPNX"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with two documents."""
    folder = tmp_path / "notes"
    (folder / "guide").mkdir(parents=True)
    (folder / "tea.md").write_text("# Tea\n\ngreen needle\n")
    (folder / "guide/train.txt").write_text("the train\n")
    return folder


@pytest.fixture
def locked(notes: Path) -> Iterator[Path]:
    """The folder with a file and a folder that nobody may read."""
    (notes / "secret").mkdir()
    (notes / "secret/deep.md").write_text("deep needle")
    (notes / "secret.md").write_text("secret needle")
    yield notes
    (notes / "secret").chmod(0o700)


def found(memlog: Run, text: str) -> list[str]:
    hits = memlog("query", text, "--mode", "text", "--in", "documents", "--json").json["hits"]
    return sorted(hit["id"] for hit in hits)


def test_what_cannot_be_read_is_named_and_stays_as_it_was(
    memlog: Run, locked: Path, bound_by_modes: dict[str, Any]
) -> None:
    assert memlog("docs", "add", locked, "--json").json["sources"][0]["indexed"] == 4
    (locked / "secret.md").chmod(0)
    (locked / "secret").chmod(0)
    done = memlog("docs", "add", locked, **bound_by_modes)
    assert done.code == 0
    assert b"notes: skipped 2 unreadable" in done.err
    assert b"notes/secret.md: Permission denied" in done.err
    assert b"notes/secret: Permission denied" in done.err
    assert found(memlog, "needle") == ["notes/secret.md", "notes/secret/deep.md", "notes/tea.md"]


def test_a_file_that_its_owner_can_put_right_is_named(memlog: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name in ("a.md", "b.md", "c.md", "d.md"):
        (folder / name).write_bytes(b"caf\xe9\n")
    assert b"mixed: skipped 4 not UTF-8 (a.md, b.md, c.md, \xe2\x80\xa6)" in memlog("docs", "add", folder).err


def test_a_folder_that_cannot_be_listed_is_an_error(
    memlog: Run, locked: Path, bound_by_modes: dict[str, Any]
) -> None:
    (locked / "secret").chmod(0)
    done = memlog("docs", "add", locked / "secret", "--json", **bound_by_modes)
    assert (done.code, done.error["code"]) == (74, "log_io")
    assert memlog("docs", "list", "--json").json == {"sources": []}


def test_a_refresh_reads_all_sources_and_tells_which_cannot_be_read(
    memlog: Run, notes: Path, tmp_path: Path
) -> None:
    memlog("docs", "add", notes)
    memlog("docs", "add", notes / "guide")
    (notes / "guide/train.txt").write_text("the needle")
    done = memlog("docs", "refresh", "--json")
    assert (done.code, [each["indexed"] for each in done.json["sources"]]) == (0, [1, 1])
    notes.rename(tmp_path / "moved")
    done = memlog("docs", "refresh")
    assert done.code == 74
    assert f"notes: {notes}: No such file or directory: its documents stay".encode() in done.err
    assert found(memlog, "green") == ["notes/tea.md"]
    assert memlog("docs", "refresh", "guide", "--json").json["sources"][0]["error"]


def test_a_tree_shows_what_is_indexed(memlog: Run, notes: Path) -> None:
    (notes / "guide/deep").mkdir()
    (notes / "guide/deep/x\n.md").write_text("x")
    memlog("docs", "add", notes)
    lines = memlog("docs", "tree").out.decode().splitlines()
    assert lines == [
        "notes/  3 documents, 3 passages",
        "├── guide/  2 documents, 2 passages",
        "│   ├── deep/  1 document, 1 passage",
        "│   │   └── x .md  1 passage",
        "│   └── train.txt  1 passage",
        "└── tea.md  1 passage",
    ]
    assert (
        memlog("docs", "tree", "--format", "md")
        .out.decode()
        .splitlines()[2]
        .startswith("| notes/guide/deep/x")
    )


def test_several_paths_are_added_at_once(memlog: Run, notes: Path) -> None:
    done = memlog("docs", "add", notes / "tea.md", notes / "guide/train.txt", "--json")
    assert [added["source_id"] for added in done.json["sources"]] == ["notes", "guide"]
    assert found(memlog, "needle train") == ["guide/train.txt", "notes/tea.md"]


def test_names_do_not_drive_the_terminal(memlog: Run, notes: Path) -> None:
    (notes / "a\x1b[31m\n.md").write_text("x")
    memlog("docs", "add", notes)
    out = memlog("docs", "list", "notes").out
    assert b"\x1b" not in out
    assert len(out.splitlines()) == 1 + 3
    assert memlog("docs", "remove", "notes/a\x1b[31m\n.md").code == 0


def test_what_a_library_prints_is_told_in_one_line_and_drives_no_terminal(
    memlog: Run, with_terminal_errors: Callable[..., Any], notes: Path
) -> None:
    pytest.importorskip("pypdf")
    for number in range(3):
        (notes / f"{number}.pdf").write_bytes(pdf_that_warns(b"\x1b]0;owned\x07\xc2\x9b31m"))
    done = with_terminal_errors("docs", "add", notes).end()
    assert done.code == 0
    assert not any(control in done.err for control in (b"\x1b", b"\x07", b"\xc2\x9b"))
    (told,) = [line for line in done.err.splitlines() if b"Advanced encoding" in line]
    assert b"3 files were read with warnings, such as 0.pdf: " in told
    assert b"\\x1b]0;owned\\x07\\x9b31m" in told
    (notes / "0.pdf").write_bytes(pdf_that_warns(b"new"))
    (added,) = memlog("docs", "add", notes, "--json").json["sources"]
    assert {each["file"] for each in added["warnings"]} >= {"0.pdf"}


def test_a_file_that_takes_too_long_is_named_with_the_limit(memlog: Run, notes: Path) -> None:
    pytest.importorskip("pypdf")
    (notes / "slow.pdf").write_bytes(pdf_of_shared_pages(320))
    done = memlog("docs", "add", notes, env={"MEMLOG_DOCUMENT_SECONDS": "1"})
    assert done.code == 0
    assert b"notes: skipped 1 past a limit" in done.err
    assert b"notes/slow.pdf: it takes more than 1 second" in done.err


def test_a_file_whose_name_looks_like_a_key_is_masked_and_skipped_and_all_others_are_read(
    memlog: Run, notes: Path, store: Path
) -> None:
    (notes / KEY).mkdir()
    for file in (f"{KEY}.md", f"{KEY}/tea.md"):
        (notes / file).write_text("tea")
    for _ in range(2):
        done = memlog("docs", "add", notes, "--json", env={"MEMLOG_REDACT": "1"})
        (added,) = done.json["sources"]
        assert (added["indexed"] + added["unchanged"], len(added["skipped"])) == (2, 2)
        assert {each["reason"] for each in added["skipped"]} == {"secret"}
        assert all("[REDACTED:" in each["file"] for each in added["skipped"])
        assert KEY.encode() not in done.out + done.err
    assert not any(KEY.encode() in path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_a_source_that_is_named_like_a_key_is_refused_before_anything_is_written(
    memlog_here: Run, notes: Path, store: Path
) -> None:
    (notes / KEY).mkdir()
    for given in ([notes / KEY], *([notes, f"--{place}", KEY] for place in ("source", "include", "exclude"))):
        done = memlog_here("docs", "add", *given, "--json", env={"MEMLOG_REDACT": "1"})
        assert (done.code, done.error["code"]) == (65, "bad_input"), given
        assert "looks like a key" in done.error["message"], given
        assert not store.exists(), given


def test_a_document_whose_name_looks_like_a_key_holds_up_no_other(memlog: Run, notes: Path) -> None:
    (notes / f"{KEY}.md").write_text("tea")
    memlog("docs", "add", notes)
    (notes / f"{KEY}.md").unlink()
    (notes / "new.md").write_text("new")
    (added,) = memlog("docs", "add", notes, "--json", env={"MEMLOG_REDACT": "1"}).json["sources"]
    assert (added["indexed"], added["removed"], added["error"]) == (1, 0, None)
    assert memlog("docs", "refresh", "--json").json["sources"][0]["removed"] == 1
