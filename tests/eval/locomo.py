"""Search quality on the LoCoMo conversations (Maharana et al. 2024, https://arxiv.org/abs/2402.17753).

`make eval` runs this. Each of the ten conversations is a store of its own; each question is searched for in
its conversation, and the turns that LoCoMo names as its evidence are what should be found. The data is not
part of memlog (CC BY-NC 4.0): the variable MEMLOG_EVAL_DATA names the folder that has it.

Settings are chosen by the figures of conversations 1 to 5; those of 6 to 10 tell whether they hold.
"""

import argparse
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, median
from typing import Literal, NamedTuple, cast

import msgspec

import memlog
from memlog.query.search.request import Mode as SearchMode

VARIABLE = "MEMLOG_EVAL_DATA"
"""Names the folder that has `locomo/` with the files of `VERSIONS`."""

VERSIONS = {"corrected": "locomo10_corrected.json", "original": "locomo10.json"}
"""The questions as the community has corrected them (https://github.com/dial481/locomo), and as published."""

PARTS = {"all": slice(0, 10), "tuning": slice(0, 5), "report": slice(5, 10)}
"""Which of the ten conversations the figures of a table are of."""

Mode = Literal["text", "vector", "rrf", "convex"]
"""Each side alone, and both: fused by rank (the default), or by scaled scores."""

WAYS: dict[Mode, tuple[SearchMode, memlog.Ranking]] = {
    "text": ("text", memlog.Ranking()),
    "vector": ("vector", memlog.Ranking()),
    "rrf": ("hybrid", memlog.Ranking()),
    "convex": ("hybrid", memlog.Ranking(fusion="convex")),
}
MODES: tuple[Mode, ...] = tuple(WAYS)

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Of the questions, as the files number them; 5 is adversarial: the conversation has no answer to it."""

COLUMNS = ("R@5", "R@10", "MRR", "nDCG@10", "ms")
"""The names of what `Figures` holds."""

LEAST: dict[Mode, tuple[float, float]] = {
    "text": (0.74, 0.60),
    "vector": (0.455, 0.313),
    "rrf": (0.75, 0.55),
    "convex": (0.77, 0.61),
}
"""R@10 and nDCG@10 of the published questions on conversations 6 to 10, below which `--check` fails."""

Progress = Callable[[str, int, int], None]

_DEPTH = 10
_CHANNEL = "locomo"
_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"


class CannotMeasure(Exception):
    """There is nothing to measure with; the message is one line and says what to do."""


class Turn(msgspec.Struct, frozen=True):
    """One turn, as the files have it."""

    dia_id: str
    speaker: str
    text: str


class Asked(msgspec.Struct, frozen=True):
    """One question, as the files have it."""

    question: str
    category: int
    evidence: list[str]


class Sample(msgspec.Struct, frozen=True):
    """One conversation and its questions, as the files have them."""

    sample_id: str
    conversation: dict[str, str | list[Turn]]
    qa: list[Asked]


@dataclass(frozen=True)
class Question:
    """What is searched for, and the ids of the turns that should be found."""

    text: str
    relevant: frozenset[str]
    category: int = 0


@dataclass(frozen=True)
class Conversation:
    """What is appended to one store, and what is then asked of it, by version of the questions."""

    id: str
    events: list[memlog.Event]
    questions: dict[str, list[Question]]

    @property
    def messages(self) -> list[memlog.Message]:
        """The turns, without the session breaks between them."""
        return [event for event in self.events if isinstance(event, memlog.Message)]


class Ranking(NamedTuple):
    """The ids that one search found, best first, and how long it took in milliseconds."""

    ids: list[str]
    ms: float


Rankings = dict[tuple[Mode, str], Ranking]
"""By mode and the question's text."""


class Figures(NamedTuple):
    """How good one search was, or many: then the mean, and of `ms` the median."""

    recall_5: float
    recall_10: float
    reciprocal_rank: float
    ndcg: float
    ms: float


class Results(NamedTuple):
    """Figures by version of the questions, part of the conversations, mode; and by category of the published
    questions on conversations 6 to 10, mode."""

    by_part: dict[str, dict[str, dict[Mode, Figures]]]
    by_category: dict[int, dict[Mode, Figures]]


# Reading the data


