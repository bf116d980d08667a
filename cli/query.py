"""memlog query."""

import click

from memlog.cli.opening import open_store
from memlog.cli.output import json_option, note, one_line, print_json
from memlog.cli.settings import Settings, setting_option
from memlog.cli.types import CHAT, TEXT, TIME
from memlog.query.filters import Filters, Kind
from memlog.query.search import Hit

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
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Leave out what only meaning finds below this.",
)
@click.option("--raw", is_flag=True, help="TEXT is in FTS5's own query syntax.")
@click.option("--explain", is_flag=True, help="Say which side found each hit, at which rank and score.")
@click.option("--no-sync", is_flag=True, help="Do not catch up with the log first.")
@json_option
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
    min_similarity: float,
    raw: bool,
    explain: bool,
    no_sync: bool,
    as_json: bool,
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
    if as_json:
        print_json(result)
        return
    for rank, hit in enumerate(result.hits, start=1):
        _print_hit(rank, hit)
    if not result.hits:
        note("nothing found")
    if not result.synced:
        note("the read model may be behind the log")
    for side, why in result.silent.items():
        note(f"{side}: {why}")


def _print_hit(rank: int, hit: Hit) -> None:
    who = hit.name or hit.role or hit.category or hit.section or ""
    place = hit.position
    heads = (f"{rank:2}. {hit.score:.3f}", hit.kind, hit.chat or "", who, hit.ts[:16].replace("T", " "))
    click.echo(one_line("  ".join(part for part in heads if part)))
    click.echo(f"    {one_line(hit.snippet)}")
    for side, seen in (hit.explain or {}).items():
        click.echo(f"    {side}: rank {seen.rank}, score {seen.score}")
    if hit.start_line is not None:
        click.echo(f"    {one_line(f'{hit.source}/{hit.file}:{hit.start_line}')}")
    else:
        click.echo(f"    {one_line(f'{place.stream}/{place.segment}:{place.line}  {hit.id}')}")
