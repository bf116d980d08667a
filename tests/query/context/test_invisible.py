"""Every character that nobody sees is an escape in a context, in each form; words and emoji stay readable."""

import json
import unicodedata

from memlog.query.context.escaping import (
    escape_citations_in_json,
    escape_invisible_in_json,
    escape_text,
    is_invisible,
)

IGNORABLE = """
00AD 034F 061C 115F..1160 17B4..17B5 180B..180D 180E 180F 200B..200F 202A..202E 2060..2064 2065 2066..206F
3164 FE00..FE0F FEFF FFA0 FFF0..FFF8 1BCA0..1BCA3 1D173..1D17A E0000 E0001 E0002..E001F E0020..E007F
E0080..E00FF E0100..E01EF E01F0..E0FFF
"""
"""Default_Ignorable_Code_Point: the entries of DerivedCoreProperties.txt, Unicode 14.0 to 16.0 alike."""


def ignorable() -> list[str]:
    bounds = [entry.partition("..") for entry in IGNORABLE.split()]
    return [
        chr(code) for first, _, last in bounds for code in range(int(first, 16), int(last or first, 16) + 1)
    ]


def test_every_ignorable_character_is_an_escape_wherever_it_stands():
    for character in ignorable():
        escape = character.encode("unicode_escape").decode()
        for text in (f"[{character}M1]", f"a{character}b", character, f"\u4e2d{character}\u6587"):
            for keep_lines in (False, True):
                shown = escape_text(text, keep_lines=keep_lines)
                assert character not in shown, ascii(text)
                assert escape in shown
            assert character not in escape_invisible_in_json(json.dumps(text, ensure_ascii=False))


def test_every_control_and_format_character_of_this_unicode_is_an_escape():
    unseen = [
        chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp")
    ]
    assert len(unseen) > 200
    assert [character for character in unseen if character in escape_text(f"a{character}b")] == []


def test_what_has_a_shape_stays():
    text = "Tea, Käse, чай, 茶, بيت, नमस्ते, 한국어, 😀, ✓, é, ﬁ, \u00a0|"
    assert escape_text(text) == text


def test_an_emoji_of_several_characters_stays():
    for emoji in ("👨‍👩‍👧", "❤️", "1️⃣", "🏳️‍🌈", "👍🏽", "🧑🏿‍🚀", "☺️", "❤️‍🔥"):
        assert escape_text(f"so {emoji}!") == f"so {emoji}!", emoji


def test_persian_words_stay():
    assert escape_text("می\u200cخواهم") == "می\u200cخواهم"


NO_EMOJI = [
    "👍\u200dtext",
    "text\u200d👍",
    "👍\u200d\u200d👍",
    "❤\ufe0f\ufe0f",
    "🏴\U000e0067\U000e007f",
    "2\ufe0f",
    "a\ufe0f\u20e3",
    "م\u200d\u200cx",
    "\u2800",
]


def test_what_only_looks_like_an_emoji_hides_nothing():
    for hidden in NO_EMOJI:
        shown = escape_text(hidden)
        assert "\\u" in shown or "\\U" in shown, ascii(hidden)


def test_every_form_of_an_m_and_of_a_bracket_passes_for_no_citation():
    ms = [chr(code) for code in range(0x110000) if unicodedata.normalize("NFKC", chr(code)).casefold() == "m"]
    brackets = [
        chr(code)
        for code in range(0x110000)
        if unicodedata.category(chr(code)) == "Ps" and "LEFT SQUARE BRACKET" in unicodedata.name(chr(code))
    ]
    assert len(ms) > 30
    assert len(brackets) > 5
    for bracket in (*brackets, "【", "〔"):
        for m in (*ms, "М", "Μ", "Ꮇ"):
            assert escape_text(f"{bracket}{m}1]").startswith(f"\\{bracket}"), ascii(bracket + m)
            assert bracket not in escape_citations_in_json(f'"{bracket}{m}1]"')


def test_a_mark_that_is_drawn_on_a_bracket_or_an_m_hides_no_citation():
    marks = [chr(code) for code in (0x300, 0x36F, 0x488, 0x1AB0, 0x20DD, 0x20E3, 0x302A, 0xFE20)]
    for mark in marks:
        assert escape_text(f"[{mark}M1]") == f"\\[{mark}M1]"
        assert escape_text(f"[М{mark}1]") == f"\\[М{mark}1]"


def test_brackets_of_other_texts_stay():
    for text in ("[Monday]"[1:], "a [map] of", "list[m]", "[x] done", "「茶」"):
        assert escape_text(text) == text


def test_the_separators_of_a_line_are_unseen():
    assert all(map(is_invisible, "\u2028\u2029\x85\x00"))
