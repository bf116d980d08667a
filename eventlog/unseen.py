"""Characters that have no shape of their own."""

from functools import lru_cache

_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""Default_Ignorable_Code_Point, as DerivedCoreProperties.txt of the Unicode Character Database has it.
Python's `unicodedata` lacks the property (UAX #44)."""

_BLANK = (0x2800, 0x2800)
"""The empty Braille pattern: a symbol by its category that looks like a space."""

_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Controls, format characters, halves of surrogate pairs, separators of lines and paragraphs."""


@lru_cache(4096)
def is_unseen(character: str) -> bool:
    """Whether a character has no shape of its own."""
    # Imported here: most appends do without it.
    import unicodedata

    return unicodedata.category(character) in _CATEGORIES or _is_ignorable(character)


def _is_ignorable(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in (*_IGNORABLE, _BLANK))


def is_blank(text: str) -> bool:
    """Whether a text has nothing that a reader sees."""
    return not any(letter.isalnum() and not _is_ignorable(letter) for letter in text[:_READ]) and all(
        letter.isspace() or is_unseen(letter) for letter in text
    )


_READ = 100
"""Characters among which most texts have a letter."""
