"""Reports of extractions."""

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.extraction import Extraction
from memlog.query.set_aside import SetAside
from memlog.service.extraction.answers import ModelAnswer
from memlog.service.providers.language_model import Completion


class ExtractionReport(msgspec.Struct, kw_only=True):
    """What became of some messages of a chat, or of the daily events of a day.

    extraction_id: of the event that closes it; None in a dry run. messages: how many of either were
        distilled. requests: to the language model.
    saved, merged: memories. known: entries that memories said before. below: the importance threshold, or too
        many. refused: entries of another form.
    tokens_in, tokens_out: as the provider counts them; in a dry run as memlog estimates the questions.
    set_aside: why the model is not asked about them again before tomorrow, in UTC; then date is today, and
        extraction_id that of the event that says so; None where the tokens of today are spent.
    """

    chat: str | None
    date: str
    extraction_id: str | None
    messages: int
    requests: int = 0
    saved: int = 0
    merged: int = 0
    known: int = 0
    below: int = 0
    refused: int = 0
    summary: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    set_aside: str | None = None


def report_of(
    chat: str | None,
    date: str,
    origin: Extraction,
    count: int,
    answer: ModelAnswer,
    completions: list[Completion],
) -> ExtractionReport:
    """A new report, with the number of messages and the tokens of the request."""
    return ExtractionReport(
        chat=chat,
        date=date,
        extraction_id=origin.id,
        messages=count,
        requests=sum(each.requests for each in completions),
        refused=answer.refused,
        tokens_in=sum(each.tokens_in for each in completions),
        tokens_out=sum(each.tokens_out for each in completions),
    )


def report_of_rest(messages: int, why: str) -> ExtractionReport:
    """Report that messages wait until tomorrow, since the tokens of today are spent."""
    day = timestamps.today()
    return ExtractionReport(chat=None, date=day, extraction_id=None, messages=messages, set_aside=why)


def report_of_set_aside(about: SetAside) -> ExtractionReport:
    """Report what is set aside."""
    return ExtractionReport(
        chat=about.chat,
        date=about.ts[:10],
        extraction_id=about.id,
        messages=len(about.event_ids),
        set_aside=about.why,
    )
