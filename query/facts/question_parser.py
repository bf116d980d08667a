"""Parses questions about facts using word tables, without a model.

A question is accepted only if the role of every word is known. docs/memory/facts.md describes the rules.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import msgspec

from memlog.projector.text import language_files
from memlog.projector.text.language_files import split_phrases
from memlog.projector.text.stemming import ENGLISH
from memlog.query.facts.topic_keys import (
    fold_visible_characters,
    is_plural,
    load_fact_words,
    strip_possessive,
    strip_word_for_favorite,
)

_DIGITS = r"(\d{1,7})(\D\S*)"
_SIGNED = r"(?:#|№)(\d{1,7})"
_NUMBER = r"\d{1,7}"


def parse_ordinal_at(words: Sequence[str], place: int, language: str) -> tuple[int, int] | None:
    """Return the ordinal at `place` in folded words and the number of words it spans, or None."""
    word = words[place]
    if word in _load_ordinals(language):
        return _load_ordinals(language)[word], 1
    if (number := _parse_number_in_digits(word, language)) is not None:
        return number, 1
    for mark in split_phrases(load_fact_words()[language].numbers.marks):
        parts = mark.split()
        end = place + len(parts)
        if [*words[place:end]] == parts and end < len(words):
            number = parse_number(words[end], language)
            return None if number is None else (number, len(parts) + 1)
    return None


def parse_number(word: str, language: str) -> int | None:
    """Parse a number in digits or as a word; None if `word` is not a number."""
    return int(word) if re.fullmatch(_NUMBER, word) else _load_cardinals(language).get(word)


def load_ordinal_words(language: str) -> Mapping[str, int]:
    """Return the number of each ordinal, keyed by word (in all its forms) and by forms like `1st`."""
    in_digits = load_fact_words()[language].numbers.in_digits.split()
    return {**_load_ordinals(language), **{word: number for number, word in enumerate(in_digits, 1)}}


def _parse_number_in_digits(word: str, language: str) -> int | None:
    if signed := re.fullmatch(_SIGNED, word):
        return int(signed[1])
    digits = re.fullmatch(_DIGITS, word)
    is_ordinal = digits and digits[2] in load_fact_words()[language].numbers.digit_endings.split()
    return int(digits[1]) if digits and is_ordinal else None


@cache
def _load_ordinals(language: str) -> Mapping[str, int]:
    table = load_fact_words()[language].numbers
    endings = table.ordinal_endings.split()
    return {
        word: number
        for form, number in _load_number_forms(table.ordinals)
        for word in ([form[:-1] + ending for ending in endings] if form.endswith("-") else [form])
    }


@cache
def _load_cardinals(language: str) -> Mapping[str, int]:
    return dict(_load_number_forms(load_fact_words()[language].numbers.cardinals))


def _load_number_forms(table: str) -> Iterator[tuple[str, int]]:
    for number, forms in enumerate(table.split()):
        for form in forms.split("/"):
            yield form, number


LONGEST = 1000
"""The most characters in a question."""

# `re` compiles these on first use.
_ENDING_HYPHEN = r"(?<=\d)-(?=[а-яё]{1,3}\b)"
_MINUS = r"(?<!\w)[-−](?=\d)"
_SPACES = r"[\s\-‐-―_/]+"
_AROUND = '.,:;!?"`«»“”„()[]{}*…¿¡'


class Question(msgspec.Struct, frozen=True):
    """A parsed question.

    language: the language of its words.
    words: the words that name the topic, without those for "favourite"; empty if it names no topic.
    is_favorite: whether it asks for favourites.
    ranks: ranks in the list. top: how many of the first ranks. is_list: whether it asks for all.
    names: possible names of the topic, likeliest first, if the question is an idiom; `words` is then empty.
    """

    language: str
    words: Sequence[str] = ()
    is_favorite: bool = False
    ranks: Sequence[int] = ()
    top: int | None = None
    is_list: bool = False
    names: Sequence[str] = ()

    @property
    def names_a_topic(self) -> bool:
        """Whether it names a topic. If not, it means the topic set last."""
        return bool(self.words or self.names)

    @property
    def name(self) -> str:
        """The topic, as shown in messages."""
        words = [*(["favorite"] if self.is_favorite else []), *self.words]
        return repr(" ".join(words or self.names[:1]))


def parse_questions(text: str) -> Iterator[Question]:
    """Yield the possible meanings of a question, at most one per language; none if a word is unknown."""
    words = _split_words(text) if len(text) <= LONGEST else []
    for language in _choose_languages_of_text("".join(words)):
        question = _Parser(words, language).parse_question()
        if question is not None:
            yield question


def _choose_languages_of_text(text: str) -> Sequence[str]:
    """Return the languages whose script occurs in `text`, or those in Latin script if none does."""
    languages = language_files.load_languages_with_table("facts")
    scripts = {name: languages[name].text.characters for name in load_fact_words()}
    own = [
        name
        for name, script in scripts.items()
        if any(start <= ord(letter) <= end for letter in text for start, end in script)
    ]
    return own or [name for name in scripts if not scripts[name]]


class _Parser:
    """Takes words off both ends of a question until only the topic is left."""

    def __init__(self, words: Sequence[str], language: str) -> None:
        self._words = list(words)
        self._language = language
        self._table = load_fact_words()[language].question
        self._owners = ",".join([*load_fact_words()[language].own.split(), self._table.owners])
        self._is_past = not set(words).isdisjoint(self._table.past.split())
        self._has_lead = self._is_own = self._is_list = self._is_favorite = False
        self._ranks: list[int] = []
        self._top: int | None = None
        self._has_number_behind = self._is_most = False

    def parse_question(self) -> Question | None:
        """Return the meaning of the words; None if uncertain."""
        while True:
            for names, questions in self._table.idioms.items():
                if tuple(self._words) in _load_phrases(questions):
                    return Question(self._language, names=language_files.split_phrases(names))
            if not self._take_leading_phrase():
                break
        while self._drop_phrase_at_end(self._table.tails):
            pass
        self._has_lead |= self._drop_phrase_at_end(self._table.leads_behind)
        self._take_words_after_topic()
        self._move_topic_to_end()
        while self._words and self._take_word_before_topic():
            pass
        self._strip_my_and_favorite()
        if self._is_most and (self._is_list or self._is_plural()):
            # `my most favourite colours` asks for all of them.
            self._ranks, self._is_list = [], True
        return self._question_if_certain()

    def _question_if_certain(self) -> Question | None:
        # Without a topic, one clue is not enough: `show me the second` may mean anything.
        is_of_last = self._has_lead and sum((self._is_own, self._is_favorite, bool(self._ranks))) > 1
        has_owner = self._language == ENGLISH and any(word.endswith(("'s", "s'")) for word in self._words)
        if not ((self._words or is_of_last) and (self._is_own or self._is_favorite or has_owner)):
            return None
        if self._are_numbers_ambiguous() or (self._is_past and not self._ranks and self._top is None):
            return None
        return Question(
            self._language,
            words=tuple(self._words),
            is_favorite=self._is_favorite,
            ranks=tuple(self._ranks),
            top=self._top,
            is_list=self._is_list,
        )

    def _are_numbers_ambiguous(self) -> bool:
        """Whether the numbers are ambiguous, as in `3 favourite colour` or `favourite number 2`."""
        if self._has_number_behind and not (self._is_favorite and self._words):
            return True
        is_one = self._language == ENGLISH and bool(self._words) and not self._is_plural()
        return self._top is not None and (self._top == 0 or bool(self._ranks) or (is_one and self._top != 1))

    def _is_plural(self) -> bool:
        return self._language == ENGLISH and bool(self._words) and is_plural(self._words[-1])

    def _take_leading_phrase(self) -> bool:
        phrase = self._longest_phrase_at_beginning(f"{self._table.listing},{self._table.leads}")
        if not phrase:
            return False
        self._has_lead = True
        self._is_list |= phrase in _load_phrases(self._table.listing)
        del self._words[: len(phrase)]
        return True

    def _take_words_after_topic(self) -> None:
        """Take what follows the topic: `of mine`, `number 3`."""
        self._is_own |= self._drop_phrase_at_end(self._table.owners_behind)
        end = len(self._words)
        for place in range(max(end - 3, 1), end):
            number, length = parse_ordinal_at(self._words, place, self._language) or (0, 0)
            has_mark = length > 1 or self._words[place][0] in "#№"
            if length == end - place and has_mark:
                self._ranks.append(number)
                self._has_number_behind = True
                del self._words[place:]
                return

    def _move_topic_to_end(self) -> None:
        """Make `colour is my second favourite` into `my second favourite colour`."""
        own = load_fact_words()[self._language]
        last = self._words[-1] if self._has_lead and self._words else ""
        is_behind = last in own.favorite_behind.split()
        if not (is_behind or last in f"{own.favorite} {own.favorite_prefixes}".split()):
            return
        copulas = self._table.copulas.split()
        place = next((at for at, word in enumerate(self._words) if at and word in copulas), None)
        if place is not None:
            topic, rest = self._words[:place], self._words[place + 1 :]
            end = len(rest) - is_behind
            self._words = [*rest[:end], *topic, *rest[end:]]

    def _take_word_before_topic(self) -> bool:
        """Take a word or phrase before the topic; return False where the topic starts."""
        if self._take_number_of_best() or self._take_rank():
            return True
        for table in (self._owners, self._table.every, self._table.fillers):
            if phrase := self._longest_phrase_at_beginning(table):
                self._is_own |= table == self._owners
                self._is_list |= table == self._table.every
                self._drop_first_words(len(phrase))
                return True
        return self._take_word_for_favorite()

    def _take_number_of_best(self) -> bool:
        """Take `top 3`, `first three`, or a number before "favourite"; return whether there was one."""
        if self._top is not None or self._ranks or self._is_favorite:
            return False
        for phrase in (self._longest_phrase_at_beginning(self._table.top), ()):
            place = len(phrase)
            number = parse_number(self._words[place], self._language) if place < len(self._words) else None
            if number is not None:
                self._top = number
                self._drop_first_words(place + 1)
                return True
        return False

    def _take_rank(self) -> bool:
        """Take an ordinal, or `most` before "favourite"; return whether there was one."""
        if self._is_favorite:
            return False
        place = 1 if self._ranks and (self._words[0],) in _load_phrases(self._table.joints) else 0
        ordinal = parse_ordinal_at(self._words, place, self._language) if place < len(self._words) else None
        if ordinal is None and not self._ranks and (self._words[0],) in _load_phrases(self._table.first):
            ordinal = 1, 1
            self._is_most = True
        if ordinal is None or (self._ranks and not place):
            return False
        self._ranks.append(ordinal[0])
        self._drop_first_words(place + ordinal[1])
        return True

    def _take_word_for_favorite(self) -> bool:
        word = self._words[0]
        if self._is_favorite or word not in load_fact_words()[self._language].favorite.split():
            return False
        self._is_favorite = True
        self._is_list |= self._language == ENGLISH and len(self._words) == 1 and word.endswith("s")
        self._drop_first_words(1)
        return True

    def _strip_my_and_favorite(self) -> None:
        """Strip "my" and "favourite" from the topic's words: `lempivärini`, `color favorito`."""
        if not self._words:
            return
        last = self._words[-1]
        self._words[-1] = strip_possessive(last, self._language)
        self._is_own |= self._words[-1] != last
        part = strip_word_for_favorite(self._words, self._language)
        if part is not None and not self._is_favorite:
            self._is_favorite, self._words = True, part

    def _longest_phrase_at_beginning(self, table: str) -> tuple[str, ...]:
        """Return the longest phrase of `table` that the remaining words start with, or ()."""
        return next((p for p in _load_phrases(table) if tuple(self._words[: len(p)]) == p), ())

    def _drop_first_words(self, number: int) -> None:
        self._is_list |= any(word in self._table.plural.split() for word in self._words[:number])
        del self._words[:number]

    def _drop_phrase_at_end(self, table: str) -> bool:
        for phrase in _load_phrases(table):
            if len(self._words) > len(phrase) and tuple(self._words[-len(phrase) :]) == phrase:
                del self._words[-len(phrase) :]
                return True
        return False


@cache
def _load_phrases(table: str) -> tuple[tuple[str, ...], ...]:
    """Return the phrases of a table, each as a tuple of words, longest first."""
    phrases = (tuple(phrase.split()) for phrase in language_files.split_phrases(table))
    return tuple(sorted(phrases, key=len, reverse=True))


def _split_words(text: str) -> list[str]:
    """Return the folded words of a question, stripped of punctuation except in `#2`, `'s` and `2.`."""
    folded = fold_visible_characters(text).replace("’", "'")
    parts = re.split(_SPACES, re.sub(_MINUS, "minus", re.sub(_ENDING_HYPHEN, "", folded)))
    words = [word for word in parts if word.strip(_AROUND)]
    return [_strip_punctuation(word, is_last=place == len(words)) for place, word in enumerate(words, 1)]


def _strip_punctuation(word: str, *, is_last: bool) -> str:
    if not is_last and re.fullmatch(r"\d+\.", word):
        return word
    return word.strip(_AROUND).strip("'") or word
