"""The days that the words for a time mean, in three languages."""

from datetime import date

import pytest

from memlog.query.time_words import find_past_days, parse_days

TODAY = date(2026, 6, 17)
"""A Wednesday."""

PROMPTS = {
    # English
    "what did Tom and I decide last week?": "2026-06-08 2026-06-15",
    "What did I tell you yesterday about the boiler": "2026-06-16 2026-06-17",
    "who called the day before yesterday?": "2026-06-15 2026-06-16",
    "what was broken when I left on Friday": "2026-06-12 2026-06-13",
    "What did we say on Wednesday?": "2026-06-10 2026-06-11",
    "the notes of last Monday please": "2026-06-15 2026-06-16",
    "How long did the restore drill take in March?": "2026-03-01 2026-04-01",
    "what did we buy in December": "2025-12-01 2026-01-01",
    "what happened on 20 October?": "2025-10-20 2025-10-21",
    "Show me the figures of May 5th": "2026-05-05 2026-05-06",
    "what did the doctor say on the 3rd of June 2025?": "2025-06-03 2025-06-04",
    "Which tickets did I close on Thursday last week?": "2026-06-11 2026-06-12",
    "what did I write three days ago?": "2026-06-14 2026-06-15",
    "we spoke about a lease two months ago, what was it?": "2026-04-01 2026-05-01",
    "What have I eaten over the past 3 days?": "2026-06-14 2026-06-18",
    "last month's invoices": "2026-05-01 2026-06-01",
    "where did we go last weekend?": "2026-06-13 2026-06-15",
    # Russian
    "что мы решили с Антоном на прошлой неделе": "2026-06-08 2026-06-15",
    "что я вчера говорила про котёл?": "2026-06-16 2026-06-17",
    "кто звонил позавчера": "2026-06-15 2026-06-16",
    "за что я платила в пятницу пятого июня?": "2026-06-05 2026-06-06",
    "что сломалось во вторник?": "2026-06-16 2026-06-17",
    "о чём мы договорились в прошлую субботу": "2026-06-13 2026-06-14",
    "сколько мы потратили в марте?": "2026-03-01 2026-04-01",
    "что врач сказал 20 октября": "2025-10-20 2025-10-21",
    "о чём я писала две недели назад?": "2026-06-01 2026-06-08",
    "расходы за прошлый месяц": "2026-05-01 2026-06-01",
    "куда мы ездили на выходных?": "2026-06-13 2026-06-15",
    "что я купил двадцать первого мая?": "2026-05-21 2026-05-22",
    # Finnish
    "mitä päätimme Pentin kanssa viime viikolla": "2026-06-08 2026-06-15",
    "mitä sanoin eilen kattilasta?": "2026-06-16 2026-06-17",
    "kuka soitti toissapäivänä?": "2026-06-15 2026-06-16",
    "mitä tein mehiläisten kanssa lauantaina": "2026-06-13 2026-06-14",
    "mitä sovittiin viime torstaina?": "2026-06-11 2026-06-12",
    "paljonko käytimme rahaa maaliskuussa?": "2026-03-01 2026-04-01",
    "mitä lääkäri sanoi 20. lokakuuta?": "2025-10-20 2025-10-21",
    "mistä puhuimme kolme päivää sitten?": "2026-06-14 2026-06-15",
    "viime kuun laskut": "2026-05-01 2026-06-01",
    "missä kävimme viikonloppuna": "2026-06-13 2026-06-15",
    "kenet tapasin maanantaina": "2026-06-15 2026-06-16",
    "что мы решили на прошлой неделе с Антоном": "2026-06-08 2026-06-15",
    "what did I say yesterday before lunch": "2026-06-16 2026-06-17",
    "paljonko Anna maksoi tiistaina": "2026-06-16 2026-06-17",
    "что мы ели в четверг": "2026-06-11 2026-06-12",
    "кого я встретила в среду?": "2026-06-10 2026-06-11",
    "mitä ostin 5. toukokuuta?": "2026-05-05 2026-05-06",
}

NONE = [
    "What shall we do on Friday?",
    "remind me on Monday to call Tom",
    "Are you free in March?",
    "we may march on",
    "finish it before last week's notes are gone",
    "the last week of the holidays",
    "Which weekday is best for yoga?",
    "что изменилось с прошлой недели",
    "давай встретимся в пятницу",
    "что будем делать в субботу?",
    "сделай это до пятого июня",
    "mitä tehdään lauantaina?",
    "Onko Pentin kokous perjantaina?",
    "book a table for 20 October",
    "The reduced rate changes on 1 January, does anybody need to do anything?",
    "My left calf has been sore since yesterday",
    "What did you do the weekend before 4 April 2026",
    "что надо купить в субботу",
    "Kerttula poistaa viisaudenhampaan torstaina, tarvitseeko mainita jotain?",
    "Voitko varata ajan lääkäriin torstaina",
    "Mitä ostan perjantaina?",
    "Milloin juna lähtee lauantaina?",
    "2026-06-16 12:00 INFO started\n" * 20,
]


def written(found) -> str | None:
    return found and f"{found.first} {found.end}"


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_names_the_days_that_it_means(prompt: str) -> None:
    assert written(find_past_days(prompt, TODAY)) == PROMPTS[prompt]


@pytest.mark.parametrize("prompt", NONE)
def test_no_days_are_invented(prompt: str) -> None:
    assert find_past_days(prompt, TODAY) is None


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("yesterday", "2026-06-16 2026-06-17"),
        ("last week", "2026-06-08 2026-06-15"),
        ("today", "2026-06-17 2026-06-18"),
        ("Friday", "2026-06-12 2026-06-13"),
        ("March", "2026-03-01 2026-04-01"),
        ("20 October", "2025-10-20 2025-10-21"),
        ("вчера", "2026-06-16 2026-06-17"),
        ("пятница", "2026-06-12 2026-06-13"),
        ("viime viikolla", "2026-06-08 2026-06-15"),
        ("perjantai", "2026-06-12 2026-06-13"),
        ("maaliskuu", "2026-03-01 2026-04-01"),
        ("soon", None),
        ("32 May", None),
        ("", None),
    ],
)
def test_a_text_that_is_nothing_but_a_time_means_days(text: str, days: str | None) -> None:
    assert written(parse_days(text, TODAY)) == days