def data_folder() -> Path:
    """The folder with LoCoMo's files.

    Raises:
        CannotMeasure: the variable is not set, or names a folder without them.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        raise CannotMeasure(f"{VARIABLE} is not set: name the folder that has locomo/{VERSIONS['original']}")
    folder = Path(named) / "locomo"
    for name in VERSIONS.values():
        if not (folder / name).is_file():
            raise CannotMeasure(f"{VARIABLE}: there is no {folder / name}: name the folder that has locomo/")
    return folder


def read_conversations(folder: Path) -> list[Conversation]:
    """The ten conversations, as the corrected file has them, each with its questions of both versions."""
    samples = {version: read_samples(folder / name) for version, name in VERSIONS.items()}
    return [
        Conversation(
            id=group[0].sample_id,
            events=events_of(group[0]),
            questions={version: questions_of(sample) for version, sample in zip(samples, group, strict=True)},
        )
        for group in zip(*samples.values(), strict=True)
    ]


def origin(folder: Path) -> str:
    """Which file's conversations are searched, for people."""
    corrected, original = (
        [sample.conversation for sample in read_samples(folder / name)] for name in VERSIONS.values()
    )
    return "the same in both files" if corrected == original else "the corrected file's, the other's differ"


def read_samples(path: Path) -> list[Sample]:
    """What a file holds."""
    return msgspec.json.decode(path.read_bytes(), type=list[Sample])


def events_of(sample: Sample) -> list[memlog.Event]:
    """The turns as messages, with a break before every session but the first.

    Every event has an id of its own, so that appending a conversation twice stores it once.
    """
    events: list[memlog.Event] = []
    for number, start, turns in sessions_of(sample):
        if events:
            events.append(_session_break(sample, number, start - timedelta(seconds=1)))
        for index, turn in enumerate(turns):
            events.append(_message(sample, turn, start + timedelta(seconds=index)))
    return events


def sessions_of(sample: Sample) -> Iterator[tuple[int, datetime, list[Turn]]]:
    """Number, beginning and turns of each session, in their order."""
    names = [match for name in sample.conversation if (match := _SESSION.fullmatch(name))]
    for match in sorted(names, key=lambda match: int(match[1])):
        written = cast(str, sample.conversation[f"{match[0]}_date_time"])
        yield int(match[1]), session_time(written), cast(list[Turn], sample.conversation[match[0]])


def session_time(written: str) -> datetime:
    """The time that a session's `date_time` says, such as "1:56 pm on 8 May, 2023"; taken as UTC."""
    return datetime.strptime(written, _TIME).replace(tzinfo=UTC)


def questions_of(sample: Sample) -> list[Question]:
    """The questions of categories 1 to 4 with at least one turn of evidence that the conversation has."""
    known = {turn.dia_id for _, _, turns in sessions_of(sample) for turn in turns}
    questions = [
        Question(asked.question, frozenset(turn_ids(asked.evidence)) & known, asked.category)
        for asked in sample.qa
        if asked.category in CATEGORIES
    ]
    return [question for question in questions if question.relevant]


def turn_ids(evidence: Iterable[str]) -> list[str]:
    """The ids in a list of evidence, written as turns have them: some items are "D8:6; D9:17",
    "D9:1 D4:4", "D:11:26", "D30:05", or name no turn at all ("D")."""
    written = [match for item in evidence for match in _TURN_ID.findall(item)]
    return [f"D{int(session)}:{int(turn)}" for session, turn in written]


def _message(sample: Sample, turn: Turn, at: datetime) -> memlog.Message:
    return memlog.Message(
        id=turn.dia_id,
        ts=at.isoformat(),
        channel=_CHANNEL,
        chat_id=sample.sample_id,
        role="user" if turn.speaker == sample.conversation["speaker_a"] else "assistant",
        name=turn.speaker,
        content=turn.text,
    )


def _session_break(sample: Sample, number: int, at: datetime) -> memlog.SessionBreak:
    return memlog.SessionBreak(
        id=f"D{number}:break", ts=at.isoformat(), channel=_CHANNEL, chat_id=sample.sample_id
    )


# Metrics


