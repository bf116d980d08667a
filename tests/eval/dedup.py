"""How well saving without duplicates tells what was said before, in four languages, and what was not, in 20.

1,000 saves into one store: 500 texts that each say something of their own, of which most differ from another
one in a number, a name, a negation or one word alone; 300 of them once more, but for white space, case and
forms of characters; and of 200 a text that says the same with a typo, other punctuation, a word more, another
ending, or clauses in another order. All are made from dedup.txt, the same in every run.

A decision is right where a text that was said before is `already known`, or `merged into` the memory that
said it. Precision is the share of these among all such decisions, recall among the texts that were said
before. A changed tense counts as said before in dedup.txt, and memlog keeps it apart.

different.txt has 150 pairs of texts that say two things; a merge of one counts against precision.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec

import memlog

LEAST = {"precision": 1.0, "recall": 0.88}
"""Figures below which `--check` fails."""

EXACT = 300
NEAR = 200

SEED = 20260224
_SHORTEST = 4  # letters of a word in which a typo is made
_OF_ONE_SOUND = dict(zip("在的里做付喝到写用给", "再地理作负和道些佣个", strict=True))
_SIGNS = {"#": "number", "@": "name", "!": "negation", "?": "word"}

Kind = Literal["original", "exact", "near"]


@dataclass(frozen=True)
class Base:
    """A text of dedup.txt.

    edits: by sign, what is replaced by what. reordered: its clauses in another order.
    """

    language: str
    text: str
    edits: dict[str, tuple[str, str]]
    reordered: str

    def edited(self, text: str, sign: str) -> str:
        """`text`, which is made of this one, with one more edit."""
        return text.replace(*self.edits[sign], 1)


@dataclass(frozen=True)
class Save:
    """One save of the run.

    group: the number of the text that it says, in whatever words. how: what was done to that text.
    """

    kind: Kind
    group: int
    language: str
    how: str
    text: str


@dataclass
class Result:
    """What became of the saves.

    wrong: those that were decided otherwise than they should be, each with what was said before and decided.
    seconds: by decision, without the memory's id. lost: texts that no history has.
    merged: pairs of different.txt that became one memory.
    """

    saves: int = 0
    right: Counter[Kind] = field(default_factory=Counter)
    said_before: Counter[Kind] = field(default_factory=Counter)
    decided_known: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[Save, str, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    merged: list[tuple[str, str]] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Of the texts that were taken for duplicates, those that are."""
        return self.right.total() / max(1, self.decided_known.total() + len(self.merged))

    @property
    def recall(self) -> float:
        """Of the duplicates, those that were taken for one of the right memory."""
        return self.right.total() / max(1, self.said_before.total())

    @property
    def near_precision(self) -> float:
        """Of the merges, those of texts that say the same."""
        return self.right["near"] / max(1, self.decided_known["merged"])

    @property
    def near_recall(self) -> float:
        """Of the near duplicates, those that were merged."""
        return self.right["near"] / max(1, self.said_before["near"])


def bases() -> list[Base]:
    """The texts of dedup.txt."""
    text = (Path(__file__).parent / "dedup.txt").read_text(encoding="utf-8")
    sections = (section.partition("]") for section in text.split("\n[")[1:])
    return [_base(language, block) for language, _, body in sections for block in body.strip().split("\n\n")]


def _base(language: str, block: str) -> Base:
    lines = {line[0]: line[2:] for line in block.split("\n")}
    edits = {sign: lines[sign].split(" > ") for sign in "+~#@!?"}
    return Base(language, lines["="], {sign: (old, new) for sign, (old, new) in edits.items()}, lines["/"])


def different() -> list[tuple[str, str, str]]:
    """The pairs of different.txt, behind the heading of their section: `[da] negation`."""
    text = (Path(__file__).parent / "different.txt").read_text(encoding="utf-8")
    found: list[tuple[str, str, str]] = []
    heading = ""
    for line in text.splitlines():
        one, _, other = line.partition("\t")
        if other:
            found.append((heading, one, other))
        heading = one if one.startswith("[") and not other else heading
    return found


