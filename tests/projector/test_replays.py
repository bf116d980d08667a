"""Each folder of fixtures/ is a log; its snapshot is the canonical dump of its replay."""

import json
import shutil

import pytest

from memlog.projector.lifecycle import Projector
from memlog.projector.verify import dump_tables, hash_dump, verify_read_model
from tests.support.places import FIXTURES

# Of the month, which is long, the digest alone is kept: test_month_replays.py.
LOGS = sorted(path.parent.name for path in FIXTURES.glob("*/log"))


def test_there_are_fixtures():
    assert "week" in LOGS


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """A replay of each log, which the tests only read."""
    folder = tmp_path_factory.mktemp("replayed")
    projectors = {name: Projector(folder / name) for name in LOGS}
    for name, projector in projectors.items():
        shutil.copytree(FIXTURES / name / "log", projector.log)
        projector.catch_up()
    yield projectors
    for projector in projectors.values():
        projector.close()


def test_a_replay_gives_the_rows_of_the_snapshot(replayed, snapshot):
    for name, projector in replayed.items():
        assert "\n".join(dump_tables(projector.connect_to_live())) == snapshot(name=name), name


def test_reading_on_file_by_file_gives_the_digest_of_one_replay(replayed, tmp_path):
    for name, whole in replayed.items():
        pieces = Projector(tmp_path / name)
        for path in sorted((whole.log).rglob("*.jsonl"), key=lambda path: path.name):
            target = pieces.store / path.relative_to(whole.store)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            pieces.catch_up()
        assert hash_dump(pieces.connect_to_live()) == hash_dump(whole.connect_to_live()), name
        assert verify_read_model(pieces.connect_to_live(), pieces.log, pieces.sizes).digest == hash_dump(
            whole.connect_to_live()
        ), name
        pieces.close()


def test_a_replay_touches_no_file_of_the_log(replayed):
    for name, projector in replayed.items():
        for path in (FIXTURES / name / "log").rglob("*.jsonl"):
            copied = projector.store / path.relative_to(FIXTURES / name)
            assert copied.read_bytes() == path.read_bytes(), path


def test_what_schedulers_subagents_and_tools_write_is_kept_as_they_wrote_it(replayed):
    columns = "chat_id, type, role, content, metadata"
    rows = (
        replayed["foreign"]
        .connect_to_live()
        .execute(f"SELECT id, channel, {columns} FROM messages")
        .fetchall()
    )
    said = {row[0]: row[1:] for row in rows}
    meta = '{"source":"scheduler","task_name":"morning-news"}'
    assert said["s1"][:3] == ("scheduler", "morning-news", "message")
    assert said["s1"][5] == meta
    assert said["f6"][2:4] == ("subagent_result", "assistant")
    assert said["f7"][2:4] == ("message", "tool")
    assert json.loads(said["f7"][4]) == {"shops": ["Kallio", "Töölö", "Oulu"]}
