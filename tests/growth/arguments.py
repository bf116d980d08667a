"""How each function that takes text is called: what fills its other parameters; what is left out, and why."""

import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import click

from memlog.eventlog.errors import MemlogError
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.secrets.keys import SHAPES
from memlog.query.context.fence import json_escape
from memlog.service.documents.text_files import Unfit
from memlog.service.memory.facts import NoCertainList
from tests.growth.functions import Function, as_kind
from tests.growth.world import World

PLAIN = "green tea"

ORDINARY = (
    PLAIN,
    "2026-02-24T10:00:00Z",
    "my favourite colours are 1) Blue, 2) Green. what is my second favourite tea 2. s's",
    "My favourite colours are first blue, second green",
    '{"id":"a","type":"message","channel":"cli","chat_id":1,"role":"user","content":"\\ud83d \\u0061"}',
    '{"a":"\\ud83d \\u0061"',
    '{"stream":"memory","segment":"2026-02-24.jsonl","prev":"","crc":"00000000"}',
    '{"stream":"memory","segment":"2026-02-24.jsonl","bytes":1',
    "36 35 98:0 / /mnt\\040x rw,noatime - ext4 /dev/root rw",
    "# Name\n- Anna's tea: green\nName: Anna\n",
    " ".join(shape.fixed for shape in SHAPES),
)
"""What leads to most of what a function does."""

REFUSALS = (MemlogError, BadLine, NoCertainList, Unfit, ValueError)
"""What a function may answer to a text that it has no use for."""

OWN_NAMES: dict[str, Any] = {
    "language": "english",
    "table": "messages",
}
"""By the name of a parameter: texts that memlog's own code gives, and nothing foreign."""

