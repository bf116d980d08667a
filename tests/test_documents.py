"""What the pages say in bytes, shapes and commands is what the code does."""

import re
import zlib
from typing import get_args

import memlog
from memlog.eventlog import timestamps
from memlog.eventlog.codec.decode import decode_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.errors import LineFault
from memlog.eventlog.events import TYPES
from memlog.eventlog.integrity.seal_file import SealFiles
from memlog.eventlog.integrity.seal_format import Damage, compute_link_hash
from memlog.eventlog.log.quarantine import HINTS
from memlog.eventlog.log.streams import SegmentName, conversation_stream
from tests.support.places import ROOT

FORMAT = (ROOT / "docs/storage/jsonl-format.md").read_text()
SHAPES = (ROOT / "docs/json-output.md").read_text()


def examples():
    return re.findall(r"```json\n(.*)\n```", FORMAT)


def test_the_worked_example_is_a_line_that_memlog_reads():
    line = examples()[0].encode()
    assert len(line) + 1 == 223
    body, _, crc = line.rpartition(b',"crc":"')
    assert crc == b'fea2511c"}' == b'%08x"}' % zlib.crc32(body)
    event = decode_line(line, Place("conversations/telegram_7", SegmentName("2026-02-24"), 0))
    assert event.content == "Is there any green tea left?"


def test_the_foreign_example_is_read_too():
    event = decode_line(
        examples()[1].encode(), Place("conversations/telegram_7", SegmentName("2026-02-24"), 0)
    )
    assert (event.ts, event.chat_id) == ("2026-02-24T06:00:00.000Z", "7")


def test_the_seal_of_the_worked_example_is_the_one_that_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(timestamps, "now", lambda: "2026-02-25T06:30:00.000Z")
    folder = tmp_path / "log" / "conversations" / "telegram_7"
    folder.mkdir(parents=True)
    (folder / "2026-02-24.jsonl").write_bytes(examples()[0].encode() + b"\n")
    SealFiles(tmp_path / "log").seal_segments("conversations/telegram_7", ["2026-02-24.jsonl"])
    line = (tmp_path / "log" / "seals.jsonl").read_bytes()
    assert line == examples()[2].encode() + b"\n"
    assert len(line) == 288
    assert f"`{compute_link_hash(line[:-1])}`" in FORMAT


def test_every_damage_of_a_seal_is_explained():
    for damage in get_args(Damage):
        assert f"`{damage}`" in FORMAT


def test_the_folder_of_the_example_is_the_one_that_is_made():
    assert conversation_stream("telegram", "../../etc").endswith("/telegram_..%2f..%2fetc")


def test_every_event_type_and_its_members_stand_in_the_table():
    for name, kind in TYPES.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", FORMAT, re.MULTILINE)
        members = set(kind.__struct_fields__) - {*memlog.Event.__struct_fields__, "wins", "highest_wins"}
        assert members <= set(re.findall(r"\w+", row)), name


def test_every_reason_of_the_quarantine_is_explained():
    for reason in get_args(LineFault):
        assert f"`{reason}`" in FORMAT
        assert HINTS[reason]


def test_the_shapes_of_the_page_are_those_of_the_results():
    for result in (
        memlog.Hit,
        memlog.SearchResult,
        memlog.Window,
        memlog.CoreImportReport,
        memlog.CoreValue,
        memlog.Session,
        memlog.Summary,
        memlog.Position,
        memlog.Memory,
        memlog.SaveReport,
        memlog.StoredEvent,
        memlog.QuarantinedLine,
        memlog.Status,
        memlog.ProjectReport,
        memlog.EmbedReport,
        memlog.IndexingReport,
        memlog.SkippedFile,
        memlog.Source,
        memlog.Document,
        memlog.DocumentText,
        memlog.DocumentFolder,
        memlog.DocumentFile,
        memlog.SourceStatus,
        memlog.IndexingJob,
        memlog.Verification,
        memlog.Finding,
        memlog.Fact,
        memlog.FactAnswer,
        memlog.FactExtraction,
        memlog.FactUpdate,
        memlog.Route,
    ):
        for member in result.__struct_fields__:
            assert f'"{member}"' in SHAPES, f"{result.__name__}.{member}"


def test_every_link_between_pages_leads_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page}: {target}"
