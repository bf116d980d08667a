"""memlog query."""

from typing import get_args

import click

from memlog.cli.answer import Answer, Table, format_options, print_answer, silence
from memlog.cli.open_store import open_store
from memlog.cli.output import bold, dim, minute, one_line
from memlog.cli.param_types import CHAT, TEXT, TIME, UNIT, WEIGHT, Category
from memlog.cli.settings import Settings, setting_option
from memlog.cli.turns import NEIGHBOURS, lines_around, set_in
from memlog.query.filters import FOUND_UNDER, Filters, Kind, Role
from memlog.query.search.hits import Evidence, Hit
from memlog.query.search.hybrid import SearchResult
from memlog.query.search.ranking import Ranking
from memlog.query.speakers import speaker

_DEFAULTS = Ranking()
_KINDS: dict[str, Kind] = {"messages": "message", "memories": "memory", "documents": "document"}


@click.command()
@click.argument("text", type=TEXT)
@setting_option("search_limit", "-k")
@setting_option("search_mode", "--mode")
@click.option(
    "--in", "kinds", type=click.Choice(list(_KINDS)), multiple=True, help="Only these; all by default."
)
@click.option("--chat", type=CHAT, metavar="CHANNEL:CHAT_ID", help="Only of this conversation.")
@click.option("--role", type=click.Choice(get_args(Role)), help="Only messages of this role.")
@click.option("--category", type=Category(list(FOUND_UNDER)), help="Only memories of this category.")
@click.option(
    "--source",
    type=TEXT,
    help="Only of this source, as hits name it: conversation, manual, summary, fact, daily_event and more.",
)
@click.option("--topic", type=TEXT, help="Only memories of this topic, and facts of it.")
@click.option("--tag", type=TEXT, help="Only memories with this tag.")
@click.option("--min-salience", type=UNIT, default=0.0, help="Leave out memories that have faded below this.")
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
@setting_option("search_fusion", "--fusion")
@setting_option("search_depth", "--depth")
@click.option(
    "--rank-constant",
    type=WEIGHT,
    default=_DEFAULTS.rank_constant,
    show_default=True,
    help="k of rank fusion: how little it matters to be first rather than second.",
)
@click.option(
    "--text-weight",
    type=WEIGHT,
    default=_DEFAULTS.text_weight,
    show_default=True,
    help="How much words count.",
)
@click.option(
    "--vector-weight",
    type=WEIGHT,
    default=_DEFAULTS.vector_weight,
    show_default=True,
    help="How much meaning counts.",
)
@click.option("--no-context", is_flag=True, help="Do not count what was said around a message for it.")
@click.option(
    "--no-priors",
    is_flag=True,
    help="Do not count length, a speaker or topic that TEXT names, being a question.",
)
@click.option("--no-salience", is_flag=True, help="Do not count how relevant memories are today.")
@click.option("--raw", is_flag=True, help="TEXT is in FTS5's own query syntax.")
@click.option(
    "--explain",
    is_flag=True,
    help="Say how each side found each hit: rank, score, what neighbours and priors add.",
)
@click.option(
    "--expand",
    type=NEIGHBOURS,
    default=0,
    metavar="N",
    help="Show each message with N others before and behind it in its session, each passage of a document"
    " with the text of N others.",
)
@click.option("--no-sync", is_flag=True, help="Do not catch up with the log first.")
@format_options
@click.pass_context
def query(
    ctx: click.Context,
    text: str,
    kinds: tuple[str, ...],
    chat: tuple[str, str] | None,
    role: Role | None,
    category: str | None,
    source: str | None,
    topic: str | None,
    tag: str | None,
    min_salience: float,
    since: str | None,
    until: str | None,
    exclude: tuple[str, ...],
    min_similarity: float | None,
    rank_constant: float,
    text_weight: float,
    vector_weight: float,
    no_context: bool,
    no_priors: bool,
    no_salience: bool,
    raw: bool,
    explain: bool,
    expand: int,
    no_sync: bool,
) -> None:
    """Search messages, memories and documents for TEXT.

    Words match themselves, other forms of them, and what begins with them; "double quotes" make a phrase;
    what has more of them ranks higher. A message is also found for what was said right before and behind it.
    What was appended before is found: the query first catches up with the log.
    """
    if not text.strip():
        raise click.BadParameter("it is empty", param_hint="TEXT")
    filters = Filters(
        kinds=frozenset(_KINDS[kind] for kind in kinds) or None,
        chat=chat,
        role=role,
        category=category,
        source=source,
        topic=topic,
        tag=tag,
        min_salience=min_salience,
        since=since,
        until=until,
        exclude=frozenset(exclude),
    )
    settings = ctx.ensure_object(Settings)
    ranking = Ranking(
        fusion=settings.value("search_fusion"),
        rank_constant=rank_constant,
        text_weight=text_weight,
        vector_weight=vector_weight,
        depth=settings.value("search_depth"),
        context=not no_context,
        priors=not no_priors,
        salience=not no_salience,
    )
    with open_store(ctx) as store:
        result = store.search(
            text,
            k=settings.value("search_limit"),
            mode=settings.value("search_mode"),
            ranking=ranking,
            filters=filters,
            min_similarity=min_similarity,
            is_raw=raw,
            explain=explain,
            expand=expand,
            sync=not no_sync,
        )
    print_answer(ctx, _answer(result))