LEFT_OUT: dict[str, str] = {
    "cli.process.confirmation.agrees": "asks a person in memlog's own words",
    "cli.output.output.format_option": "makes options of memlog's own names",
    "cli.output.output.counted": "a number and a word of memlog's own",
    "cli.options.event_options.*": "makes options from the types of events",
    "cli.options.field_options.*": "makes options from the fields of structs",
    "cli.options.request_options.*": "makes options from the fields of requests",
    "cli.output.answer.*": "prints what `cli.output` makes printable",
    "cli.output.output.print_*": "writes to standard output what `printable` made",
    "cli.output.output.highlighted": "places of memlog's own",
    "cli.output.output.wants_json": "compares the words of a command line with fixed ones",
    "cli.output.output.note": "writes to standard error what `printable` made",
    "cli.output.output.*": "names of memlog's own work",
    "cli.options.settings.*": "a person's own settings",
    "cli.options.settings_schema.*": "a person's own settings: `Setting.read` is covered by the type of each",
    "cli.output.turns.lines_around": "prints rows that `set_in` and `one_line` shaped",
    "eventlog.events.compared": "compares the hash of an event",
    "eventlog.log.writer.*": "hands lines to `Log.draft`, which is called by itself",
    "cli.process.main.LazyCommands.*": "looks a name up; an unknown one goes to `no_such_command`",
    "eventlog.codec.decode.check_members": "a line and its members, which `eventlog.decode` read",
    "eventlog.integrity.verify.*": "walks the log by names of streams; `codec.decode` reads its lines",
    "eventlog.integrity.erasures.*": "places of lines, which `eventlog.decode.decode` read",
    "eventlog.log.reader.in_log_order": "bounds by names of segments; lines are read by `read_lines`",
    "eventlog.log.reader.lines_of": "bounds by names of segments; lines are read by `read_lines`",
    "eventlog.log.reader.redacted_keys": "bounds by names of segments; lines are read by `decode`",
    "eventlog.log.watermarks.*": "looks up a segment by its name",
    "eventlog.log.rotation.*": "opens segments by the names of streams and writers",
    "eventlog.log.watermarks.Watermarks.*": "looks up segments by the name of their stream",
    "eventlog.log.tail.*": "the name of one file",
    "eventlog.log.order.Clock.wrote": "keeps a time of memlog's own",
    "eventlog.files.disk.*": "one call of the system each",
    "eventlog.codec.encode.Draft.line": "joins a time of memlog's own to a line",
    "eventlog.files.folders.entered": "opens folders by their names",
    "eventlog.codec.decode.members_of": "takes lines whose depth `check_text` has checked",
    "eventlog.files.locks.*": "a text of memlog's own, for the error",
    "eventlog.files.file_io.*": "one call of the system each",
    "eventlog.log.reader.*": "compares the status of files that it has listed",
    "eventlog.log.reader.is_redacted": "looks a key up",
    "eventlog.log.reader.last_entries": "looks keys up",
    "eventlog.log.reader.exclusion_reason": "looks a key up",
    "eventlog.integrity.scrub.*": "overwrites lines of the log by their place",
    "eventlog.integrity.seal_file.*": "looks up a segment by its name",
    "eventlog.integrity.seal_losses.Ownership.is_*": "a name of a segment, which `SegmentName.parse` reads",
    "eventlog.integrity.seal_reader.*": "looks up a segment by its name",
    "eventlog.log.streams.SegmentName.successor": "a day of memlog's own",
    "eventlog.log.streams.segments_of": "opens streams by their names, which the log has",
    "eventlog.integrity.copy_identity.*": "compares names of writers and of segments",
    "projector.embedding.cache.VectorCache*": "looks vectors up by the hash of a text",
    "projector.embedding.cache.keep_only": "looks vectors up by the hash of a text",
    "projector.catchup.catch_up": "positions by stream",
    "projector.core_file.*": "compares bytes",
    "projector.embedding.models.*": "the model takes the first 510 tokens of a passage",
    "projector.text.language_files.*": "reads memlog's own files",
    "projector.text.stemming.stop_words_in": "names of languages",
    "projector.passages.markdown.nest_blocks": "`blocks` of each format calls it",
    "projector.passages.fulltext.*": "SQLite's own insert of texts that `analysed` made",
    "projector.subjects.*": "rows by their keys",
    "projector.passages.index.*": "rows of what `chunks` cut and `analysed` indexes",
    "projector.catchup.build": "replays a log, whose events come one by one",
    "projector.lifecycle.*": "replays a log, whose events come one by one",
    "projector.fold.*": "replays a stream, whose events come one by one",
    "projector.sqlite.*": "SQL of memlog's own",
    "projector.passages.vectors.*": "SQL of memlog's own, and vectors",
    "query.records.*": "SQL of memlog's own",
    "query.documents.tree": "names of files that were read",
    "query.context.entries.hit_entry": "keeps the texts of a hit as they are",
    "query.context.fence.is_unseen": "one character",
    "query.facts.answers.find": "a name of a chat",
    "query.provenance.unknown": "SQL of memlog's own",
    "query.memories.select": "SQL of memlog's own",
    "query.request.read_argument": "the name of an argument",
    "query.event_index.*": "SQL of memlog's own",
    "query.search.hits.add_evidence": "candidates that both sides have found",
    "query.search.hits.*": "numbers by keys",
    "query.search.copies.represent_copies": "candidates by the name of a side",
    "query.search.copies.*": "SQL of memlog's own",
    "query.search.vector_cache.*": "vectors",
    "query.search.nearest.*": "vectors",
    "query.search.fulltext.*": "expressions that `query.search.fts_query` made and bounds, and FTS5 parses",
    "cli.commands.mcp.*": "names of hosts",
    "service.adapters.async_operations.*": "calls the method of the same name in a thread",
    "service.documents.documents.*": "names of files; what is in them goes through `extracted` and `blocks`",
    "service.documents.scan.*": "hands rules and paths to the reader process, which has limits",
    "service.documents.pdf_text.*": "pypdf, which has limits of its own",
    "service.engine.sandbox.*": "hands its text to the reader process, which has limits",
    "service.documents.indexing.*": "names of files that were read",
    "service.documents.sources.unchanged_plan": "keeps versions as they are",
    "service.documents.text_files.*": "names of files, of at most 4,096 bytes",
    "service.documents.sources.SourcePlan.report": "keeps its text",
    "service.documents.text_files.look_at": "a call of the system",
    "service.documents.text_files.read*": "reads bytes as they are",
    "service.upkeep.doctor.or_ok": "sentences of memlog's own",
    "service.memory.fading.*": "categories and rates, one each",
    "service.projects.*": "names of folders, of at most 255 bytes",
    "service.engine.read_model.*": "names of a stream or a chat",
}
"""Functions, by name or pattern, and why no foreign text of any length reaches their own work."""

