"""Real documentation as documents: what adding it costs, whether counts add up, and hits are where they say.

    python -m tests.eval.documents [--check] [FOLDER…]

Without a FOLDER it takes the sources and documentation of installed Python packages, and what stands below
/usr/share/doc. `--check` fails where a figure is not as docs/documents.md says.
"""

import argparse
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from html import unescape
from importlib.metadata import distribution
from pathlib import Path

import msgspec

import memlog

PACKAGES = ("pytest", "hypothesis", "mypy")
SYSTEM = Path("/usr/share/doc")
SAMPLE = 500
_ONLY_DOCUMENTS = memlog.Filters(kinds=frozenset({"document"}))


class Figures(msgspec.Struct, kw_only=True):
    """What was measured. files, skipped: found. seconds, seconds_again: of the first and of a second adding.

    appended_again: events of the second. hits: that were looked up; wrong: those that are not where they say.
    """

    files: int
    indexed: int
    skipped: int
    bytes: int
    seconds: float
    seconds_again: float
    appended_again: int
    hits: int
    wrong: list[str]


def package_folder(name: str) -> Path:
    """The folder of an installed package's modules."""
    files = distribution(name).files or []
    inits = [file for file in files if file.name == "__init__.py"]
    return Path(str(min(inits, key=lambda file: len(file.parts)).locate())).parent


def measured(folders: Sequence[Path], store_path: Path, sample: int = SAMPLE, seed: int = 7) -> Figures:
    """Add the folders to a new store, twice, and look up a sample of hits.

    Raises:
        AssertionError: counts do not add up.
    """
    with memlog.open(store_path) as store:
        began = time.perf_counter()
        added = store.documents.add_all(folders)
        seconds = time.perf_counter() - began
        store.maintenance.project(embed=False)
        before = _events(store)
        began_again = time.perf_counter()
        again = store.documents.add_all(folders)
        seconds_again = time.perf_counter() - began_again
        for first, second in zip(added, again, strict=True):
            assert first.found == first.indexed + len(first.skipped)
            assert second.found == second.unchanged + len(second.skipped)
            assert (second.indexed, second.removed, second.unchanged) == (0, 0, first.indexed)
        wrong, hits = [], 0
        for hit in sampled(store, sample, seed):
            hits += 1
            wrong += [f"{hit.id}:{hit.start_line}"] if why_wrong(store, hit) else []
        return Figures(
            files=sum(each.found for each in added),
            indexed=sum(each.indexed for each in added),
            skipped=sum(len(each.skipped) for each in added),
            bytes=sum(source.bytes for source in store.documents.list()),
            seconds=seconds,
            seconds_again=seconds_again,
            appended_again=_events(store) - before,
            hits=hits,
            wrong=wrong,
        )


def sampled(store: memlog.Store, count: int, seed: int) -> Iterator[memlog.Hit]:
    """So many distinct hits of words that stand in the documents, the same for one seed."""
    chance = random.Random(seed)
    documents = [
        each.id for source in store.documents.list() for each in store.documents.list(source.source_id)
    ]
    seen: set[tuple[str, int | None]] = set()
    for _ in range(count * 20):
        document = store.documents.get(chance.choice(documents))
        words = re.findall(r"[^\W\d_]{4,}", document.content if document else "")
        question = " ".join(chance.sample(words, min(2, len(words))))
        for hit in store.search(question, mode="text", filters=_ONLY_DOCUMENTS, k=5).hits:
            if (hit.id, hit.start_line) not in seen:
                seen.add((hit.id, hit.start_line))
                yield hit
                if len(seen) == count:
                    return


def why_wrong(store: memlog.Store, hit: memlog.Hit) -> str | None:
    """What of a hit does not stand where it says, in the file as it is on disk; None where all does."""
    root = next(source.root for source in store.documents.list() if source.source_id == hit.source)
    path = Path(str(root)) / str(hit.file)
    if path.suffix == ".pdf":
        return None
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    start, end = hit.start_line or 0, hit.end_line or 0
    if not 1 <= start <= end <= len(lines):
        return "no such lines"
    there = lines[start - 1 : end]
    has = _has_words if path.suffix in (".html", ".htm") else _has
    return None if has(there, hit.content) else "it is not there"


def _has(lines: Sequence[str], passage: str) -> bool:
    """Whether a passage has all lines but the first and the last, in one piece, with an end of the first in
    front and a beginning of the last behind. What it repeats of an earlier passage stands around that."""
    if len(lines) == 1:
        return any(part.strip() and part.strip() in lines[0] for part in passage.split("\n"))
    first, *inner, last = lines
    for at in re.finditer(re.escape("\n" + "\n".join([*inner, ""])), passage):
        in_front, behind = passage[: at.start()].rpartition("\n")[2], passage[at.end() :].partition("\n")[0]
        ends_there = last.startswith(behind) if behind else not last.strip()
        if first.endswith(in_front) and (ends_there or behind.startswith(last)):
            return True
    return False


def _has_words(lines: Sequence[str], passage: str) -> bool:
    """Whether the lines of a page have the letters of each line of a passage, but of a heading said again."""
    there = _letters(unescape(re.sub(r"<[^>]*>", "", "\n".join(lines))))
    missing = [line for line in passage.split("\n") if _letters(line) not in there]
    return len(missing) <= 1 and passage.strip() not in missing


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)


def _events(store: memlog.Store) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (store.path / "log/documents").glob("*.jsonl"))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    folders = asked.folders or [*map(package_folder, PACKAGES), *([SYSTEM] if SYSTEM.is_dir() else [])]
    with tempfile.TemporaryDirectory() as store:
        figures = measured(folders, Path(store))
    print(f"{figures.files} found = {figures.indexed} indexed + {figures.skipped} skipped")
    print(f"{figures.bytes:,} bytes in {figures.seconds:.1f} s")
    print(f"again {figures.seconds_again:.1f} s, {figures.appended_again} events appended")
    print(f"{figures.hits} hits, {len(figures.wrong)} not where they say", *figures.wrong[:10])
    if asked.check and (figures.appended_again or figures.wrong or figures.hits < SAMPLE):
        sys.exit(1)


if __name__ == "__main__":
    main()
