"""Ordinals and numbers as words, in English, Russian and Finnish: `second`, вторая, `toisesta` are 2."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

LANGUAGES = ("english", "russian", "finnish")

_ENGLISH = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)

_RUSSIAN_STEMS = (
    "нулев перв втор - четверт|четвёрт пят шест седьм восьм девят десят одиннадцат двенадцат тринадцат"
    " четырнадцат пятнадцат шестнадцат семнадцат восемнадцат девятнадцат двадцат"
)
_RUSSIAN_ENDINGS = "ый ой ая ое ого ому ым ом ую"
_RUSSIAN_THIRD = "третий третья третье третьего третьей третьему третьим третьем третью"

_FINNISH = (
    "nollas",
    "ensimmäinen ensimmäisen ensimmäistä ensimmäisestä ensimmäiseen ensimmäisenä eka ekan ekaa",
    "toinen toisen toista toisesta toiseen toisena toka tokan tokaa",
    "kolmas kolmannen kolmatta kolmannesta kolmanteen kolmantena",
    "neljäs neljännen neljättä neljännestä neljänteen neljäntenä",
    "viides viidennen viidettä viidennestä viidenteen viidentenä",
    "kuudes kuudennen kuudetta kuudennesta kuudenteen kuudentena",
    "seitsemäs seitsemännen seitsemättä seitsemännestä seitsemänteen seitsemäntenä",
    "kahdeksas kahdeksannen kahdeksatta kahdeksannesta kahdeksanteen kahdeksantena",
    "yhdeksäs yhdeksännen yhdeksättä yhdeksännestä yhdeksänteen yhdeksäntenä",
    "kymmenes kymmenennen kymmenettä kymmenennestä kymmenenteen kymmenentenä",
)

_NUMBERS = {
    "english": "zero one two three four five six seven eight nine ten",
    "russian": "ноль один|одна|одно два|две|двух три|трёх|трех четыре|четырёх|четырех пять|пяти шесть|шести"
    " семь|семи восемь|восьми девять|девяти десять|десяти",
    "finnish": "nolla yksi|ykkönen kaksi|kakkonen kolme|kolmonen neljä|nelonen viisi kuusi seitsemän"
    " kahdeksan yhdeksän kymmenen",
}
"""From 0 on."""

_DIGITS = {
    "english": re.compile(r"(\d{1,7})(?:st|nd|rd|th|\.)"),
    "russian": re.compile(r"(\d{1,7})(?:[оыи]?й|[аь]?я|[оь]?е|[оье]?го|[оье]?му|[оыи]?м|[уью]?ю|\.)"),
    "finnish": re.compile(r"(\d{1,7})(?:\.|:s|s)"),
}
"""An ordinal in digits."""

_SIGNED = re.compile(r"(?:#|№)(\d{1,7})")
_BARE = re.compile(r"\d{1,7}")

_MARKS = {
    "english": "number|no|nr|#|№|rank",
    "russian": "номер|№|под номером",
    "finnish": "numero|nro|#|№",
}
"""What makes an ordinal of the number behind it."""


def ordinal_at(words: Sequence[str], place: int, language: str) -> tuple[int, int] | None:
    """The number that an ordinal at `place` says, and how many words it takes; None where there is none.

    words: folded.
    """
    word = words[place]
    if word in _ordinals()[language]:
        return _ordinals()[language][word], 1
    if digits := _DIGITS[language].fullmatch(word) or _SIGNED.fullmatch(word):
        return int(digits[1]), 1
    for mark in _MARKS[language].split("|"):
        said = mark.split()
        end = place + len(said)
        if [*words[place:end]] == said and end < len(words):
            number = number_of(words[end], language)
            return None if number is None else (number, len(said) + 1)
    return None


def number_of(word: str, language: str) -> int | None:
    """The number that a word says, in digits or not; None where it says none."""
    return int(word) if _BARE.fullmatch(word) else _numbers()[language].get(word)


def ordinal_words(language: str) -> Mapping[str, int]:
    """The ordinals that are words, in all their forms, and the first of them in digits."""
    in_digits = {"english": ("1st", "2nd", "3rd"), "russian": ("1-й", "2-й", "3-й"), "finnish": ()}[language]
    return {**_ordinals()[language], **{word: number for number, word in enumerate(in_digits, 1)}}


@cache
def _ordinals() -> Mapping[str, Mapping[str, int]]:
    russian = {
        f"{stem}{ending}": number
        for number, stems in enumerate(_RUSSIAN_STEMS.split())
        for stem, ending in product(stems.split("|"), _RUSSIAN_ENDINGS.split())
    }
    return {
        "english": {word: number for number, word in enumerate(_ENGLISH.split())},
        "russian": russian | dict.fromkeys(_RUSSIAN_THIRD.split(), 3),
        "finnish": {word: number for number, forms in enumerate(_FINNISH) for word in forms.split()},
    }


@cache
def _numbers() -> Mapping[str, Mapping[str, int]]:
    return {
        language: {word: number for number, forms in enumerate(words.split()) for word in forms.split("|")}
        for language, words in _NUMBERS.items()
    }
