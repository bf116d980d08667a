"""Embeds texts of which some cannot be embedded: what fails is halved, until one text is at fault."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from memlog.eventlog.errors import ProviderError
from memlog.service.providers.vector_answers import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONTROL = "dimension"
"""What a provider embeds if it works: another text that fails is at fault itself."""

_REFUSES_A_TEXT = (400, 413, 422)
_OF_PROVIDER = (401, 429)
"""Statuses that are of no text. Any other may be, where the provider embeds others: a filter has its own."""

_TOO_LONG = re.compile(
    r"too (?:large|long|many)|context|exceed|maximum|less than|longer than|token limit", re.IGNORECASE
)
"""How providers say that a text is too long."""

_SHORTEST_PART = 200
"""Characters of a text that is not split further where a provider refuses it."""


class Answered(Protocol):
    """Asks a provider for the vectors of texts. A text may have an error in the place of its vector."""

    def __call__(self, texts: list[str], *, is_part: bool) -> "Sequence[Vector | ProviderError]":
        """See the class. is_part: whether it was asked for them among others before."""


class EmbeddingRun:
    """Embeds texts by a provider.

    found: the vectors. refused: the texts without one, and why. most: texts that it embeds in time.
    is_brief: whether somebody waits, who does not want what takes too long to be tried again in parts.
    """

    def __init__(self, answered: Answered, *, most: int, is_brief: bool) -> None:
        self.found: dict[str, NDArray[np.float32]] = {}
        self.refused: dict[str, ProviderError] = {}
        self.most = most
        self._answered, self._is_brief = answered, is_brief
        self._is_working = False

    def take(self, texts: Sequence[str], *, is_part: bool = False) -> None:
        """Embed texts, each of them or half of them alone where they fail together.

        Raises:
            ProviderError: the provider embeds nothing.
        """
        found, errors = self._tried(texts, is_part=is_part)
        self.found |= found
        if not errors:
            return
        error = next(iter(errors.values()))
        if len(texts) == 1:
            self._take_alone(texts[0], error)
        elif found:
            self._is_working = True
            for text in errors:
                self.take([text], is_part=True)
        else:
            self._check_provider(error, is_first=not is_part)
            middle = len(texts) // 2
            self.take(texts[:middle], is_part=True)
            self.take(texts[middle:], is_part=True)
            if error.is_late and self.refused.keys().isdisjoint(texts):
                self.most = min(self.most, middle)

    def _take_alone(self, text: str, error: ProviderError) -> None:
        if text == CONTROL:
            raise _of_provider(error)
        if _is_too_long(error, text):
            found = self._of_halves(text)
            if not isinstance(found, ProviderError):
                self.found[text] = found
                return
            error = found
        self._check_provider(error, is_first=True)
        self.refused[text] = error

    def _of_halves(self, text: str) -> "NDArray[np.float32] | ProviderError":
        """The mean of the vectors of both halves; why there is none."""
        import numpy as np

        middle = len(text) // 2
        halves = []
        for half in (text[:middle], text[middle:]):
            found, errors = self._tried([half], is_part=True)
            if errors and not _is_too_long(errors[half], half):
                return errors[half]
            vector = self._of_halves(half) if errors else found[half]
            if isinstance(vector, ProviderError):
                return vector
            halves.append(vector)
        mean: NDArray[np.float32] = np.mean(halves, axis=0)
        return mean

    def _tried(
        self, texts: Sequence[str], *, is_part: bool
    ) -> "tuple[dict[str, NDArray[np.float32]], dict[str, ProviderError]]":
        """The vectors of texts, and why others have none."""
        import numpy as np

        try:
            answers = self._answered(list(texts), is_part=is_part)
        except ProviderError as error:
            if not self._may_be_of_texts(error):
                raise
            return {}, dict.fromkeys(texts, error)
        found, errors = {}, {}
        for text, answer in zip(texts, answers, strict=True):
            if isinstance(answer, ProviderError):
                errors[text] = answer
            else:
                found[text] = np.array(answer, dtype=np.float32)
        return found, errors

    def _may_be_of_texts(self, error: ProviderError) -> bool:
        if error.is_of_answer or error.status in _REFUSES_A_TEXT or _says_too_long(error):
            return True
        has_status = error.status is not None and error.status not in _OF_PROVIDER
        return not self._is_brief and (error.is_late or error.is_away or has_status)

    def _check_provider(self, error: ProviderError, *, is_first: bool) -> None:
        """Have the control embedded, unless it was. is_first: whether the provider may be down since then."""
        is_refusal = error.is_of_answer or error.status in _REFUSES_A_TEXT
        if self._is_working and (is_refusal or not is_first):
            return
        _, errors = self._tried([CONTROL], is_part=True)
        if errors:
            raise _of_provider(errors[CONTROL])
        self._is_working = True


def _of_provider(error: ProviderError) -> ProviderError:
    """An error that any text gives."""
    error.is_of_answer = False
    return error


def _says_too_long(error: ProviderError) -> bool:
    is_told = error.status in (*_REFUSES_A_TEXT, 500) and _TOO_LONG.search(error.words)
    return bool(is_told) or error.status == 413


def _is_too_long(error: ProviderError, text: str) -> bool:
    """Whether a provider may take a text in smaller parts."""
    return _says_too_long(error) and len(text) >= _SHORTEST_PART
