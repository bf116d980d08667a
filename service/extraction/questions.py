"""Puts questions to a language model, and appends what becomes of its answers."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from memlog.eventlog import timestamps
from memlog.eventlog.acknowledgements import Position
from memlog.eventlog.envelope import Event
from memlog.eventlog.errors import BadInput, LogError
from memlog.service.providers.language_model import Completion, LanguageModel

A = TypeVar("A")


class Questions:
    """Questions to one model.

    append: makes events durable. rests: whether the model rests after an answer that is of no use; not where
        each question is asked once a day at most.
    """

    def __init__(
        self, model: LanguageModel, append: Callable[[Sequence[Event]], list[Position]], *, rests: bool = True
    ) -> None:
        self._model, self._append, self._rests = model, append, rests

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._model.name

    def ask(
        self, system: str, user: str, schema: dict[str, Any], read: Callable[[str], A | None]
    ) -> tuple[A, Completion]:
        """The answer of the model, and what it took. Asks once more if the first answer is of no use.

        read: makes something of an answer; None where it is of no use.

        Raises:
            ProviderError: the model fails, or gives no usable answer twice.
        """
        made = self._model.complete(system, user, schema)
        answer = read(made.text)
        if answer is None:
            again = f"{user}\n\nThe last answer was not the JSON object. Answer with the JSON object alone."
            more = self._model.complete(system, again, schema)
            made = made.and_then(more)
            answer = read(made.text)
        if answer is None:
            raise self._model.failed(
                "it answered twice with something else than the JSON object", rests=self._rests
            )
        return answer, made

    def give_up(self, name: str) -> None:
        """Record that the model gave no usable answer for this name. Nobody asks again today."""
        self._model.give_up(_of_today(name))

    def is_given_up(self, name: str) -> bool:
        """Whether the model gave no usable answer today, in this process or another one."""
        return self._model.is_given_up(_of_today(name))

    def append(self, events: Sequence[Event]) -> None:
        """Append what became of an answer. Where that fails, the model rests: it was paid for nothing."""
        try:
            self._append(events)
        except BadInput:  # whose message quotes the answer
            raise self._model.failed("its answer could not be stored") from None
        except LogError as error:
            self._model.failed(f"its answer could not be stored: {error.message}")
            raise
        self._model.worked()


def _of_today(name: str) -> str:
    return f"{timestamps.today()}/{name}"
