"""Recognises placeholders that language models write instead of content: `…`, `string`, "No memories.".

Only a whole text is a placeholder, not one that merely contains such a word. Parts of the model's own
instructions are placeholders, too.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from memlog.eventlog.codec.content_ids import fold_content
from memlog.service.engine.prompts import prompt_names, read_prompt
from memlog.service.memory.word_tables import load_patterns, load_tables


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return load_patterns(__file__)


_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 25


def tells_nothing(text: str) -> bool:
    """Whether a folded sentence only says that somebody said nothing, or that there is nothing to say."""
    spelled = re.sub(r"n['’]t\b", " not", text)
    if _matches_placeholder_table(spelled, "empty_form"):
        return True
    is_of_somebody = _patterns()["owns"].search(spelled) is not None
    if any(_denies_telling(spelled, each, is_of_somebody=is_of_somebody) for each in _telling_patterns()):
        return _patterns()["wish"].match(spelled) is None
    _, _, rest = spelled.partition(" ")
    english = _telling_patterns()[0]
    return _patterns()["leads"].match(rest) is not None and _denies_telling(
        rest, english, is_of_somebody=True
    )


def _denies_telling(text: str, language: "_TellingPatterns", *, is_of_somebody: bool) -> bool:
    """Whether a sentence consists of words of `language` and denies that anything was said.

    is_of_somebody: whether it is about something that a person has, so that it must also mention telling.
    """
    words = _WORD.findall(text) if language.is_spaced else [text]
    if not words or len(words) > _MOST_WORDS or any(map(str.isdigit, text)):
        return False
    if not all(map(language.any.fullmatch, words)):
        return False
    if language.is_spaced:
        denies, tells, is_told = (any(map(each.fullmatch, words)) for each in language.parts)
    else:
        denies, tells, is_told = (each.search(text) is not None for each in language.parts)
    return denies and is_told and (tells or not is_of_somebody)


class _TellingPatterns(NamedTuple):
    """Patterns for one language. any: matches all its words. parts: match `denying`, `telling` and `told`."""

    any: re.Pattern[str]
    parts: list[re.Pattern[str]]
    is_spaced: bool


@cache
def _telling_patterns() -> list[_TellingPatterns]:
    made = []
    for words in load_tables(__file__)["telling"].values():
        parts = ["|".join(words[name].split()) for name in ("denying", "telling", "told")]
        whole = "|".join([*parts, *words["others"].split()])
        is_spaced = words.get("is_spaced", True)
        if not is_spaced:  # longest first, without backtracking
            whole = f"(?:{'|'.join(sorted(whole.split('|'), key=len, reverse=True))})++"
        made.append(_TellingPatterns(re.compile(whole), [*map(re.compile, parts)], is_spaced))
    return made


_LONGEST = 200
"""The maximum number of characters in a placeholder that is not part of a prompt."""

_SHORTEST_INSTRUCTION = 20
"""The minimum number of characters that identify a part of a prompt."""

_FIELD = re.compile(r"([^\W\d][\w'’]*(?: [\w'’]+)?) ?[:：] ?(\S.*)")
"""Matches a label of one or two words, and its value."""

_ENDS = re.compile(r"[.;,|!?。；，、…]+ ?| [-–—/] ")
_MARKUP = re.compile(r"[`*_]+")


def is_placeholder(text: str) -> bool:
    """Whether a text has no content: an example, a template's slot, a denial, or a part of a prompt."""
    folded_text = fold_content(text)
    if len(folded_text) > _LONGEST:
        return _is_instruction(folded_text)
    bare = folded_text.strip("\"'` .。")
    if _matches_placeholder_table(bare, "unfilled"):
        return True
    field = _FIELD.fullmatch(bare)
    if field is not None and _matches_placeholder_table(_strip_marks(field[2]), "nothing", "example"):
        return True
    return all(
        _is_empty_clause(part) or _matches_placeholder_table(part, "template", "example")
        for part in _split_clauses(folded_text)
    ) or _is_instruction(folded_text)


def says_nothing(text: str) -> bool:
    """Whether all clauses of a text say that there is nothing to say."""
    parts = _split_clauses(fold_content(text)) if len(text) <= _LONGEST else []
    return bool(parts) and all(map(_is_empty_clause, parts))


def is_denial(text: str) -> bool:
    """Whether a text is only a denial, such as `none`, which may still answer a question."""
    return _matches_placeholder_table(_strip_marks(fold_content(text)), "denial")


def _matches_placeholder_table(text: str, *tables: str) -> bool:
    """Whether any of the given tables in placeholders.toml matches a whole folded text."""
    return any(_patterns()[table].fullmatch(text) for table in tables)


def _is_empty_clause(part: str) -> bool:
    """Whether a clause says that there is nothing to say."""
    return _matches_placeholder_table(part, "nothing", "denial") or tells_nothing(part)


def _split_clauses(text: str) -> list[str]:
    """Split a folded text into clauses, without marks; [] if it is an example or has only marks."""
    whole = _strip_marks(text)
    if _matches_placeholder_table(whole, "nothing"):  # n/a
        return [whole]
    if _matches_placeholder_table(text.strip("\"'`<>() .,…"), "example"):  # user@example.com
        return []
    return [bare for part in _ENDS.split(whole) if (bare := _strip_marks(part))]


def _strip_marks(text: str) -> str:
    """Strip quotes, brackets, markup and a leading label from a folded text."""
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return _patterns()["label"].sub("", text[start:end].replace("_", " "), count=1) if start < end else ""


def _is_instruction(text: str) -> bool:
    """Whether a folded text is part of a prompt."""
    told = " ".join(_MARKUP.sub("", text).split()).strip("-.:;,\"' ")
    return len(told) >= _SHORTEST_INSTRUCTION and told in _prompt_texts()


@cache
def _prompt_texts() -> str:
    texts = (" ".join(_MARKUP.sub("", read_prompt(name).text).split()) for name in prompt_names())
    return "\n".join(map(fold_content, texts))
