"""Tells whether a value of the profile is one that somebody has removed or replaced, under any key."""

import re
from collections.abc import Iterable

from memlog.eventlog.content_ids import folded
from memlog.projector.text.stemming import stop_words_in
from memlog.query.rejected_values import RejectedValue
from memlog.service.extraction.answers import LONGEST
from memlog.service.memories.compared_text import Text
from memlog.service.memories.meaning_words import negates
from memlog.service.memories.near_duplicates import similarity

_STEM = 5
"""Letters by which two forms of a word are known: smoker, smokes."""

_SHORTEST = 3
"""Letters of a word of a key that tells what the key is about."""

_MOST_MORE = 3
"""Words that a value may add, or leave out, under a key like the old one, and say the same."""

_LEAST_PART = 0.5
"""Of the words of a rejected value, the part that says the same under any key."""

_ANSWER = re.compile(r"yes|no|true|false|none|\d|да|нет|是|否|有|无|没有|kyllä|ei|on")
"""A value that says nothing without its key."""

_LIGHT = frozenset(
    "user lives living resides based works working likes loves prefers speaks uses has drinks eats wants"
    " asuu tykkää käyttää puhuu живет живёт любит работает 住 在 喜 欢 户 用".split()
)
"""Words that a sentence has around a value."""

_SUBJECT = re.compile(
    r"(?:the )?(\w+) (?:is|has|lives|works|likes|loves|prefers|speaks|uses|drinks|eats|wants)\b"
)


def is_rejected(key: str, value: str, rejected: Iterable[RejectedValue]) -> bool:
    """Whether a value is among the rejected ones: the same, nearly so, or with other words around it."""
    return any(_is_same(key, value, each) for each in rejected)


def _is_same(key: str, value: str, old: RejectedValue) -> bool:
    are_alike = _are_alike(key, old.key)
    if len(old.value) > LONGEST:
        return folded(value) == folded(old.value)
    new_words, old_words = _words(value), _words(old.value)
    if new_words == old_words:
        return are_alike or _ANSWER.fullmatch(folded(value).strip(" .")) is None
    if not new_words or not old_words or _ANSWER.fullmatch(folded(old.value).strip(" .")):
        return False
    if any(similarity(*texts) is not None for texts in _both_ways(value, old.value)):
        return True
    added, missing = new_words - old_words, old_words - new_words
    if any(negates(word) or word.isdigit() for word in added | missing) or (added and missing):
        return False
    if are_alike and len(added | missing) <= _MOST_MORE:
        return True
    if missing:
        return are_alike or len(new_words) >= _LEAST_PART * len(old_words)
    subject = _SUBJECT.match(folded(value))
    light = (
        _LIGHT
        | stop_words_in(("english", "finnish"))
        | {*_parts(key), *_parts(old.key)}
        | ({subject[1]} if subject else set())
    )
    return added <= light


def _both_ways(one: str, other: str) -> Iterable[tuple[Text, Text]]:
    texts = Text(one), Text(other)
    return texts, texts[::-1]


def _words(text: str) -> set[str]:
    return {token.word for token in Text(text).tokens}


def _parts(key: str) -> list[str]:
    return [part for part in folded(key).split("_") if part]


def _are_alike(one: str, other: str) -> bool:
    """Whether two keys share a word, in any form."""
    return any(
        this.startswith(that[:_STEM]) or that.startswith(this[:_STEM])
        for this in _parts(one)
        for that in _parts(other)
        if min(len(this), len(that)) >= _SHORTEST
    )
