"""Search quality in six languages on XQuAD (Artetxe et al. 2020, https://arxiv.org/abs/1910.11856).

Each language is a store of its own: 240 paragraphs, each a document, and 1,190 questions, each of which
should find the paragraph that it is about. The data is not part of memlog (CC BY-SA 4.0): the variable
MEMLOG_EVAL_DATA names the folder that has it.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import memlog
from tests.eval.locomo import (
    MODES,
    VARIABLE,
    CannotMeasure,
    Figures,
    Mode,
    Progress,
    Question,
    averaged,
    exit_status,
    figures_of,
    fill,
    progress_line,
    ranking_of,
    store_folder,
    table,
)

LANGUAGES = ("en", "ru", "zh", "de", "tr", "th")

LEAST_RECALL: dict[str, dict[Mode, float]] = {
    "en": {"text": 0.99, "rrf": 0.99},
    "ru": {"text": 0.99, "rrf": 0.98},
    "zh": {"text": 0.98, "rrf": 0.98},
    "de": {"text": 0.98, "rrf": 0.97},
    "tr": {"text": 0.98, "rrf": 0.97},
    "th": {"text": 0.98, "rrf": 0.98},
}
"""R@10 by language and mode below which `--check` fails. The built-in model reads English alone."""

Results = dict[str, dict[Mode, Figures]]
"""By language and mode."""


class Asked(msgspec.Struct, frozen=True):
    """One question, as the files have it."""

    question: str


class Paragraph(msgspec.Struct, frozen=True):
    """One paragraph and its questions, as the files have them."""

    context: str
    qas: list[Asked]


class Article(msgspec.Struct, frozen=True):
    """The paragraphs of one article, as the files have them."""

    paragraphs: list[Paragraph]


class XQuad(msgspec.Struct, frozen=True):
    """What one file holds."""

    data: list[Article]


@dataclass(frozen=True)
class Collection:
    """What is appended to one store, and what is then asked of it."""

    language: str
    events: list[memlog.Event]
    questions: list[Question]


def data_folder() -> Path:
    """The folder with XQuAD's files.

    Raises:
        CannotMeasure: the variable is not set, or names a folder without them.
    """
    folder = Path(os.environ.get(VARIABLE) or ".") / "xquad"
    if not all((folder / f"xquad.{language}.json").is_file() for language in LANGUAGES):
        raise CannotMeasure(f"{VARIABLE} does not name a folder that has xquad/xquad.en.json, .ru and .zh")
    return folder


def read_collections(folder: Path) -> list[Collection]:
    """The paragraphs and questions of each language."""
    return [collection_of(language, folder / f"xquad.{language}.json") for language in LANGUAGES]


def collection_of(language: str, path: Path) -> Collection:
    """What a file holds; a paragraph's id is its number."""
    read = msgspec.json.decode(path.read_bytes(), type=XQuad)
    paragraphs = [paragraph for article in read.data for paragraph in article.paragraphs]
    return Collection(
        language,
        [
            memlog.DocumentIndexed(source_id="xquad", file=str(number), content=paragraph.context)
            for number, paragraph in enumerate(paragraphs)
        ],
        [
            Question(asked.question, frozenset({f"xquad/{number}"}))
            for number, paragraph in enumerate(paragraphs)
            for asked in paragraph.qas
        ],
    )


def evaluate(collections: Sequence[Collection], folder: Path, progress: Progress | None = None) -> Results:
    """Figures of every language and mode.

    folder: holds a store for each language; what is there already is not embedded again.

    Raises:
        CannotMeasure: the vector side does not work here.
    """
    return {
        collection.language: figures_by_mode(collection, folder / f"xquad-{collection.language}", progress)
        for collection in collections
    }


def figures_by_mode(
    collection: Collection, path: Path, progress: Progress | None = None
) -> dict[Mode, Figures]:
    """Figures of one language, by mode."""
    with memlog.open(path) as store:
        fill(store, collection.events, progress)
        return {mode: _asked(store, collection, mode) for mode in MODES}


def text_figures(collection: Collection, path: Path) -> Figures:
    """Figures of one language by full text alone: nothing is embedded."""
    with memlog.open(path) as store:
        store.append(collection.events)
        store.maintenance.project(embed=False)
        return _asked(store, collection, "text")


def _asked(store: memlog.Store, collection: Collection, mode: Mode) -> Figures:
    # The model that memlog ships with keeps silent where it cannot read the question.
    return averaged(
        [
            figures_of(ranking_of(store, asked.text, mode, sides=["pending"]), asked)
            for asked in collection.questions
        ]
    )


def failures(results: Results) -> list[str]:
    """What `--check` holds against the figures; empty where they are good."""
    return [
        f"R@10 {mode} in {language} is {results[language][mode].recall_10:.3f}, less than {least:.2f}"
        for language, by_mode in LEAST_RECALL.items()
        for mode, least in by_mode.items()
        if results[language][mode].recall_10 < least
    ]


def report(results: Results) -> str:
    """A table for each language."""
    return "\n\n".join(table(f"XQuAD, {language}", figures) for language, figures in results.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0, 1 where `--check` fails, 2 where nothing can be measured."""
    options = _parsed(arguments)
    try:
        collections = read_collections(data_folder())
        with store_folder(options.keep) as folder:
            results = evaluate(collections, folder, progress_line())
    except (CannotMeasure, memlog.MemlogError) as error:
        print(f"eval: {error}", file=sys.stderr)
        return 2
    print(report(results))
    return exit_status(failures(results) if options.check else [])


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Search quality on XQuAD.")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the stores in DIR for the next run")
    parser.add_argument("--check", action="store_true", help="exit 1 where a figure is lower than it must be")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
