"""English words that Britons and Americans spell in two ways: a question finds both, a topic has one."""

import re
from functools import cache

_OUR = "arm behavi col enamel fav flav harb hon hum lab neighb od parl rum sav splend vap vig"
_PAIRS = (
    *((f"{stem}our", f"{stem}or") for stem in _OUR.split()),
    *(
        ("centre", "center"),
        ("theatre", "theater"),
        ("litre", "liter"),
        ("fibre", "fiber"),
        ("metre", "meter"),
    ),
    *(("organisation", "organization"), ("catalogue", "catalog"), ("cheque", "check"), ("tyre", "tire")),
    *(("aeroplane", "airplane"), ("moustache", "mustache")),
    *(("defence", "defense"), ("licence", "license"), ("grey", "gray"), ("cosy", "cozy"), ("mould", "mold")),
    *(("jewellery", "jewelry"), ("yoghurt", "yogurt"), ("doughnut", "donut"), ("pyjama", "pajama")),
)
"""What the words of a family begin with, as Britons and as Americans spell it."""

_AMERICAN = dict(_PAIRS)
_OTHER = _AMERICAN | {american: british for british, american in _PAIRS}


@cache
def _begins() -> re.Pattern[str]:
    """Compiled when it is first needed; see `memlog.projector.analysis`."""
    return re.compile("|".join(_OTHER))


def american(word: str) -> str:
    """`word`, folded, as Americans spell it."""
    found = _begins().match(word)
    return word if found is None else _AMERICAN.get(found[0], found[0]) + word[found.end() :]


def other_spelling(word: str) -> str | None:
    """`word`, folded, as it is spelled across the ocean: `colours` as `colors`; None where there is none."""
    found = _begins().match(word)
    return None if found is None else _OTHER[found[0]] + word[found.end() :]
