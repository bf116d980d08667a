"""What a model writes where it has nothing to say is stored nowhere; what merely contains such a word is."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import memlog
from memlog.service.memory.placeholders import is_placeholder
from tests.support.provider import Provider

PLACEHOLDERS = [
    *(
        "…",
        "...",
        "—",
        "string",
        "String.",
        "N/A",
        "n / a",
        "none",
        "“None.”",
        " UNKNOWN ",
        "`null`",
        "(undefined)",
    ),
    *("<content>", "[content]", "{content}", "<the user's name>", "{{name}}", "Your memory here", "memory 1"),
    *(
        "No memories.",
        "There are no memories to store.",
        "Nothing to remember",
        "Nothing happened.",
        "an empty text",
    ),
    *("Not specified", "Not mentioned in the conversation", "None. Unknown.", "example", "Example memory 2"),
    *("Summary: none", '"content": "string"', "User name: unknown"),
    *("нет данных", "Неизвестно.", "«Не указано»", "нет", "Информация отсутствует", "пример"),
    *("无", "未知。", "没有需要记住的信息", "暂无", "示例内容"),
    *("ei tiedossa", "Ei mitään muistettavaa.", "Tuntematon", "ei", "esimerkki"),
    "An empty list of memories is a good answer where nothing is worth it.",
    "`fact`: what is true of the people, their lives, their work, what they own, plan, decided or agreed on.",
    "Do not invent anything.",
]
SAID = [
    *("Anna's string quartet", "Status unknown until Friday, says Anna", "Bo has no allergies"),
    *(
        "No memories of the war remain, says Grandma",
        "None of the children eats meat",
        "Example Ltd. employs Carl",
    ),
    *(
        "Неизвестно, когда Андрей вернётся",
        "安娜没有过敏",
        "Osoite ei ole tiedossa ennen maanantaita, sanoo Tuuli",
    ),
    *(
        "[Dora moved to Turku]",
        "User has not found a job yet",
        "The user has not told her family",
        "Name: Emil",
        "Nothing beats green tea",
        "The film “Unknown” is Fred's favourite",
    ),
]


UNTOLD = {
    "English": (
        "The user said nothing of note.|No memorable information|User did not share any preferences"
        "|The conversation contains no personal information|The user hasn't told anything about themselves."
        "|No personal facts were mentioned by the user in this session.|Anna said nothing of note."
        "|The user did not give their name",
        "Has no allergies|Nothing scares Anna|User is not available today|Do not share any personal data"
        "|Please share no personal information|The user has no job|Bob told nobody about the ring"
        "|User has not found a job yet|The user has not told her family"
        "|The user's name is not to be mentioned|The user was not told the value of the home"
        "|Does not note things"
        "|The user has no memories of her father|No changes to the plan|Never shares personal information",
    ),
    "Russian": (
        "Пользователь ничего не сообщил|Пользователь не поделился личной информацией.|Нет информации"
        "|В этом разговоре нет ничего важного для запоминания|Собеседник не рассказал о себе.",
        "Пользователь не работает|Не говорит по-английски|Пользователь не сообщил жене о поездке"
        "|Пользователь не сказал семье"
        "|Не нашёл работу|Не сохранять личные данные|Ничего не сохранилось",
    ),
    "Chinese": (
        "用户没有提供任何信息|对话中没有提到任何个人信息。|没有值得保存的内容|用户什么都没说|没有重要信息。",
        "不吃肉|他没有工作|用户没有提到他的妻子|用户还没找到工作|他不说工作的事情|对内容没有偏好|没有孩子",
    ),
    "Finnish": (
        "ei sovellu|Käyttäjä ei kertonut mitään|Käyttäjä ei jakanut tietoja itsestään|Ei tallennettavaa"
        "|Keskustelussa ei mainittu mitään henkilökohtaista tietoa",
        "Käyttäjä ei juo kahvia|Käyttäjä ei ole kertonut perheelleen|Ei kerro ikäänsä|Ei asu Turussa"
        "|Ei lapsia",
    ),
    "others": (
        "keine Erinnerungen|Der Benutzer hat nichts über sich erzählt.|aucune information|Non précisé"
        "|L'utilisateur n'a rien dit d'important|sin información"
        "|El usuario no compartió información personal"
        "|O usuário não forneceu informações|Nessuna informazione|Inga minnen|geen informatie|brak danych"
        "|немає інформації|情報なし|정보 없음",
        "Isst kein Fleisch|Der Benutzer hat der Familie nichts gesagt|Der Nutzer hat nichts gefunden"
        "|Pas d'enfants|No tiene hijos|Nessun figlio",
    ),
    "forms": (
        "The user's name is [NAME].|{name} lives in {city}|The user lives in <city>.|User likes X"
        "|City: unknown|Имя: неизвестно|Nimi: tuntematon|User's occupation: not specified"
        "|The user's location is not specified.|姓名：张三|城市：未提供|Город: не указан",
        "Name is {secret}|Allergies: none|Likes X-rays|The user's dog is unknown to the vet",
    ),
    "examples": (
        "John Doe|The user's name is Jane Doe.|user@example.com|YYYY-MM-DD|2024-MM-DD|дд.мм.гггг|[name]"
        "|[Your City]|Your Name Here|+1 555 0100|123-456-7890|123 Main St|…etc|и т.д.|foo bar",
        "Works at Example Ltd|Unknown Pleasures is her favourite album|anna@acme.com|14.3.1985"
        "|+358 40 123 4567|Lives at 123 Main Street in Boston|10 mm|[Dora moved to Turku]",
    ),
}


@pytest.mark.parametrize("name", UNTOLD)
def test_what_tells_of_no_telling_and_what_examples_are_made_of_are_placeholders(name: str) -> None:
    placeholders, said = (texts.split("|") for texts in UNTOLD[name])
    assert [text for text in placeholders if not is_placeholder(text)] == []
    assert [text for text in said if is_placeholder(text)] == []


def test_a_text_that_repeats_a_word_is_no_placeholder() -> None:
    assert not any(map(is_placeholder, ("사용자는" * 49 + "x", "not " * 49 + "z", "1-" * 99 + "!")))


def opened(path: Path, provider: Provider) -> memlog.Store:
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    rules = memlog.ExtractionRules(max_per_session=100)
    return memlog.open(path, language_model=model, extraction=rules)


def of(*texts: str, summary: str = "") -> str:
    entries = [{"type": "fact", "content": text, "importance": 0.8} for text in texts]
    return json.dumps({"memories": entries, "summary": summary})


def message(text: str, chat: str = "1") -> memlog.Message:
    return memlog.Message(channel="cli", chat_id=chat, role="user", content=text)


def contents(store: memlog.Store) -> set[str]:
    return {memory.content for memory in store.memories.list()}


def a_conversation(store: memlog.Store) -> list[memlog.ExtractionReport]:
    store.append([message("Hello")])
    return list(store.extraction.run())


def a_day(store: memlog.Store) -> list[memlog.ExtractionReport]:
    store.append([memlog.DailyEventRecorded(event_date="2026-01-02", summary="It rained.")])
    return list(store.extraction.days())


@pytest.mark.parametrize("distil", [a_conversation, a_day])
def test_no_memory_is_a_placeholder(
    tmp_path: Path, provider: Provider, distil: Callable[[memlog.Store], list[memlog.ExtractionReport]]
) -> None:
    refused = [*PLACEHOLDERS, "Framework: Django"]
    provider.answer = lambda _: of(*refused, *SAID)
    with opened(tmp_path, provider) as store:
        (report,) = distil(store)
        assert contents(store) == {*SAID}
        assert report.refused == len(refused)


def test_an_answer_that_there_is_nothing_is_one(tmp_path: Path, provider: Provider) -> None:
    provider.answer = lambda _: of("No memories.", summary="Nothing happened.")
    with opened(tmp_path, provider) as store:
        (report,) = a_conversation(store)
        assert (contents(store), report.summary, store.daily.list()) == (set(), None, [])
        assert (store.extraction.buffer(), len(provider.asked)) == ([], 1)


def test_no_summary_is_a_placeholder(tmp_path: Path, provider: Provider) -> None:
    texts = [*PLACEHOLDERS, *SAID]

    def answer(asked: str) -> str:
        found = re.search(r'"content":"(\d+) word', asked)
        return json.dumps({"summary": texts[int(found[1])]}) if found else of()

    provider.answer = answer
    with opened(tmp_path, provider) as store:
        for number, _ in enumerate(texts):
            chat = str(number)
            store.append([message(f"{number} {'word ' * 600}", chat)])
            store.append([memlog.SessionBreak(channel="cli", chat_id=chat)])
        store.jobs.run("summaries")
        assert {each.content for each in store.conversations.summaries()} == {*SAID}


def test_no_merged_memory_is_a_placeholder(tmp_path: Path, provider: Provider) -> None:
    last = len(PLACEHOLDERS)
    merged = f"Cat {last} purrs. A purring cat {last}."

    def answer(asked: str) -> str:
        shown = json.loads(asked)
        if not isinstance(shown, list):
            return '{"entries": []}'
        numbers = {each["text"]: each["number"] for each in shown}
        groups = [
            {
                "relation": "same",
                "numbers": [numbers[f"Cat {n} purrs"], numbers[f"A purring cat {n}"]],
                "content": text,
            }
            for n, text in enumerate([*PLACEHOLDERS, merged])
        ]
        return json.dumps({"groups": groups})

    provider.answer = answer
    with opened(tmp_path, provider) as store:
        for number in range(len(PLACEHOLDERS) + 1):
            for second, text in enumerate((f"Cat {number} purrs", f"A purring cat {number}")):
                ts = f"2026-01-01T00:{number:02}:0{second}Z"
                store.memories.save(text, source="extraction", dedup=False, ts=ts)
        before = contents(store)
        store.jobs.run("weekly")
        assert contents(store) == before - {f"Cat {last} purrs", f"A purring cat {last}"} | {merged}


DENIALS = {
    ("allergies", "none", "Anna has no allergies."): True,
    ("smoker", "no", "Anna has never been a smoker."): True,
    ("allergies", "none", "Anna never drinks coffee."): False,
    ("allergies", "none", "Anna has allergies."): False,
    ("allergies", "unknown", "Anna has no allergies."): False,
    ("smoker", "yes", "Anna smokes."): True,
    ("allergies", "Anna has no allergies", "Anna has no allergies."): True,
    ("music", "Anna's string quartet", "Anna plays in a quartet."): True,
    ("language", "Go", "Anna's project is written in Go."): False,
    ("language", "Finnish", "Anna speaks Finnish."): True,
    ("tech_stack", "Django", "Anna's project uses Django."): False,
    ("编程语言", "Go", "项目使用Go。"): False,
    ("notes", "Database: SQLite", "Anna told of SQLite."): False,
    ("…", "Anna", "Her name is Anna."): False,
}


@pytest.mark.parametrize(("key", "value", "memory"), DENIALS)
def test_a_bare_denial_needs_a_memory_that_denies_what_the_key_asks(
    tmp_path: Path, provider: Provider, key: str, value: str, memory: str
) -> None:
    entries = [
        {"key": f"key_{number}", "value": each, "numbers": [1]} for number, each in enumerate(PLACEHOLDERS)
    ]
    provider.answer = lambda _: json.dumps(
        {"entries": [{"key": key, "value": value, "numbers": [1]}, *entries]}
    )
    with opened(tmp_path, provider) as store:
        store.memories.save(memory)
        store.jobs.run("weekly")
        assert store.core.get("user") == ({key: value} if DENIALS[key, value, memory] else {})
