"""Takes a question of facts apart, by tables of words and by no model.

A question is understood only where every word of it is accounted for. docs/memory/facts.md says what is
understood.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from memlog.projector.text import language_files
from memlog.projector.text.stemming import ENGLISH
from memlog.query.facts.ordinals import number_of, ordinal_at
from memlog.query.facts.topic_keys import fact_words, favorite_part, is_plural, without_owner

LONGEST = 1000
"""Characters of a question that is looked at."""

_APART = re.compile(r"(?<=\d)-(?=[а-яё]{1,3}\b)")
_MINUS = re.compile(r"(?<!\w)[-−](?=\d)")
_SPACES = re.compile(r"[\s\-‐-―_/]+")
_AROUND = '.,:;!?"`«»“”„()[]{}*…¿¡'
_POSSESSIVE = re.compile(r"'s$|s'$")


class Question(msgspec.Struct, frozen=True):
    """What a question asks for.

    language: in which it was understood.
    words: that name the topic, without those that say that it is a favourite one; none for the one set last.
    is_favorite: whether they say so.
    ranks: places in the list. top: so many from its beginning. is_list: all of it.
    names: of the topic, where a whole question is known to ask for it; then there are no words.
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
        """Whether the topic set last is not meant."""
        return bool(self.words or self.names)

    @property
    def name(self) -> str:
        """The topic, for people."""
        said = [*(["favorite"] if self.is_favorite else []), *self.words]
        return repr(" ".join(said or self.names[:1]))


def understood(text: str) -> Iterator[Question]:
    """What a text may ask for; nothing where some of it is not understood."""
    words = _words(text) if len(text) <= LONGEST else []
    for language in _languages_of("".join(words)):
        question = _Reader(words, language).question()
        if question is not None:
            yield question


def _languages_of(text: str) -> Sequence[str]:
    """The languages of whose script `text` has a letter; else those in Latin letters."""
    scripts = {name: language_files.languages("text")[name].text.characters for name in fact_words()}
    has_letter = {
        name: any(start <= ord(letter) <= end for letter in text for start, end in script)
        for name, script in scripts.items()
    }
    return [name for name in scripts if has_letter[name]] or [name for name in scripts if not scripts[name]]