def _answer(result: SearchResult) -> Answer:
    notes = [] if result.hits else ["nothing found"]
    if not result.synced:
        notes.append("the read model may be behind the log")
    return Answer(
        document=result,
        table=_table(result.hits),
        records=result.hits,
        text=[line for rank, hit in enumerate(result.hits, start=1) for line in _lines(rank, hit)],
        notes=[*notes, *silence(result.silent)],
    )


def _table(hits: list[Hit]) -> Table:
    columns = ("rank", "score", "kind", "chat", "who", "time", "position", "id", "snippet")
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
        for rank, hit in enumerate(hits, start=1)
    ]
    if all(hit.around is None for hit in hits):
        return Table(columns, rows)
    around = ["\n".join(lines_around(hit.around, hit.id)) if hit.around else None for hit in hits]
    return Table((*columns, "around"), [(*row, text) for row, text in zip(rows, around, strict=True)])


def _lines(rank: int, hit: Hit) -> list[str]:
    """A hit for people: a row of a table would hold its snippet too far to the right."""
    head = [hit.kind, hit.chat, _who(hit), minute(hit.ts), "(beside a match)" if hit.only_context else None]
    return [
        bold(f"{rank:2}. {hit.score:.3f}") + "  " + one_line("  ".join(part for part in head if part)),
        f"    {one_line(hit.snippet)}",
        *_lines_around(hit),
        *(f"    {side}: {_evidence(seen)}" for side, seen in (hit.explain or {}).items()),
        dim(f"    {one_line(f'{_place(hit)}  {hit.id}')}"),
    ]


def _evidence(seen: Evidence) -> str:
    score = "found by its neighbours alone" if seen.score is None else f"score {seen.score:.3f}"
    added = f"{seen.found:.3f} with neighbours, prior {seen.prior:+.3f}, weight {seen.weight:g}"
    return f"rank {seen.rank}, {score}, {added}"


def _lines_around(hit: Hit) -> list[str]:
    lines = lines_around(hit.around, hit.id) if hit.around else []
    return [set_in(f"    {line}", 4) for line in lines]


def _who(hit: Hit) -> str:
    return speaker(hit.role, hit.name) or hit.category or hit.section or ""


def _place(hit: Hit) -> str:
    """Of a document the line of the file, else the line of the log."""
    if hit.start_line is not None:
        return f"{hit.source}/{hit.file}:{hit.start_line}"
    return str(hit.position)
