"""What finds what, by language and kind of name: tables of text, question, and whether it is found."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memlog
from memlog.eventlog.events import Message
from memlog.projector.schema import read_schema
from memlog.projector.sqlite import choose_binding
from memlog.projector.text.analyzer import analyse_for_index, split_into_written_words
from memlog.projector.text.marks import find_first_marked_word, find_marked_spans, make_marks
from memlog.projector.text.stemming import is_mostly_latin
from memlog.projector.text.tokens import is_cjk
from memlog.query.search.request import parse_query
from tests.support.examples import examples

FOUND, NOT = True, False
FINDING = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?"

ENGLISH = [
    ("He was running late", "runs", FOUND),
    ("Raspberries are ripe", "rasp", FOUND),
    ("Raspberries are ripe", "ra", NOT),
    ("ＦＵＬＬ width, ﬁnished", "full", FOUND),
    ("ＦＵＬＬ width, ﬁnished", "finish", FOUND),
    ("A CAFÉ in Zürich", "cafe", FOUND),
    ("A cafe in Zurich", "Café Zürich", FOUND),
    ("the car broke", "caro", NOT),
]
WITHOUT_SPACES = [
    ("ฉันกินข้าวผัดตอนเที่ยง", "ข้าว", FOUND),
    ("ฉันกินข้าวผัดตอนเที่ยง", "ขา", NOT),
    ("ฉันกินข้าวผัดตอนเที่ยง", "ข้", FOUND),
    ("ຂ້ອຍກິນເຂົ້າ", "ເຂົ້າ", FOUND),
    ("ខ្ញុំញ៉ាំបាយ", "បាយ", FOUND),
    ("ကျွန်တော်ထမင်းစားတယ်", "ထမင်း", FOUND),
]
INVISIBLE = [
    ("an auto\u00admatic door", "automatic", FOUND),
    ("auto\u200bmatic", "automatic", FOUND),
    ("auto\u2060matic", "automatic", FOUND),
    ("\ufeffautomatic", "automatic", FOUND),
    ("автома\u00adтика здесь", "автоматика", FOUND),
    ("automatic", "auto\u00admatic", FOUND),
    ("the auto-\nmatic door", "automatic", FOUND),
    ("the auto-\nmatic door", "matic", FOUND),
    ("лесо-\nпарк открыт", "лесопарк", FOUND),
]
VARIANTS = [
    ("کتاب خوب", "كتاب", FOUND),
    ("علي", "علی", FOUND),
    ("می\u200cخواهم", "میخواهم", FOUND),
    ("हिन्दी", "हिंदी", FOUND),
    ("ज़मीन", "जमीन", FOUND),
    ("বাংলা", "বাঙ্লা", FOUND),
    ("ＡＢＣ１２３", "abc123", FOUND),
]
CODE_NAMES = [
    ("class HTTPServer", "HTTPServer", FOUND),
    ("class HTTPServer", "server", FOUND),
    ("parseJSON2XML()", "json", FOUND),
    ("parseJSON2XML()", "parseJSON2XML", FOUND),
    ("my_snake_case", "snake_case", FOUND),
    ("my_snake_case", "snake", FOUND),
    ("kebab-case-name", "kebab-case", FOUND),
    ("kebab-case-name", "kebab", FOUND),
]
EMOJI = [
    ("A great 🎉 party", "🎉", FOUND),
    ("A great 🎉 party", "🚀", NOT),
    ("ok 👍🏽", "👍", FOUND),
    ("sun ☀️ today", "☀", FOUND),
]
FINNISH = [
    ("Talossa asuu koira ja kissa.", "talo", FOUND),
    ("Meidän talo on punainen.", "talossa", FOUND),
    ("Ostimme uuden pyykkikoneen.", "pyykkikoneella", FOUND),
    ("Kissamme nukkuu sohvalla.", "Missä kissa nukkui?", FOUND),
    ("Mökin sauna lämpenee hitaasti.", "saunassa", FOUND),
    ("Mökin sauna lämpenee hitaasti.", "mokin", FOUND),
    ("Lempiväri on sininen", "lempivärini", FOUND),
    ("The talon of an eagle", "talossa", NOT),
    ("Kävimme eilen kaupassa.", "kaupasta", FOUND),
]
SWEDISH_TO_GERMAN = [
    ("Jag har köpt en ny bil och två cyklar.", "bilen", FOUND),
    ("Jeg har kjøpt en ny bil til hytta.", "bilen", FOUND),
    ("Jeg har kjøpt en ny bil til hytta.", "kjopt", FOUND),
    ("Ich habe gestern zwei neue Häuser gesehen.", "Häusern", FOUND),
    ("Die Straße ist gesperrt.", "strasse", FOUND),
    ("Ik heb twee nieuwe fietsen gekocht.", "fiets", FOUND),
]
ROMANCE = [
    ("Nous avons acheté des chevaux et une voiture.", "voitures", FOUND),
    ("Mi hermano compró dos casas en la playa.", "casa", FOUND),
    ("A minha irmã comprou uma casa na praia.", "casas", FOUND),
    ("Abbiamo comprato due case al mare.", "comprata", FOUND),
    ("Am cumpărat două case la țară și un cal.", "casele", FOUND),
]
OTHER_LATIN = [
    ("Kupiłem nowy samochód i dwa rowery w Łodzi.", "Lodzi", FOUND),
    ("Yeni evimiz çok güzel bir yerde.", "evimizde", FOUND),
    ("Tegnap vettem két új könyvet a barátomnak.", "könyvek", FOUND),
    ("Koupil jsem dva nové domy a auto.", "domů", FOUND),
]
RUSSIAN = [
    ("Поезда опаздывают", "поезд", FOUND),
    ("Поезд опоздал", "поездами", FOUND),
    ("В доме живёт собака", "живет собаки", FOUND),
    ("Ёлка стоит у окна", "елки", FOUND),
    ("Йогурт в холодильнике", "йогурта", FOUND),
    ("Йогурт в холодильнике", "иогурт", NOT),
    ("Самый читающий народ", "читающи", FOUND),
    ("Купил хлеб", "молоко", NOT),
    ("Поїзд їде до Києва", "поїзд", FOUND),
]
OTHER_SCRIPTS = [
    ("Το σπίτι μας είναι μεγάλο", "σπιτια", FOUND),
    ("ΤΟ ΣΠΙΤΙ ΜΑΣ", "σπίτι", FOUND),
    ("قرأت الكتاب أمس", "كتاب", FOUND),
    ("قرأت الكِتَاب أمس", "الكتاب", FOUND),
    ("मुझे किताबें पसंद हैं", "किताब", FOUND),
    ("मुझे किताबें पसंद हैं", "कता", NOT),
    ("புத்தகங்கள் உள்ளன", "புத்தகம்", FOUND),
    ("Տունը մեծ է", "տուն", FOUND),
    ("తెలుగు భాష", "తెలుగు", FOUND),
    ("မြန်မာစာ ကောင်း", "မြန်မာစာ", FOUND),
]
CJK = [
    ("我喜欢喝绿茶", "茶", FOUND),
    ("我喜欢喝绿茶", "绿茶", FOUND),
    ("我喜欢喝绿茶", "喝", FOUND),
    ("我喜欢喝绿茶", "红茶", NOT),
    ("東京に住んでいます", "東京", FOUND),
    ("ｶﾀｶﾅで書く", "カタカナ", FOUND),
    ("서울에서 만나요", "서울", FOUND),
]
NAMES = [
    ("call getUserName() first", "getUserName", FOUND),
    ("call getUserName() first", "getusername", FOUND),
    ("call getUserName() first", "user", FOUND),
    ("call getUserName() first", "get_user_name", FOUND),
    ("call get_user_name() first", "getUserName", FOUND),
    ("class HTTPServerError:", "server", FOUND),
    ("set snake_case_name here", "snake_case_name", FOUND),
    ("set snake_case_name here", "snake", FOUND),
    ("see src/main/app.py, line 3", "src/main/app.py", FOUND),
    ("see src/main/app.py, line 3", "app.py", FOUND),
    ("see src/main/app.py, line 3", "src/main/ap", FOUND),
    ("see C:\\Users\\anna\\notes.txt", "notes.txt", FOUND),
    ("write to foo@bar.com soon", "foo@bar.com", FOUND),
    ("write to foo@bar.com soon", "bar.com", FOUND),
    ("write to foo@bar.com soon", "foo", FOUND),
    ("released v1.2.3 today", "v1.2.3", FOUND),
    ("released v1.2.3 today", "1.2.3", FOUND),
    ("released v1.2.3 today", "1.2", FOUND),
    ("version 1.2.3 is out", "v1.2.3", FOUND),
    ("version 1.20.3 is out", "1.2", NOT),
    ("2 of 3 for 1", "1.2.3", NOT),
    ("failed with E_NOENT again", "E_NOENT", FOUND),
    ("failed with E_NOENT again", "noent", FOUND),
    ("failed: ERR-4711", "ERR-4711", FOUND),
    ("failed: ERR-4711", "4711", FOUND),
    ("failed: ERR-4711", "err4711", FOUND),
    ("failed: E1234", "e1234", FOUND),
    ("failed: E1234", "1234", FOUND),
    ("error 0x80070005 on start", "0x80070005", FOUND),
    ("error 0x80070005 on start", "80070005", FOUND),
    ("error 0x80070005 on start", "0x8007", FOUND),
    ("written in C++ and C#", "C++", FOUND),
    ("written in C++ and C#", "c#", FOUND),
    ("vitamin C is fine", "C++", NOT),
    ("vitamin C is fine", "C#", NOT),
    ("written in C++", "C#", NOT),
    ("an iPhone13 arrived", "iphone", FOUND),
]
PHRASES = [
    ("green tea with milk", '"green tea"', FOUND),
    ("tea that is green", '"green tea"', NOT),
    ("Meillä on vihreää teetä kaapissa", '"vihreää teetä"', FOUND),
    ("Meillä on teetä, vihreää", '"vihreää teetä"', NOT),
    ("Мы пьём зелёный чай", '"зеленый чай"', FOUND),
    ("Мы пьём чай, он зелёный", '"зелёный чай"', NOT),
    ("绿茶很好喝", '"茶很好"', FOUND),
    ("喝很绿茶", '"茶很好"', NOT),
    ("in src/main/app.py", '"main/app"', FOUND),
]
HOSTILE = [
    ("before\0after", "after", FOUND),
    ("before\0after", "before", FOUND),
    ("\ue0b0main \ue000talo", "main", FOUND),
    ("\ue000talo", "talossa", NOT),
    ("a\ue001b", "b", FOUND),
    ("ok🥰 ok🫠", '"ok"', FOUND),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """All texts of the tables, each a message in a chat of its own."""
    texts = dict.fromkeys(text for table in TABLES for text, _, _ in table)
    with memlog.open(tmp_path_factory.mktemp("words")) as opened:
        opened.append(
            [
                Message(id=str(number), channel="cli", chat_id=str(number), role="user", content=text)
                for number, text in enumerate(texts)
            ]
        )
        opened.maintenance.project(embed=False)
        yield opened


TABLES = (
    *(ENGLISH, FINNISH, SWEDISH_TO_GERMAN, ROMANCE, OTHER_LATIN, RUSSIAN, OTHER_SCRIPTS, CJK),
    *(WITHOUT_SPACES, INVISIBLE, VARIANTS, CODE_NAMES, EMOJI),
)
TABLES += (NAMES, PHRASES, HOSTILE)


def test_a_question_finds_a_text_or_does_not(store):
    rows = [row for table in TABLES for row in table]
    for text, question, is_found in rows:
        found = store.search(question, mode="text", k=len(rows), sync=False)
        assert (text in [hit.content for hit in found.hits]) == is_found, (text, question)


def test_a_text_is_analysed_alike_however_its_letters_are_composed():
    for text in ("Mökillä on kylmä ja yö", "Йод и ёлка", "Ängström à la carte"):
        assert analyse_for_index(unicodedata.normalize("NFD", text)) == analyse_for_index(
            unicodedata.normalize("NFC", text)
        )


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=("Cn", "Cs")), max_size=40))
@settings(max_examples=examples(25))
def test_any_text_is_found_by_its_own_words_next_to_each_other(text):
    db = choose_binding().connect(":memory:")
    db.execute(re.findall(r"CREATE VIRTUAL TABLE messages_fts[^;]*", read_schema())[0])
    db.execute("INSERT INTO messages_fts (rowid, content) VALUES (1, ?)", (analyse_for_index(text),))
    words = [word for word in split_into_written_words(text) if not is_cjk(word)]
    for word in words:
        assert db.execute(FINDING, (f'"{word}"',)).fetchall() == [(1,)], word


def test_english_is_indexed_as_it_is_written():
    for text in ("I met the boys at school.", "Thanks!", "Sounds great", "on in is at"):
        assert analyse_for_index(text) == text


def test_stop_words_are_left_out_in_the_language_of_the_question():
    assert parse_query("Missä talossa koira on?").words == ("talossa", "koira")
    assert parse_query("Wo ist das Auto?").words == ("auto",)
    assert parse_query("Где живёт его собака?").words == ("живет", "собака")
    assert parse_query("Where is he?").words == ("where", "is", "he")
    # Finnish "me" and German "die" carry nothing, English "die" does.
    assert parse_query("when did they die").words == ("die",)


def test_a_question_in_english_asks_for_no_stem_of_another_language():
    assert parse_query("What did the cat do to the house?").terms == [
        '"cat" OR "cat"*',
        '"house" OR "house"*',
    ]


def test_a_word_alone_asks_for_few_different_stems():
    assert len(parse_query("talossa").terms) < 10


PLACES = [
    ("Anna kävi eilen talossamme", ("talo",), "talossamme"),
    ("Anna kävi eilen talossamme", ("taloa",), "talossamme"),
    ("The kettle whistles", ("whistling",), "whistles"),
    ("Вчера поезда опоздали", ("поездом",), "поезда"),
    ("今天我喜欢喝绿茶", ("绿茶",), "绿茶"),
    ("A CAFÉ", ("cafe",), "CAFÉ"),
    ("nothing of it", ("kettle",), "nothing"),
    ("nothing asked", (), "nothing"),
]


def test_the_first_place_of_a_word_is_found_in_any_form():
    for text, words, place in PLACES:
        assert find_first_marked_word(text, make_marks(words)) == text.index(place), text


MARKED = [
    ("tea", "Tea, teas and technical terms", ["Tea", "teas"]),
    ("whistling", "The kettle whistles", ["whistles"]),
    ("talossa", "Anna kävi talossamme", ["talossamme"]),
    ("绿茶", "今天我喜欢喝绿茶", ["绿茶"]),
    ("喝绿茶", "喝绿茶", ["喝绿茶"]),
    ('"green tea"', "green or black tea", ["green", "tea"]),
    ("kettle", "nothing of it", []),
]


def test_the_words_that_a_question_matches_are_marked():
    for question, text, marked in MARKED:
        places = find_marked_spans(text, parse_query(question).marks)
        assert [text[start:end] for start, end in places] == marked, question


MOSTLY_LATIN = {
    "plain ASCII": True,
    "Mökillä lämmitetään saunaa": True,
    "Đây là tiếng Việt, có dấu ở mọi chỗ": True,
    "12:30 — 50 %": True,
    "": True,
    "我喜欢喝绿茶": False,
    "поезд в Казань": False,
    "My friend Дима called": True,
    "Запусти memlog и смотри": False,
    "서울에서 만나요": False,
    "Το σπίτι": False,
}


def test_a_text_is_mostly_latin_or_not():
    assert {text: is_mostly_latin(text) for text in MOSTLY_LATIN} == MOSTLY_LATIN


def test_a_long_message_is_found_by_a_code_whose_parts_many_short_ones_have(tmp_path):
    with memlog.open(tmp_path / "store") as opened:
        short = [(f"w{a:05}n{b:05}", "tea") for a in range(30) for b in (1, 2, 3)]
        coded = [
            ("w00007n00009", "tea with milk " * 5000),
            *short,
            *((f"w{b:05}n00009", "tea") for b in range(7)),
        ]
        opened.append(
            Message(channel="cli", chat_id=str(number), role="user", content=f"{code} {text}")
            for number, (code, text) in enumerate(coded)
        )
        (first, *_) = opened.search("w00007n00009", mode="text").hits
    assert first.content.startswith("w00007n00009")


@pytest.mark.parametrize("topic", ["favorite_colors", "favourite colours", "Favorite Colors"])
def test_a_topic_is_found_in_any_spelling(topic: str, tmp_path: Path) -> None:
    with memlog.open(tmp_path) as store:
        store.memories.save("Blue is best", topic="favorite_colors")
        store.memories.save("Blue is far", topic="distances")
        hits = store.search("blue", mode="text", filters={"topic": topic}).hits
        assert [hit.content for hit in hits] == ["Blue is best"]
        assert [each.content for each in store.memories.list(topic=topic)] == ["Blue is best"]