class _Reader:
    """Reads the words of a question from both ends."""

    def __init__(self, words: Sequence[str], language: str) -> None:
        self._words = list(words)
        self._language = language
        self._said = fact_words()[language].question
        self._is_led = self._is_own = self._is_list = self._is_favorite = False
        self._ranks: list[int] = []
        self._top: int | None = None
        self._is_numbered_behind = self._is_most = False

    def question(self) -> Question | None:
        """What they ask for; None where that is not certain."""
        while True:
            names = self._said.idioms.get(" ".join(self._words))
            if names is not None:
                return Question(self._language, names=language_files.phrases(names))
            if not self._take_lead():
                break
        while self._drop_end(self._said.tails):
            pass
        self._take_end()
        while self._words and self._take_word():
            pass
        self._take_from_topic()
        if self._is_most and (self._is_list or self._is_plural()):
            # `my most favourite colours` are all of them.
            self._ranks, self._is_list = [], True
        return self._checked()

    def _checked(self) -> Question | None:
        # Without a topic one sign is too little: `show me the second` may be of anything.
        is_of_last = self._is_led and sum((self._is_own, self._is_favorite, bool(self._ranks))) > 1
        is_of_somebody = self._language == ENGLISH and any(map(_POSSESSIVE.search, self._words))
        is_asked = self._is_own or self._is_favorite or is_of_somebody
        if not ((self._words or is_of_last) and is_asked) or self._is_doubtful():
            return None
        return Question(
            self._language,
            words=tuple(self._words),
            is_favorite=self._is_favorite,
            ranks=tuple(self._ranks),
            top=self._top,
            is_list=self._is_list,
        )

    def _is_doubtful(self) -> bool:
        """Whether its numbers can be read in two ways: `3 favourite colour`, `favourite number 2`."""
        is_counted = self._top is not None
        is_one = self._language == ENGLISH and bool(self._words) and not self._is_plural()
        return (
            self._top == 0
            or (is_counted and bool(self._ranks))
            or (is_counted and is_one and self._top != 1)
            or (self._is_numbered_behind and not (self._is_favorite and self._words))
        )

    def _is_plural(self) -> bool:
        return self._language == ENGLISH and bool(self._words) and is_plural(self._words[-1])

    def _take_lead(self) -> bool:
        for phrase in _phrases(f"{self._said.listing},{self._said.leads}"):
            if tuple(self._words[: len(phrase)]) == phrase:
                self._is_led = True
                self._is_list |= phrase in _phrases(self._said.listing)
                del self._words[: len(phrase)]
                return True
        return False

    def _take_end(self) -> None:
        """Take what stands behind the topic: `of mine`, `number 3`."""
        self._is_own |= self._drop_end(self._said.owners_behind)
        for place in range(max(len(self._words) - 3, 0), len(self._words)):
            found = ordinal_at(self._words, place, self._language)
            if (
                found
                and place
                and place + found[1] == len(self._words)
                and found[1] > 1 - self._is_signed(place)
            ):
                self._ranks.append(found[0])
                self._is_numbered_behind = True
                del self._words[place:]
                return

    def _is_signed(self, place: int) -> bool:
        return self._words[place][0] in "#№"

    def _take_word(self) -> bool:
        """Take one word or phrase that stands before the topic; False where the topic begins."""
        if self._take_top() or self._take_rank():
            return True
        for table, take in (
            (self._said.owners, self._own),
            (self._said.every, self._every),
            (self._said.fillers, None),
        ):
            for phrase in _phrases(table):
                if tuple(self._words[: len(phrase)]) == phrase:
                    if take is not None:
                        take()
                    self._drop(len(phrase))
                    return True
        return self._take_favorite()

    def _own(self) -> None:
        self._is_own = True

    def _every(self) -> None:
        self._is_list = True

    def _take_top(self) -> bool:
        """Take `top 3`, `first three`, or a number before the favourite."""
        if self._top is not None or self._ranks or self._is_favorite:
            return False
        for phrase in (*_phrases(self._said.top), ()):
            end = len(phrase)
            if tuple(self._words[:end]) == phrase and end < len(self._words):
                number = number_of(self._words[end], self._language)
                if number is not None:
                    self._top = number
                    self._drop(end + 1)
                    return True
        return False

    def _take_rank(self) -> bool:
        """Take an ordinal, or `most` before the favourite."""
        if self._is_favorite:
            return False
        place = 1 if self._ranks and (self._words[0],) in _phrases(self._said.joints) else 0
        found = ordinal_at(self._words, place, self._language) if place < len(self._words) else None
        if found is None and not self._ranks and (self._words[0],) in _phrases(self._said.first):
            found = 1, 1
            self._is_most = True
        if found is None or (self._ranks and not place):
            return False
        self._ranks.append(found[0])
        self._drop(place + found[1])
        return True

    def _take_favorite(self) -> bool:
        if self._is_favorite:
            return False
        self._is_favorite = self._words[0] in fact_words()[self._language].favorite.split()
        if self._is_favorite:
            self._is_list |= self._language == ENGLISH and len(self._words) == 1 and self._words[0][-1] == "s"
            self._drop(1)
        return self._is_favorite

    def _take_from_topic(self) -> None:
        """Take what the topic's own words say, and what stands behind it: `lempivärini`, `color favorito`."""
        if not self._words:
            return
        last = self._words[-1]
        self._words[-1] = without_owner(last, self._language)
        self._is_own |= self._words[-1] != last
        part = favorite_part(self._words, self._language)
        if part is not None and not self._is_favorite:
            self._is_favorite, self._words = True, part

    def _drop(self, number: int) -> None:
        self._is_list |= any(word in self._said.plural.split() for word in self._words[:number])
        del self._words[:number]

    def _drop_end(self, table: str) -> bool:
        for phrase in _phrases(table):
            if len(self._words) > len(phrase) and tuple(self._words[-len(phrase) :]) == phrase:
                del self._words[-len(phrase) :]
                return True
        return False


@cache
def _phrases(table: str) -> tuple[tuple[str, ...], ...]:
    """The phrases of a table as words, the longest first."""
    found = (tuple(phrase.split()) for phrase in language_files.phrases(table))
    return tuple(sorted(found, key=len, reverse=True))


def _words(text: str) -> list[str]:
    """The words of a question, folded, without the signs around them; but `2.` within, `#2` and `'s` stay."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    seen = "".join(letter for letter in folded.replace("’", "'") if unicodedata.category(letter) != "Cf")
    words = [word for word in _SPACES.split(_MINUS.sub("minus", _APART.sub("", seen))) if word.strip(_AROUND)]
    return [_bare(word, is_last=place == len(words) - 1) for place, word in enumerate(words)]


def _bare(word: str, *, is_last: bool) -> str:
    if not is_last and re.fullmatch(r"\d+\.", word):
        return word
    return word.strip(_AROUND).strip("'") or word
