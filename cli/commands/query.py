"""memlog query."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import click
from msgspec.structs import asdict

import memlog
from memlog import Evidence, Hit
from memlog.cli.options.open_store import make_store_opener, open_store
from memlog.cli.options.request_options import Given, request_command
from memlog.cli.options.settings import Settings, projects_folder
from memlog.cli.options.zone import format_in_local_time
from memlog.cli.output.answer import Answer, Columns, Table, notes_on_omitted_parts, table_of_records
from memlog.cli.output.output import bold, dim, escape_controls, highlight_parts_of_text, put_on_one_line
from memlog.cli.output.turns import format_surroundings, indent_all_but_first_line
from memlog.service.engine.operation import bind_operation
from memlog.service.projects import Projects
from memlog.service.retrieval.search import Highlighter, create_highlighter

_KINDS = {"messages": "message", "memories": "memory", "documents": "document"}


class _Kinds(click.Choice):  # type: ignore[type-arg] # generic from click 8.4 on
    """A choice among the kinds of hits, given as plurals such as `memories`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        return _KINDS[super().convert(value, param, ctx)]


@request_command(
    "search",
    joined="text",
    names={"k": "-k", "kinds": "--in"},
    types={"kinds": _Kinds(list(_KINDS))},
    settings={"k": "search_limit", "mode": "search_mode", "fusion": "search_fusion", "depth": "search_depth"},
    gets="context",
)
@click.option("--all-projects", is_flag=True, help="Search the stores of all projects.")
def query(ctx: click.Context, given: Given, *, all_projects: bool) -> Answer:
    if not all_projects:
        with open_store(ctx) as store:
            found = bind_operation(store, "search")(given)
        return _search_answer(found, given, notes_on_omitted_parts(found.silent))
    if ctx.ensure_object(Settings).names_store_or_project:
        raise click.UsageError("--all-projects: a store or a project is named; leave out one of the two")
    known = Projects(projects_folder(), make_store_opener(ctx))
    everywhere = known.search(**asdict(given))
    return _search_answer(everywhere, given, [*_notes_on_projects(everywhere.silent)])


def _notes_on_projects(silent: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a note on each side of the search that was left out, naming all affected projects."""
    projects: dict[tuple[str, str], list[str]] = {}
    for project, sides in silent.items():
        for each in sides.items():
            projects.setdefault(each, []).append(escape_controls(project))
    for (side, why), names in projects.items():
        yield f"{', '.join(names)}: {side}: {why}"


def _search_answer(
    result: "memlog.SearchResult | memlog.ProjectsSearchResult", given: Given, omitted: list[str]
) -> Answer:
    matched = create_highlighter(given)
    notes = [] if result.hits else ["nothing found"]
    if result.hits and isinstance(result, memlog.SearchResult) and result.certain is False:
        notes.append("nothing certain")
    if not result.synced:
        notes.append("the read model may be behind the log")
    return Answer(
        document=result,
        table=_hits_table(result.hits),
        records=result.hits,
        text=(
            line for rank, hit in enumerate(result.hits, start=1) for line in _hit_lines(rank, hit, matched)
        ),
        notes=[*notes, *omitted],
    )


def _hits_table(hits: Sequence[Hit]) -> Table:
    ranks = count(1)
    columns: Columns = {
        "rank": lambda _: next(ranks),
        "score": lambda hit: f"{hit.score:.3f}",
        **({"project": "project"} if any(isinstance(hit, memlog.ProjectHit) for hit in hits) else {}),
        "kind": "kind",
        "chat": "chat",
        "who": _speaker_or_category,
        "time": lambda hit: format_in_local_time(hit.ts),
        "position": _format_place,
        "id": "id",
        "snippet": "snippet",
    }
    if any(hit.copies > 1 for hit in hits):
        columns = {**columns, "copies": "copies"}
    if any(hit.around for hit in hits):
        columns = {**columns, "around": lambda hit: "\n".join(_neighbour_lines(hit))}
    return table_of_records(hits, columns)


def _hit_lines(rank: int, hit: Hit, matched: Highlighter) -> list[str]:
    """Format a hit as lines, since a table would place its snippet too far to the right."""
    snippet = put_on_one_line(hit.snippet)
    project = hit.project if isinstance(hit, memlog.ProjectHit) else None
    head = [
        project,
        hit.kind,
        hit.chat,
        _speaker_or_category(hit),
        format_in_local_time(hit.ts),
        *_hit_notes(hit),
    ]
    return [
        bold(f"{rank:2}. {hit.score:.3f}") + "  " + put_on_one_line("  ".join(part for part in head if part)),
        f"    {highlight_parts_of_text(snippet, matched(snippet))}",
        *(indent_all_but_first_line(f"    {line}", 4) for line in _neighbour_lines(hit)),
        *(f"    {side}: {_describe_evidence(seen)}" for side, seen in (hit.explain or {}).items()),
        dim(f"    {put_on_one_line(f'{_format_place(hit)}  {hit.id}')}"),
    ]


def _hit_notes(hit: Hit) -> list[str]:
    copies = [f"(the newest of {hit.copies:,} copies)"] if hit.copies > 1 else []
    changed = [hit.note] if hit.note is not None else []
    return [*copies, *(["(beside a match)"] if hit.only_context else []), *changed]


def _describe_evidence(seen: Evidence) -> str:
    score = "found by its neighbours alone" if seen.score is None else f"score {seen.score:.3f}"
    added = f"{seen.found:.3f} with neighbours, prior {seen.prior:+.3f}, weight {seen.weight:g}"
    return f"rank {seen.rank}, {score}, {added}"


def _neighbour_lines(hit: Hit) -> list[str]:
    return format_surroundings(hit.around, hit.id) if hit.around else []


def _speaker_or_category(hit: Hit) -> str:
    return hit.speaker or hit.category or hit.section or ""


def _format_place(hit: Hit) -> str:
    """Return a hit's place: file and line of a document, otherwise the line in the log."""
    if hit.start_line is not None:
        return f"{hit.source}/{hit.file}:{hit.start_line}"
    return str(hit.position)
