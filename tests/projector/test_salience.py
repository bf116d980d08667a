"""No clock enters a projection: saliences come from events alone, whatever the day and the order."""

import ast
import tempfile
from functools import reduce
from operator import mul
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import memlog
from memlog.eventlog.categories import CATEGORIES, OTHER, resolve_alias
from memlog.eventlog.codec.encode import draft_event
from memlog.projector import schema
from tests.support.examples import examples
from tests.support.places import ROOT

ROW_MAKERS = sorted(
    [
        *(
            path
            for folder in ("subjects", "passages", "text")
            for path in (ROOT / "projector" / folder).glob("*.py")
        ),
        *(ROOT / f"projector/{name}.py" for name in ("fold", "sqlite", "limits")),
        *(
            ROOT / f"eventlog/{name}.py"
            for name in ("codec/decode", "codec/upcast", "log/reader", "categories", "codec/content_ids")
        ),
    ]
)
"""Whatever says what a row holds."""
OF_A_DAY_OR_A_MACHINE = {"time", "datetime", "calendar", "random", "secrets", "uuid", "platform", "socket"}
CLOCKS = {"now", "today", "utcnow", "time_ns", "localtime", "gmtime", "getenv", "environ", "urandom"}
CLOCKS_OF_SQLITE = ("current_timestamp", "current_date", "current_time", "'now'", "unixepoch", "random()")

# Few, so that they meet.
CATEGORY = st.sampled_from(["context", "decisions", "decision", "recipes", OTHER])
RATES = st.sampled_from([0.0, 0.1, 0.7, 0.9, 1.0])
DAYS = [f"2026-02-{day:02}T08:00:00.000Z" for day in range(1, 4)]
saves = st.lists(st.tuples(st.sampled_from(DAYS), CATEGORY), min_size=2, max_size=6)
decays = st.lists(
    st.tuples(st.sampled_from(DAYS), st.dictionaries(CATEGORY, RATES, min_size=1)), min_size=1, max_size=6
)
uses = st.lists(st.tuples(st.sampled_from(DAYS), st.integers(0, 5), st.booleans()), max_size=4)
LINES_AT = "2026-02-15T00:00:00.000Z"


def lines_of(saved, decayed, used=()):
    """The lines of a log of memories, decays and contexts, in the order in which things happened."""
    events = [
        {"type": "memory_saved", "id": f"m{number}", "memory_id": f"m{number}", "content": "tea"}
        | {"ts": ts, "category": category}
        for number, (ts, category) in enumerate(saved)
    ] + [
        {"type": "salience_decayed", "id": f"d{number}", "ts": ts, "rates": rates}
        for number, (ts, rates) in enumerate(decayed)
    ]
    for number, (ts, memory, is_best) in enumerate(used):
        entry = {"part": "memory", "id": f"m{memory}", "is_best": is_best}
        events.append({"type": "context_given", "id": f"c{number}", "ts": ts, "entries": [entry]})
    return [draft_event(event).build_line(LINES_AT) for event in events]


def rate_of(rates, category):
    """What a decay multiplies by, told in another way than memlog tells it."""
    meant = resolve_alias(category)
    names = [meant, *(name for name in rates if resolve_alias(name) == meant)]
    if meant not in CATEGORIES:
        names.append(OTHER)
    return next((rates[name] for name in names if name in rates), 1.0)


def expected(lines, saved, decayed, used):
    """The salience of each memory: the product of what is newer and not of a day on which it was one of the
    best, in the order of times, then of lines."""
    offsets = [sum(map(len, lines[:number])) for number in range(len(lines))]
    places = dict(zip(lines, offsets, strict=True))
    own = lines_of(saved, decayed)
    orders = [(ts, places[line]) for (ts, _), line in zip([*saved, *decayed], own, strict=True)]
    later = sorted(
        zip(orders[len(saved) :], (rates for _, rates in decayed), strict=True), key=lambda each: each[0]
    )
    spared = {(ts[:10], memory) for ts, memory, is_best in used if is_best}
    return {
        f"m{number}": reduce(
            mul,
            (
                rate_of(rates, category)
                for order, rates in later
                if order > orders[number] and (order[0][:10], number) not in spared
            ),
            1.0,
        )
        for number, (_, category) in enumerate(saved)
    }


def saliences(store):
    return {memory.memory_id: memory.salience for memory in store.memories.list()}


@settings(max_examples=examples(8))
@given(st.data(), saves, decays, uses)
def test_saliences_are_those_of_one_replay_whatever_the_order_and_never_leave_0_to_1(
    data, saved, decayed, used
):
    lines = data.draw(st.permutations(lines_of(saved, decayed, used)))
    cut = data.draw(st.integers(0, len(lines)))
    with tempfile.TemporaryDirectory() as folder, memlog.open(folder) as store:
        segment = Path(folder) / "log/memory/2026-02-15.jsonl"
        segment.parent.mkdir(parents=True)
        for part in (lines[:cut], lines[cut:]):
            with segment.open("ab") as file:
                file.writelines(part)
            found = saliences(store)
        assert found == expected(lines, saved, decayed, used)
        assert all(0 <= each <= 1 for each in found.values())
        digest = store.maintenance.digest()
        store.maintenance.project(from_scratch=True, embed=False)
        assert (saliences(store), store.maintenance.digest()) == (found, digest)


def test_what_makes_rows_asks_no_clock_and_no_machine():
    for module in ROW_MAKERS:
        tree = ast.parse(module.read_text())
        assert not _imported(tree) & OF_A_DAY_OR_A_MACHINE, module
        assert not _named(tree) & CLOCKS, module
        texts = [str(node.value).lower() for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        assert not [text for text in texts for clock in CLOCKS_OF_SQLITE if clock in text], module


def _imported(tree):
    """The modules that are imported, by the first part of their name."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def _named(tree):
    """What is taken from modules: by a dot, or by an import."""
    taken = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return taken | {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def test_the_schema_asks_no_clock():
    assert not [clock for clock in CLOCKS_OF_SQLITE if clock in schema.read_schema().lower()]
