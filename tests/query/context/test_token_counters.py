"""The counters of a context's budget."""

import base64
from hashlib import sha256
from typing import get_args

import memlog
from memlog.query.context.token_counters import Counter, count_text_tokens, weigh_text

COUNTS = [
    ("model", "green tea, twice", 4),
    ("model", "", 0),
    ("chars4", "1234567", 1),
    ("chars4", "12345678", 2),
    ("heuristic", "green tea and more", 3),
    ("heuristic", "喝绿茶", 5),
    ("heuristic", "喝绿茶 twice a day", 7),
    ("heuristic", "- [FACT] tea [M1]", 3),
    ("heuristic", "зелёный чай, vihreä tee", 3),
]


def test_a_counter_counts_as_the_page_says():
    for counter, text, count in COUNTS:
        assert count_text_tokens(text, counter) == count, (counter, text, count)


def test_a_word_without_end_weighs_by_its_length():
    for counter in get_args(Counter):
        assert weigh_text("x" * 16_000, counter) >= 1000, counter


THAI = "ฉันดื่มชาเขียวทุกเช้า ไม่เคยดื่มกาแฟเลย"
FOR_LANGUAGE_MODELS = [
    # A text, and the larger of its tokens in cl100k_base and in o200k_base.
    ("I drink green tea in the morning, never coffee.", 11),
    ("Was kostet der Schlüssel für das Gästezimmer?", 13),
    ("Tôi uống trà xanh mỗi buổi sáng, không bao giờ uống cà phê.", 29),
    ("Я пью зелёный чай по утрам и никогда не пью кофе.", 25),
    ("Мен таңертең көк шай ішемін, ешқашан кофе ішпеймін.", 39),
    ("Πίνω πράσινο τσάι κάθε πρωί, ποτέ καφέ.", 34),
    ("אני שותה תה ירוק כל בוקר ולא קפה.", 32),
    ("أشرب الشاي الأخضر كل صباح ولا أشرب القهوة أبداً.", 37),
    ("मैं हर सुबह हरी चाय पीता हूँ, कॉफ़ी कभी नहीं।", 47),
    ("நான் தினமும் காலையில் பச்சை தேநீர் குடிக்கிறேன்.", 66),
    (THAI, 35),
    ("მე ყოველ დილით მწვანე ჩაის ვსვამ.", 60),
    ("ជារៀងរាល់ព្រឹកខ្ញុំផឹកតែបៃតង", 48),
    ("我每天早上喝绿茶，从来不喝咖啡。", 24),
    ("私は毎朝緑茶を飲みます。コーヒーは飲みません。", 29),
    ("コーヒーショップでアイスクリームをください", 18),
    ("나는매일아침녹차를마시고커피는절대마시지않는다", 34),
    ("나는 매일 아침 녹차를 마시고 커피는 절대 마시지 않는다.", 32),
    ("😀🎉🙏🏽👨\u200d👩\u200d👧\u200d👦🇫🇮✨❤️", 40),
    (base64.b64encode(b"".join(sha256(bytes([number])).digest() for number in range(3))).decode(), 90),
    (sha256(b"tea").hexdigest() * 2, 86),
    ("3141592653589793238462643383279502884197169399375105820974944592307816406286", 26),
    ("\n" * 200, 13),
]


def test_the_model_counts_at_least_four_fifths_of_what_language_models_do():
    for text, count in FOR_LANGUAGE_MODELS:
        assert 0.8 * count <= count_text_tokens(text, "model") <= 2 * count, (
            text,
            count_text_tokens(text, "model"),
        )


def test_a_run_without_spaces_counts_by_its_length():
    for text, least in (
        ("ก", 0.8),
        ("한", 0.8),
        ("あ", 0.8),
        ("𒀀", 3),
        ("x", 1 / 16),
        ("9f", 0.8),
        ("é", 0.5),
    ):
        assert count_text_tokens(text * 5000, "model") >= 5000 * least, text


def test_pieces_weigh_at_least_what_their_text_does():
    texts = [text for text, _ in FOR_LANGUAGE_MODELS]
    for counter in get_args(Counter):
        assert count_text_tokens(" ".join(texts), counter) <= 1 + sum(
            weigh_text(f"{text} ", counter) for text in texts
        )


def test_a_budget_holds_for_what_has_no_spaces(tmp_path):
    for name, text, letters in (
        ("thai", THAI * 60, 0.8),
        ("hangul", "녹차를마시고" * 400, 0.8),
        ("x", "x" * 9000, 1 / 16),
    ):
        with memlog.open(tmp_path / name) as store:
            store.append(
                memlog.Message(channel="cli", chat_id="1", role="user", content=each)
                for each in ("green tea", *[text] * 12)
            )
            assert store.conversations.window(("cli", "1"), tokens=30).messages == []
            given = store.context("green tea", chat="cli:1", max_tokens=500, counter="model")
            assert sum(letter in text for letter in given.text) * letters <= 500, name
