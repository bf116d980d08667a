"""Lines that nest too deeply to be events: what looks into members finds texts at any depth."""

from pathlib import Path

import pytest

import memlog
from memlog.eventlog.secrets.detection import list_key_kinds_in_line, list_texts_within
from tests.support.canaries import canaries

CANARY = next(each for each in canaries(60) if each.kind == "github-token")
DEPTHS = (90, 300, 600, 900, 950, 985, 2000, 5000)


def deep(depth: int, text: str) -> bytes:
    """A line with a text in lists and objects."""
    within = '{"a":[' * (depth // 2) + f'"{text}"' + "]}" * (depth // 2)
    return f'{{"id":"deep","ts":"2026-02-24T10:00:00Z","role":"user","content":"x","zz":{within}}}\n'.encode()


def test_a_key_is_found_at_any_depth() -> None:
    for depth in DEPTHS:
        assert list_key_kinds_in_line(deep(depth, CANARY.key)) == [CANARY.kind], depth


def test_texts_are_found_at_any_depth() -> None:
    value: object = "tea"
    for _ in range(DEPTHS[-1]):
        value = [{"a": value}]
    assert list(list_texts_within([value])) == ["a"] * DEPTHS[-1] + ["tea"]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_line_stops_nothing(tmp_path: Path, depth: int) -> None:
    segment = tmp_path / "log/conversations/c_1/2026-02-24.jsonl"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(deep(depth, CANARY.key))
    with memlog.open(tmp_path) as store:
        (place,) = store.erasure.secrets()
        assert (place.kind, place.line) == (CANARY.kind, 1)
        assert [line.reason for line in store.maintenance.quarantine()] == ["too_deep"]
        assert store.maintenance.verify().quarantined == {"too_deep": 1}
        assert store.erasure.forget(match=CANARY.key).redacted == 1
        store.erasure.scrub()
        assert store.erasure.secrets() == []
