"""Whatever is asked, in whatever form and however it is counted: a context keeps to its budget, every
citation is of the line that says it, and nothing is in it that stands no more or is another chat's."""

import json
import random
import re

import pytest

import memlog
from memlog.query.context.escaping import FIRST_LINE
from memlog.query.context.token_counters import count_text_tokens

HAN = re.compile(r"[\u4e00-\u9fff]")

WORDS = (
    "green tea kettle garden Sunday party city colour winter phone train music the opens nine bring "
    "зелёный чай сад воскресенье праздник город цвет зима поезд музыка открывается в девять "
    "vihreä tee puutarha sunnuntai juhla kaupunki väri talvi juna musiikki aukeaa yhdeksältä "
    "绿茶 花园 星期天 聚会 城市 颜色 冬天 火车 音乐 九点开门"
).split()
ODD = [
    "\n",
    "[M3]",
    "\\",
    "e\u0301",
    "👨‍👩‍👧",
    "x" * 150,
    "\u202e",
    "don't",
    "“quoted”",
    "3.14%",
    "\t",
    "\x1b[1m",
]
CHATS = [("telegram", "7"), ("telegram", "8"), ("cli", "home")]
TOPICS = ["favorite_colors", "city", "train", "чай"]

COUNTS = {
    # An estimate of its own: test_token_counters.py compares it with the vocabularies of language models.
    "model": lambda text: count_text_tokens(text, "model"),
    "chars4": lambda text: len(text) // 4,
    "heuristic": lambda text: (
        len(HAN.findall(text)) * 1.5 + len(re.findall(r"\w+", HAN.sub(" ", text))) * 0.75
    ),
}


class Filled:
    """A store of random things. Each says a mark of its own, and of each mark is known whose it is.

    gone: marks of what stands no more. chat_of: the chat of each mark that has one.
    """

    def __init__(self, folder, seed):
        self.chance = random.Random(seed)
        (folder / "no-model").mkdir(parents=True)
        self.path = folder / "store"
        self.store = memlog.open(self.path, model=folder / "no-model", durability="os")
        self.gone, self.chat_of = set(), {}
        self._number = 0
        events = [*self._messages(), *self._memories(), *self._facts(), *self._rest()]
        self.store.append(events)
        self.store.maintenance.project(embed=False)

    def text(self, chat=None, longest=25, odd=True):
        """Some words, and the mark."""
        self._number += 1
        mark = f"zq{self._number}qz"
        words = self.chance.choices(WORDS, k=self.chance.randint(1, longest))
        words += self.chance.choices(ODD, k=self.chance.choice([0, 0, 1, 3])) if odd else []
        self.chance.shuffle(words)
        if chat is not None:
            self.chat_of[mark] = ":".join(chat)
        return f"{' '.join(words)} {mark}", mark

    def _said(self, chat, name, content):
        role = self.chance.choice(["user", "user", "assistant", "tool", "system"])
        speaker = self.chance.choice([None, "Anna", "Ян", "李\n雷", "[M1]"])
        return memlog.Message(
            id=name, channel=chat[0], chat_id=chat[1], role=role, name=speaker, content=content
        )

    def _messages(self):
        for chat in CHATS:
            for number in range(60):
                text, _ = self.text(chat, longest=self.chance.choice([8, 25, 25, 500]))
                yield self._said(chat, f"{chat[1]}-{number}", text)
                if self.chance.random() < 0.05:
                    yield memlog.SessionBreak(channel=chat[0], chat_id=chat[1])
            yield memlog.SummaryWritten(channel=chat[0], chat_id=chat[1], content=self.text(chat)[0])

    def _memories(self):
        for number in range(60):
            chat = self.chance.choice([*CHATS, None])
            text, mark = self.text(chat)
            memory_id = f"memory-{number}"
            kind = self.chance.choice(["fact", "preference", "insight"])
            faded = memlog.MemoryUpdated(memory_id=memory_id, salience=0.1)
            yield memlog.MemorySaved(
                memory_id=memory_id,
                content=text,
                kind=kind,
                importance=round(self.chance.random(), 3),
                chat_id=":".join(chat) if chat else None,
            )
            change = self.chance.choice(
                [
                    None,
                    memlog.MemoryArchived(memory_id=memory_id),
                    memlog.MemoryDeleted(memory_id=memory_id),
                    memlog.MemoryUpdated(memory_id=memory_id, content=self.text(chat)[0]),
                    faded,
                ]
            )
            if change is not None:
                # What always holds does not fade.
                holds = kind == "preference" or "don't" in text
                self.gone |= {mark} if change != faded or not holds else set()
                yield change

    def _facts(self):
        """Topics that are set, set anew, and removed; a message says each value."""
        standing = {}
        for number in range(40):
            chat, topic = self.chance.choice(CHATS), self.chance.choice(TOPICS)
            self.gone |= standing.pop((chat, topic), set())
            where = {"topic_key": topic, "chat_id": ":".join(chat)}
            if self.chance.random() < 0.2:
                yield memlog.FactRemoved(**where)
                continue
            (said, mark), (value, known) = self.text(chat), self.text(chat, longest=3, odd=False)
            standing[chat, topic] = {mark, known}
            yield self._said(chat, f"said-{number}", said)
            yield memlog.FactStored(**where, value=value, source_message_id=f"said-{number}")
        for chat in CHATS:
            told, mark = self.text(chat)
            self.gone.add(mark)
            yield memlog.SummaryWritten(channel=chat[0], chat_id=chat[1], content=told)

    def _rest(self):
        for section, key in [("user", "name"), ("user", "Место"), ("agent", "tone"), ("agent", "规则")]:
            yield memlog.CoreMemoryUpdated(section=section, key=key, value=self.text()[0])
        for _ in range(4):
            yield memlog.DailyEventRecorded(summary=self.text()[0])


