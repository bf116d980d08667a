"""Texts on which a pattern or a function that is not linear shows it: atoms, repeated, between two ends."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, permutations, product
from re import _constants as codes
from re import _parser as parser
from typing import NamedTuple

ATOMS = (
    *(" ", "\t", "\n", ".", ",", ":", "/", "\\", "#", "`", "-", "*", "_", "|", "=", "!", "?", "'", '"'),
    *("(", ")", "[", "]", "{", "}", "<", ">", "&", "@", "~", "a", "A", "0", "é", "\u0301", "Я", "茶", "\0"),
    *(
        "a ",
        "a.",
        "a-",
        "- ",
        "# ",
        "a\n",
        "\n\n",
        "1. ",
        "> ",
        "| a ",
        "aB",
        "a0",
        '{"a":',
        "[a](",
        "<a ",
        "<!--",
    ),
    *(
        "<!---->",
        "/**/",
        "```\n",
        "~~~",
        "&#0;",
        "\\u0000",
        "-eyJaaaaaaaa",
        "sk-",
        "xox",
        "AKIA",
        "https://",
        '\\"',
        "\\u0061",
        "my favourite colours are ",
    ),
)
"""What stored texts are made of: the signs of Markdown, JSON, HTML and of keys, letters of four scripts."""

ENDS = ("", "x", "\n", "!")
"""A last character may be what makes a match fail after it has come far."""


class Attack(NamedTuple):
    """A text of any size."""

    prefix: str
    atom: str
    suffix: str

    def text(self, size: int) -> str:
        """The text with so many characters of its atom repeated."""
        return f"{self.prefix}{self.atom * max(1, size // len(self.atom))}{self.suffix}"


def general(ends: Iterable[str] = ENDS[:2]) -> list[Attack]:
    """Attacks on whatever takes text."""
    return [Attack(atom, atom, end) for atom, end in product(ATOMS, ends)]


def against(pattern: re.Pattern[str] | re.Pattern[bytes], most: int = 10) -> list[Attack]:
    """Attacks on one pattern: what leads to each of its repeats, then what the pattern is made of, repeated.

    most: of what it is made of, so many of each sort.
    """
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    characters = list(dict.fromkeys(_characters(tree)))
    pumps = list(dict.fromkeys(_pumps(tree, "")))
    prefixes = list(dict.fromkeys(["", *(prefix for prefix, _ in pumps)]))
    bodies = list(dict.fromkeys(filter(None, (*(body for _, body in pumps), *_branches(tree)))))
    pairs = _pairs(bodies, characters)
    atoms = dict.fromkeys([*_spread(bodies, most), *_spread(characters, most), *_spread(pairs, most)])
    own = (Attack(*parts) for parts in product(_spread(prefixes, most // 2), atoms, ENDS[:3]))
    return list(dict.fromkeys(own))


def _pairs(bodies: list[str], characters: list[str]) -> list[str]:
    return ["".join(pair) for pair in permutations(_spread([*bodies, *characters], 5), 2)]


def _spread(found: list[str], most: int) -> list[str]:
    """At most so many, from the whole of a list."""
    step = max(1, -(-len(found) // most))
    return found[::step]


def _pumps(tree: Iterable[tuple], before: str) -> Iterator[tuple[str, str]]:
    """What leads to each repeat of a pattern, and what it repeats."""
    for op, argument in tree:
        for child in _children(op, argument):
            yield from _pumps(child, before)
        if op in _REPEATS:
            yield before, _example(argument[2])
        before += _example([(op, argument)])


def _branches(tree: Iterable[tuple]) -> Iterator[str]:
    """What each branch of a pattern takes: only the first one stands in the examples."""
    for op, argument in tree:
        children = _children(op, argument)
        if op is codes.BRANCH:
            yield from map(_example, children)
        yield from chain.from_iterable(map(_branches, children))


def _characters(tree: Iterable[tuple]) -> Iterator[str]:
    """Characters that the steps of a pattern take."""
    for op, argument in tree:
        if op in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(argument)
        elif op is codes.IN:
            yield from _of_class(argument)
        yield from chain.from_iterable(map(_characters, _children(op, argument)))


_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_OF_CATEGORY = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_NOT_DIGIT: "x",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: "x",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_WORD: "-",
}


def _of_class(items: Iterable[tuple]) -> list[str]:
    found = []
    for op, argument in items:
        if op is codes.LITERAL:
            found.append(chr(argument))
        elif op is codes.RANGE:
            found.append(chr(argument[0]))
        elif op is codes.CATEGORY:
            found.append(_OF_CATEGORY[argument])
    return found[:4]


def _outside(items: list[tuple]) -> str:
    """A character that a negated class takes."""
    without = [item for item in items if item[0] is not codes.NEGATE]
    taken = re.compile("[" + "".join(map(_as_class, without)) + "]") if without else None
    return next((each for each in "a 0-(.\n茶é" if taken is None or not taken.match(each)), "a")


def _as_class(item: tuple) -> str:
    op, argument = item
    if op is codes.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    return re.escape(chr(argument)) if op is codes.LITERAL else _CATEGORY_NAMES[argument]


_CATEGORY_NAMES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _children(op: int, argument: tuple) -> list[Iterable[tuple]]:
    if op in _REPEATS:
        return [argument[2]]
    if op is codes.SUBPATTERN:
        return [argument[3]]
    if op is codes.BRANCH:
        return list(argument[1])
    if op in (codes.ASSERT, codes.ASSERT_NOT):
        return [argument[1]]
    if op is codes.ATOMIC_GROUP:
        return [argument]
    return []


def _example(tree: Iterable[tuple]) -> str:
    """A short text that steps of a pattern take."""
    return "".join(_example_of(op, argument) for op, argument in tree)


def _example_of(op: int, argument: tuple) -> str:
    if op is codes.LITERAL:
        return chr(argument)
    if op is codes.NOT_LITERAL:
        return _outside([(codes.LITERAL, argument)])
    if op is codes.ANY:
        return "a"
    if op is codes.IN:
        is_negated = argument[0][0] is codes.NEGATE
        return _outside(argument) if is_negated else next(iter(_of_class(argument)), "")
    if op in _REPEATS:
        return _example(argument[2]) * max(argument[0], min(1, argument[1]))
    if op is codes.ASSERT:
        return _example(argument[1]) if argument[0] < 0 else ""
    children = _children(op, argument) if op is not codes.ASSERT_NOT else []
    return _example(children[0]) if children else ""