def recall(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """The part of `relevant` that is among the first `k` of `ranked`."""
    return len(set(ranked[:k]) & set(relevant)) / len(relevant)


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """1 / the rank of the first of `ranked` that is relevant; 0 where none of the first `k` is."""
    ranks = (rank for rank, name in enumerate(ranked[:k], start=1) if name in relevant)
    return 1 / next(ranks, math.inf)


def ndcg(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first `k`, where a name is relevant or is not."""
    gain = sum(_discount(rank) for rank, name in enumerate(ranked[:k], start=1) if name in relevant)
    return gain / sum(_discount(rank) for rank in range(1, min(k, len(relevant)) + 1))


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def figures_of(ranking: Ranking, question: Question) -> Figures:
    """How good one search was."""
    ids, relevant = ranking.ids, question.relevant
    return Figures(
        recall_5=recall(ids, relevant, 5),
        recall_10=recall(ids, relevant, 10),
        reciprocal_rank=reciprocal_rank(ids, relevant, _DEPTH),
        ndcg=ndcg(ids, relevant, _DEPTH),
        ms=ranking.ms,
    )


def averaged(figures: Sequence[Figures]) -> Figures:
    """The mean over queries; of the times, the median."""
    *qualities, times = zip(*figures, strict=True)
    return Figures._make([*map(fmean, qualities), median(times)])


# Measuring


def evaluate(
    conversations: Sequence[Conversation], folder: Path, progress: Progress | None = None
) -> Results:
    """Figures of every version of the questions, part of the conversations, and mode.

    folder: holds a store for each conversation; what is there already is not embedded again.

    Raises:
        CannotMeasure: the vector side does not work here.
    """
    rankings = [rankings_of(conversation, folder, progress) for conversation in conversations]
    by_part = {
        version: {
            part: by_mode(conversations[within], rankings[within], version) for part, within in PARTS.items()
        }
        for version in VERSIONS
    }
    reported = PARTS["report"]
    by_category = {
        category: by_mode(conversations[reported], rankings[reported], "original", category)
        for category in CATEGORIES
    }
    return Results(by_part, by_category)


def by_mode(
    conversations: Sequence[Conversation],
    rankings: Sequence[Rankings],
    version: str,
    category: int | None = None,
) -> dict[Mode, Figures]:
    """Figures of each mode; of one category's questions where one is named."""
    asked = [
        (found, question)
        for conversation, found in zip(conversations, rankings, strict=True)
        for question in conversation.questions[version]
        if category in (None, question.category)
    ]
    return {
        mode: averaged([figures_of(found[mode, question.text], question) for found, question in asked])
        for mode in MODES
    }


def rankings_of(conversation: Conversation, folder: Path, progress: Progress | None = None) -> Rankings:
    """What every question of a conversation finds in it, each asked once however many versions have it."""
    asked = [question.text for questions in conversation.questions.values() for question in questions]
    texts = list(dict.fromkeys(asked))
    rankings: Rankings = {}
    with memlog.open(folder / conversation.id) as store:
        fill(store, conversation.events, progress)
        for mode in MODES:
            for text in texts:
                rankings[mode, text] = ranking_of(store, text, mode)
                if progress:
                    progress(f"{conversation.id}: questions", len(rankings), len(MODES) * len(texts))
    return rankings


def fill(store: memlog.Store, events: Sequence[memlog.Event], progress: Progress | None = None) -> None:
    """Append and project what the store does not have yet, with vectors."""
    try:
        is_filled = store.maintenance.project(progress=progress).rows >= len(events)
    except memlog.NotFound:
        is_filled = False
    if not is_filled:
        store.append(events)
    report = store.maintenance.project(progress=progress)
    if report.rows != len(events) or report.conflicts:
        raise CannotMeasure(f"{store.path} holds other events: name an empty folder")


def ranking_of(
    store: memlog.Store, text: str, mode: Mode, *, sides: Collection[str] = ("vector", "pending")
) -> Ranking:
    """What one question finds.

    sides: none of these may be silent.

    Raises:
        CannotMeasure: one of them is.
    """
    searched, ranking = WAYS[mode]
    started = time.perf_counter()
    result = store.search(text, k=_DEPTH, mode=searched, ranking=ranking, sync=False)
    ms = (time.perf_counter() - started) * 1000
    for side in sides:
        if side in result.silent:
            raise CannotMeasure(f"{store.path}: {side}: {result.silent[side]}")
    return Ranking([hit.id for hit in result.hits], ms)


def failures(results: Results) -> list[str]:
    """What `--check` holds against the figures; empty where they are good."""
    found = results.by_part["original"]["report"]
    low = [
        f"{name} {mode} is {value:.3f}, less than {least}"
        for mode, leasts in LEAST.items()
        for name, value, least in zip(
            ("R@10", "nDCG@10"), (found[mode].recall_10, found[mode].ndcg), leasts, strict=True
        )
        if value < least
    ]
    beaten = [
        f"R@10 rrf is {found['rrf'].recall_10:.3f}, less than {mode}'s {found[mode].recall_10:.3f}"
        for mode in ("text", "vector")
        if found["rrf"].recall_10 < found[mode].recall_10
    ]
    return low + beaten


# Printing


def report(conversations: Sequence[Conversation], results: Results) -> str:
    """A table for every version of the questions and part of the conversations."""
    tables = [
        table(
            f"{version} questions, {_described(conversations, version, part)}", results.by_part[version][part]
        )
        for version in VERSIONS
        for part in PARTS
    ]
    return "\n\n".join([*tables, table_of_categories(results.by_category)])


def table_of_categories(by_category: dict[int, dict[Mode, Figures]]) -> str:
    """R@10 of the published questions on conversations 6 to 10: a row a mode, a column a category."""
    head = " " * 8 + "".join(f"{CATEGORIES[category]:>13}" for category in by_category)
    rows = [
        f"{mode:<8}" + "".join(f"{figures[mode].recall_10:13.3f}" for figures in by_category.values())
        for mode in MODES
    ]
    return "\n".join(["R@10 by category, original questions, conversations 6–10", head, *rows])


def table(title: str, figures: dict[Mode, Figures]) -> str:
    """One table: a row for each mode."""
    head = " " * 8 + "".join(f"{column:>9}" for column in COLUMNS)
    rows = [
        f"{mode:<8}" + "".join(f"{value:9.3f}" for value in row[:-1]) + f"{row.ms:9.1f}"
        for mode, row in figures.items()
    ]
    return "\n".join([title, head, *rows])


def as_json(conversations: Sequence[Conversation], results: Results) -> bytes:
    """The numbers of the tables as JSON."""
    numbers = {
        version: {
            part: _counts(conversations, version, part) | {"figures": _by_column(figures)}
            for part, figures in parts.items()
        }
        for version, parts in results.by_part.items()
    }
    return msgspec.json.format(msgspec.json.encode(numbers)) + b"\n"


def _by_column(figures: dict[Mode, Figures]) -> dict[Mode, dict[str, float]]:
    return {
        mode: {column: round(value, 4) for column, value in zip(COLUMNS, row, strict=True)}
        for mode, row in figures.items()
    }


def _described(conversations: Sequence[Conversation], version: str, part: str) -> str:
    first, last = PARTS[part].start + 1, PARTS[part].stop
    counts = [f"{count:,} {name}" for name, count in _counts(conversations, version, part).items()]
    return f"conversations {first}–{last} ({part}): {', '.join(counts)}"


def _counts(conversations: Sequence[Conversation], version: str, part: str) -> dict[str, int]:
    """How many questions there are, and how many turns they should find together."""
    asked = [
        question
        for conversation in conversations[PARTS[part]]
        for question in conversation.questions[version]
    ]
    return {"queries": len(asked), "judgments": sum(len(question.relevant) for question in asked)}


def progress_line() -> Progress | None:
    """Shows how far the work is, on a terminal only."""
    if not sys.stderr.isatty():
        return None

    def show(what: str, done: int, total: int) -> None:
        sys.stderr.write(f"\r\x1b[K{what}: {done} of {total}" + ("\n" if done >= total else ""))
        sys.stderr.flush()

    return show


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, 1 where `--check` fails, 2 where nothing can be measured."""
    options = _parsed(arguments)
    try:
        folder = data_folder()
        conversations = read_conversations(folder)
        messages = sum(len(conversation.messages) for conversation in conversations)
        print(f"{len(conversations)} conversations, {messages:,} messages: {origin(folder)}\n")
        with store_folder(options.keep) as stores:
            results = evaluate(conversations, stores, progress_line())
    except (CannotMeasure, memlog.MemlogError) as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    print(report(conversations, results))
    if options.json:
        options.json.write_bytes(as_json(conversations, results))
    return exit_status(failures(results) if options.check else [])


def exit_status(failed: Sequence[str]) -> int:
    """1 where something failed, which is told on stderr; else 0."""
    for failure in failed:
        print(f"eval: {failure}", file=sys.stderr)
    return 1 if failed else 0


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search quality on the LoCoMo conversations.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR for the next run")
    parser.add_argument("--check", action="store_true", help="exit 1 where a figure is lower than it must be")
    return parser.parse_args(arguments)


@contextmanager
def store_folder(keep: Path | None) -> Iterator[Path]:
    """The folder of the stores: `keep`, or one that is removed at the end."""
    if keep is not None:
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="memlog-eval-") as folder:
        yield Path(folder)


if __name__ == "__main__":
    sys.exit(main())