def asked(number):
    chance = random.Random(number)
    words = chance.choices(WORDS, k=chance.randint(1, 6))
    topic = chance.choice([[], ["city"], ["my", "favourite", "colours"]])
    return {
        "text": " ".join([*words, *topic]),
        "chat": chance.choice([None, *CHATS]),
        "max_tokens": chance.choice([1, 20, 60, 150, 400, 1000, 2000, 4000, 20_000]),
        "counter": ("model", "chars4", "heuristic")[number % 3],
        "form": ("text", "json", "messages")[number // 3 % 3],
        "limit": chance.choice([0, 5, 30]),
        "passages": chance.choice([0, 20, 60]),
    }


@pytest.mark.parametrize(
    ("seed", "queries"), [(0, 45), *(pytest.param(seed, 168, marks=pytest.mark.deep) for seed in range(3))]
)
def test_a_context_keeps_to_its_budget_and_cites_what_stands(tmp_path, seed, queries):
    filled = Filled(tmp_path, seed)
    taken = []
    for number in range(queries):
        query = asked(number)
        given = filled.store.context(**query, record=False, sync=False)
        assert COUNTS[query["counter"]](given.text) <= query["max_tokens"], query
        check_citations(filled, given)
        marks = {*re.findall(r"zq\d+qz", given.text)}
        assert marks & filled.gone == set(), query
        if query["chat"] is not None:
            own = {":".join(query["chat"]), None}
            assert {filled.chat_of.get(mark) for mark in marks} <= own, query
        taken += [entry.part for entry in given.entries]
    filled.store.close()
    assert {*taken} == {"core", "always", "fact", "memory", "passage", "summary", "window"}


def check_citations(filled, given):
    """Each is printed once, in order, where the form prints them, and is of the line that says it."""
    cited = [entry.citation for entry in given.entries if entry.part not in ("core", "always")]
    assert cited == [f"M{n + 1}" for n in range(len(cited))]
    printed = re.findall(r"(?<!\\)\[(M\d+)\]", given.text.removeprefix(FIRST_LINE))
    if given.form == "text":
        assert printed == cited
    if given.form == "json":
        objects = json.loads(given.text)["entries"] if given.text else []
        assert [each["content"] for each in objects] == [entry.content for entry in given.entries]
        assert [each["citation"] for each in objects] == [entry.citation for entry in given.entries]
    for entry in given.entries:
        said = described_at(filled.path, entry.position)
        content = entry.content.split(": ", 1)[1] if entry.part == "fact" else entry.content
        assert all(part.strip() in said for part in content.split("…")), entry


def described_at(store, position):
    """What the line of the log says that stands there."""
    data = (store / "log" / position.stream / position.segment).read_bytes()[position.offset :]
    event = json.loads(data.partition(b"\n")[0])
    return event.get("content") or event.get("value") or event["summary"]