RECIPES: dict[str, Callable[[World], dict[str, Any]]] = {
    "cli.process.main.no_such_command": lambda world: {"ctx": click.Context(click.Group())},
    "eventlog.escapes.decoded": lambda world: {"kind": dict},
    "eventlog.codec.decode.is_shortest_spelling": lambda world: {"event": world.message},
    "eventlog.escapes.map_spans_to_escaped": lambda world: {
        "plain_spans": [(0, 1), (sys.maxsize - 1, sys.maxsize)]
    },
    "eventlog.codec.decode.check_crc_is_last": lambda world: {"has_crc": False},
    "eventlog.log.streams.belongs_in": lambda world: {"event": world.message},
    "projector.text.marks.first_place": lambda world: {"marks": world.marks},
    "projector.text.marks.marked_places": lambda world: {"marks": world.marks},
    "projector.text.stemming.stems": lambda world: {"latin": ("finnish",)},
    "query.context.fence.shown": lambda world: {"escape": json_escape},
    "query.facts.question_parser.ordinal_at": lambda world: {"place": 0},
    "query.search.alike.likely_memories": lambda world: {"lengths": (1, 10_000)},
    "query.search.fulltext.priors": lambda world: {"messages": {}, "passages": {}},
    "query.search.hits.snippet": lambda world: {"marks": world.marks},
    "service.documents.documents.folder_requests": lambda world: {
        "paths": [],
        "kind": "docs",
        "include": (),
        "exclude": (),
    },
    "service.engine.sandbox_program.extract_text": lambda world: {"filetype": "html"},
}
"""What the other parameters of a function are, where their annotations do not tell."""


class Call(NamedTuple):
    """A function with one of its texts left open. is_stored: whether each call may append to a log."""

    label: str
    work: Callable[[str], object]
    is_stored: bool

    def __call__(self, text: str) -> None:
        """Call it; it may refuse the text."""
        with suppress(*REFUSALS):
            self.work(text)


class NoRecipe(Exception):
    """Why a function cannot be called: it needs an entry in a table of this module."""


def exclusion_reason(function: Function) -> str | None:
    """Why a function is not called; None where it is."""
    return next((why for name, why in LEFT_OUT.items() if fnmatchcase(function.name, name)), None)


def calls(function: Function, world: World) -> list[Call]:
    """A function with each of its texts left open in turn.

    Raises:
        NoRecipe: nothing says what else it takes.
    """
    recipe = _recipe(function, world)
    given = {**_others(function, world, recipe), **recipe}
    target = function.call
    if function.kind is not None:
        if function.kind not in world.objects:
            raise NoRecipe(f"{function.name}: no {function.kind} to call it of")
        target = getattr(world.objects[function.kind](), function.name.rpartition(".")[2])
    opened = [name for name in function.texts if name not in recipe and name not in OWN_NAMES]
    is_stored = function.kind is not None
    return [
        Call(f"{function.name}:{name}", _work(function, target, given, name, world), is_stored)
        for name in opened
    ]


def _recipe(function: Function, world: World) -> dict[str, Any]:
    found = (make for name, make in RECIPES.items() if fnmatchcase(function.name, name))
    return next(found, lambda _: {})(world)


def _others(function: Function, world: World, recipe: dict[str, Any]) -> dict[str, Any]:
    given = {}
    for name, (parameter, kind) in function.parameters().items():
        if name in recipe or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in OWN_NAMES and kind is not None:
            given[name] = OWN_NAMES[name]
        elif parameter.default is not inspect.Parameter.empty:
            continue
        elif name in function.texts:
            given[name] = as_kind(PLAIN, kind)
        elif kind in world.values:
            given[name] = world.values[kind]()
        elif typing.get_origin(kind) is Literal:
            given[name] = typing.get_args(kind)[0]
        elif type(None) in typing.get_args(kind):
            given[name] = None
        else:
            raise NoRecipe(f"{function.name}: nothing fills {name}: {kind}")
    return given


def _work(
    function: Function, target: Callable[..., Any], given: dict[str, Any], name: str, world: World
) -> Callable[[str], object]:
    kind, parameters = function.texts[name], function.parameters()

    def work(text: str) -> None:
        arguments = {**given, name: as_kind(text, kind)}
        positional = []
        for each, (parameter, _) in parameters.items():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                positional += [arguments.pop(each)] if each in arguments else []
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += [arguments.pop(each, PLAIN)]
        with world.undone() if "db" in parameters else nullcontext():
            _use(target(*positional, **arguments))

    return work


def _use(result: object) -> None:
    if isinstance(result, Iterator):
        for _ in result:
            pass