def saves(share: int = 1, seed: int = SEED) -> list[Save]:
    """The saves of a run, in their order: nothing is said a second time before it was said once.

    share: every so many-th of the base texts alone. seed: of what is chosen by chance.
    """
    chance = random.Random(seed)
    chosen = bases()[::share]
    originals = list(_originals(chosen))
    near = list(_near(chance, chosen, originals, NEAR // share))
    exact = [
        Save("exact", each.group, each.language, how, made)
        for each in chance.choices(originals, k=EXACT // share)
        for how, made in [_same(chance, each.text)]
    ]
    second = [*near, *exact]
    chance.shuffle(second)
    order = originals[:]
    for each in second:
        said = next(at for at, other in enumerate(order) if other.group == each.group)
        order.insert(chance.randint(said + 1, len(order)), each)
    return order


def _originals(chosen: Sequence[Base]) -> Iterator[Save]:
    group = 0
    for base in chosen:
        yield Save("original", group, base.language, "text", base.text)
        for offset, (sign, how) in enumerate(_SIGNS.items(), 1):
            yield Save("original", group + offset, base.language, how, base.edited(base.text, sign))
        group += 1 + len(_SIGNS)


def _near(
    chance: random.Random, chosen: Sequence[Base], originals: Sequence[Save], count: int
) -> Iterator[Save]:
    """One edit of each kind in turn, as many in each language, and of no original two."""
    languages = list(dict.fromkeys(base.language for base in chosen))
    for language in languages:
        places = [at for at, base in enumerate(chosen) if base.language == language]
        chance.shuffle(places)
        for number in range(count // len(languages)):
            turn, index = divmod(number, len(places))
            how = list(_EDITS)[(number + turn) % len(_EDITS)]
            at = places[index] * (1 + len(_SIGNS))
            group, text = _edited(chance, chosen[places[index]], originals[at : at + 5], how, turn)
            yield Save("near", group, language, how, text)


def _edited(chance: random.Random, base: Base, said: Sequence[Save], how: str, turn: int) -> tuple[int, str]:
    """The number of an original of one base text, and what an edit makes of it: in the first turn of the base
    text itself, then of one that was made of it."""
    for each in said if turn == 0 else said[1:]:
        sign = next((sign for sign, name in _SIGNS.items() if name == each.how), None)
        made = _EDITS[how](chance, base, each.text)
        if how == "order" and sign is not None:
            made = base.edited(base.reordered, sign)
        if made not in (each.text, base.reordered if sign else None):
            return each.group, made
    raise ValueError(f"{how} makes nothing of {base.text!r}")


def _typo(chance: random.Random, base: Base, text: str) -> str:
    """A slip of the finger in one word; of Chinese one character for another, or two exchanged."""
    if base.language == "zh":
        places = [at for at, character in enumerate(text) if character in _OF_ONE_SOUND]
        if not places:
            at = chance.randrange(len(text) - 1)
            return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        at = chance.choice(places)
        return text[:at] + _OF_ONE_SOUND[text[at]] + text[at + 1 :]
    words = text.split(" ")
    at = chance.choice([at for at, word in enumerate(words) if word.isalpha() and len(word) >= _SHORTEST])
    words[at] = _slipped(chance, words[at])
    return " ".join(words)


def _slipped(chance: random.Random, word: str) -> str:
    at = chance.randrange(1, len(word) - 1)
    slips = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + chance.choice(word) + word[at + 1 :],
    )
    return chance.choice([slip for slip in slips if slip != word])


def _punctuated(chance: random.Random, base: Base, text: str) -> str:
    ends = ("。", "!", "。。。") if base.language == "zh" else (".", "!", " …", ";")
    without = text.replace(",", "").replace(",", "")
    return chance.choice((text, without, f"({text})", f"«{text}»")) + chance.choice(ends)


_EDITS: dict[str, Callable[[random.Random, Base, str], str]] = {
    "typo": _typo,
    "punctuation": _punctuated,
    "added": lambda _, base, text: base.edited(text, "+"),
    "ending": lambda _, base, text: base.edited(text, "~"),
    "order": lambda _, base, __: base.reordered,
}


def _same(chance: random.Random, text: str) -> tuple[str, str]:
    wide = {code: code + 0xFEE0 for code in range(ord("0"), ord("z") + 1) if chr(code).isalnum()}
    return chance.choice(
        [
            ("as it is", text),
            ("capitals", text.upper()),
            ("small", text.lower()),
            ("spaces", text.replace(" ", "  ") + "\n"),
            ("wide", text.translate(wide)),
        ]
    )


def run(asked: Sequence[Save], path: Path) -> Result:
    """Save it all into a new store at `path`, and look what became of it."""
    result = Result()
    memory_of: dict[int, str] = {}
    with memlog.open(path) as store:
        for each in asked:
            started = time.perf_counter()
            saved = store.memories.save(each.text)
            result.seconds.append(time.perf_counter() - started)
            _judge(result, each, saved, memory_of)
        result.lost = _lost(store, asked)
        result.merged = _merged(store)
    return result


def _merged(store: memlog.Store) -> list[tuple[str, str]]:
    """The pairs of different.txt that become one memory, in either order, each in a chat of its own."""
    found = []
    for number, (_, one, other) in enumerate(different()):
        for order, pair in enumerate(((one, other), (other, one))):
            said = [store.memories.save(text, chat=f"pair:{number}-{order}").memory_id for text in pair]
            if said[0] == said[1]:
                found.append(pair)
    return found


def _judge(result: Result, save: Save, saved: memlog.SaveReport, memory_of: dict[int, str]) -> None:
    result.saves += 1
    decision = saved.decision.split(" ")[0]
    if save.kind != "original":
        result.said_before[save.kind] += 1
    if decision != "saved":
        result.decided_known[decision] += 1
    is_known = decision != "saved" and saved.memory_id == memory_of.get(save.group)
    if save.kind != "original" and is_known:
        result.right[save.kind] += 1
    elif save.kind != "original" or decision != "saved":
        other = next((str(group) for group, name in memory_of.items() if name == saved.memory_id), "none")
        result.wrong.append((save, saved.decision, other))
    if save.kind == "original":
        memory_of[save.group] = saved.memory_id


def _lost(store: memlog.Store, asked: Sequence[Save]) -> list[str]:
    """Texts that were told apart from all before, and that no history has."""
    said = {
        msgspec.json.decode(event.raw).get("content")
        for memory in store.memories.list()
        for event in store.memories.history(memory.memory_id)
    }
    return [each.text for each in asked if each.kind != "exact" and each.text not in said]


def report(result: Result) -> str:
    """The figures, and each decision that was wrong."""
    milliseconds = sorted(second * 1000 for second in result.seconds)
    p95 = milliseconds[int(len(milliseconds) * 0.95)]
    return "\n".join(
        [
            f"{result.saves} saves, {result.said_before['exact']} exact and {result.said_before['near']} near"
            " duplicates",
            f"precision {result.precision:.3f}, recall {result.recall:.3f}",
            f"of the near ones alone: precision {result.near_precision:.3f}, recall {result.near_recall:.3f}",
            f"a save took {median(milliseconds):.1f} ms (median), {p95:.1f} ms (95th percentile)",
            f"texts that no history has: {len(result.lost)}",
            f"pairs of two things: {len(different())}, merged: {len(result.merged)}",
            *(f"  {one!r} and {other!r}" for one, other in result.merged),
            *(
                f"  {save.language} {save.kind} {save.how}: {save.text!r}: {decision}"
                for save, decision, _ in result.wrong
            ),
        ]
    )


def failures(result: Result) -> list[str]:
    """What `--check` holds against the figures; empty where they are good."""
    figures = {"precision": result.precision, "recall": result.recall}
    low = [f"{name} is {figure:.3f}" for name, figure in figures.items() if figure < LEAST[name]]
    return low + [f"no history has {text!r}" for text in result.lost]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, or 1 where `--check` fails."""
    parser = argparse.ArgumentParser(description="Precision and recall of saving without duplicates.")
    parser.add_argument("--check", action="store_true", help="exit 1 where a figure is lower than it must be")
    parser.add_argument("--seed", type=int, default=SEED, help="of typos, choices and order")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        result = run(saves(seed=options.seed), Path(folder) / "store")
    print(report(result))
    wrong = failures(result) if options.check else []
    for each in wrong:
        print(f"eval: {each}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
