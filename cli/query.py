"""memlog query."""

import click

from memlog.cli.formats import Answer, Table, format_options, print_answer, silence
from memlog.cli.opening import open_store
from memlog.cli.output import bold, dim, minute, one_line
from memlog.cli.settings import Settings, setting_option
from memlog.cli.types import CHAT, TEXT, TIME, UNIT
from memlog.query.filters import Filters, Kind
from memlog.query.search import Hit, SearchResult

_KINDS: dict[str, Kind] = {"messages": "message", "memories": "memory", "documents": "document"}


@click.command()
@click.argument("text", type=TEXT)
@setting_option("search_limit", "-k")
@setting_option("search_mode", "--mode")
@click.option(
    "--in", "kinds", type=click.Choice(list(_KINDS)), multiple=True, help="Only these; all by default."
)
@click.option("--chat", type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only of this conversation.")
@click.option(
    "--role", type=click.Choice(["user", "assistant", "system", "tool"]), help="Only messages of this role."
)
@click.option("--category", type=TEXT, help="Only memories of this category.")
@click.option("--since", type=TIME, help="Only from this time on (2026-02-24, or RFC 3339).")
@click.option("--until", type=TIME, help="Only before this time.")
@click.option(
    "--exclude", type=TEXT, multiple=True, metavar="ID", help="Leave out this event, memory or document."
)
@click.option(
    "--min-similarity",
    type=UNIT,
    help="Leave out what only meaning finds below this. Off by default.",
)
@click.option("--raw", is_flag=True, help="TEXT is in FTS5's own query syntax.")
@click.option("--explain", is_flag=True, help="Say which side found each hit, at which rank and score.")
@click.option("--no-sync", is_flag=True, help="Do not catch up with the log first.")
@format_options
@click.pass_context
def query(
    ctx: click.Context,
    text: str,
    kinds: tuple[str, ...],
    chat: tuple[str, str] | None,
    role: str | None,
    category: str | None,
    since: str | None,
    until: str | None,
    exclude: tuple[str, ...],
    min_similarity: float | None,
    raw: bool,
    explain: bool,
    no_sync: bool,
) -> None:
    """Search messages, memories and documents for TEXT.

    Words match themselves, their English stems and what begins with them; "double quotes" make a phrase;
    what has more of them ranks higher. What was appended before is found: the query first catches up with
    the log.
    """
    if not text.strip():
        raise click.BadParameter("it is empty", param_hint="TEXT")
    filters = Filters(
        kinds=frozenset(_KINDS[kind] for kind in kinds) or None,
        chat=chat,
        role=role,
        category=category,
        since=since,
        until=until,
        exclude=frozenset(exclude),
    )
    settings = ctx.ensure_object(Settings)
    with open_store(ctx) as store:
        result = store.search(
            text,
            k=settings.value("search_limit"),
            mode=settings.value("search_mode"),
            depth=settings.value("search_depth"),
            filters=filters,
            min_similarity=min_similarity,
            is_raw=raw,
            explain=explain,
            sync=not no_sync,
        )
    print_answer(ctx, _answer(result))


def _answer(result: SearchResult) -> Answer:
    rows = [
        (
            rank,
            f"{hit.score:.3f}",
            hit.kind,
            hit.chat,
            _who(hit),
            minute(hit.ts),
            _place(hit),
            hit.id,
            hit.snippet,
        )
        for rank, hit in enumerate(result.hits, start=1)
    ]
    notes = [] if result.hits else ["nothing found"]
    if not result.synced:
        notes.append("the read model may be behind the log")
    return Answer(
        document=result,
        table=Table(("rank", "score", "kind", "chat", "who", "time", "position", "id", "snippet"), rows),
        records=result.hits,
        text=[line for rank, hit in enumerate(result.hits, start=1) for line in _lines(rank, hit)],
        notes=[*notes, *silence(result.silent)],
    )


def _lines(rank: int, hit: Hit) -> list[str]:
    """A hit for people: a row of a table would hold its snippet too far to the right."""
    head = [hit.kind, hit.chat, _who(hit), minute(hit.ts)]
    return [
        bold(f"{rank:2}. {hit.score:.3f}") + "  " + one_line("  ".join(part for part in head if part)),
        f"    {one_line(hit.snippet)}",
        *(f"    {side}: rank {seen.rank}, score {seen.score}" for side, seen in (hit.explain or {}).items()),
        dim(f"    {one_line(f'{_place(hit)}  {hit.id}')}"),
    ]


def _who(hit: Hit) -> str:
    return hit.name or hit.role or hit.category or hit.section or ""


def _place(hit: Hit) -> str:
    """Of a document the line of the file, else the line of the log."""
    if hit.start_line is not None:
        return f"{hit.source}/{hit.file}:{hit.start_line}"
    return str(hit.position)
