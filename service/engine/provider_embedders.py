"""Embeddings from a provider: Ollama, or a server with an OpenAI-compatible `/v1/embeddings`."""

import base64
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from memlog.eventlog.errors import EmbeddingError, ProviderError
from memlog.eventlog.secrets.outgoing import encode_outgoing
from memlog.eventlog.sections import OLLAMA_MODEL, OLLAMA_URL, EmbeddingProvider
from memlog.projector.embedding.models import Kind, scale_to_unit_length
from memlog.service.engine.http_client import (
    Breaker,
    late_error,
    provider_error,
    send_in_known_forms,
    send_with_retries,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_INSTRUCTION = "Instruct: Given a question, retrieve passages that answer it\nQuery: "


class Prefixes(NamedTuple):
    """The prefixes for questions and for passages."""

    query: str
    passage: str


_KNOWN_PREFIXES = (
    (("nomic", "embed", "text"), Prefixes("search_query: ", "search_document: ")),
    (("e5", "instruct"), Prefixes(_INSTRUCTION, "")),
    (("e5",), Prefixes("query: ", "passage: ")),
)
"""Prefixes by words in the model's name: https://huggingface.co/nomic-ai/nomic-embed-text-v1.5,
https://huggingface.co/intfloat/multilingual-e5-large-instruct,
https://huggingface.co/intfloat/e5-small-v2."""

_UNNAMED_PREFIXES = (_KNOWN_PREFIXES[0][1], _KNOWN_PREFIXES[2][1])
"""The prefixes known to the first version: model ids keep their old mark, so that old vectors stay valid."""


def choose_prefixes(provider: EmbeddingProvider, model: str) -> Prefixes:
    """Return the prefixes in the settings; for each one not set, the prefix known for the model."""
    words = re.split(r"[^a-z0-9]+", model.lower())
    known = next((both for name, both in _KNOWN_PREFIXES if {*name} <= {*words}), Prefixes("", ""))
    given = (provider.query_prefix, provider.passage_prefix)
    return Prefixes(*(own if own is not None else usual for own, usual in zip(given, known, strict=True)))


def mark_of_prefixes_in_id(prefixes: Prefixes) -> str:
    """Return the part of a model's id that identifies its prefixes; only equal ids are comparable."""
    if not any(prefixes):
        return ""
    if prefixes in _UNNAMED_PREFIXES:
        return "/prefixed"
    return f"/prefixed-{sha256(repr(tuple(prefixes)).encode()).hexdigest()[:8]}"


Vector = list[float]

_MAX_LENGTH = 1e30
"""The greatest length of a vector that fits float32, with a margin."""


def read_vectors(answer: Any, count: int) -> list[Vector | None] | None:  # noqa: ANN401 - JSON
    """Return the texts' vectors, None for one without direction; or None if they do not match the texts.

    The vectors come in the order of the texts, or are numbered from 0 or 1.
    """
    entries = _find_vectors(answer)
    if entries is None or not 0 < len(entries) <= count:
        return None
    places = _match_indexes(
        [each.get("index") if isinstance(each, dict) else None for each in entries], count
    )
    if places is None:
        return None
    found: list[Vector | None] = [None] * count
    for place, entry in zip(places, entries, strict=True):
        found[place] = _read_vector(entry.get("embedding") if isinstance(entry, dict) else entry)
    return found


def _find_vectors(answer: Any) -> list[Any] | None:  # noqa: ANN401 - JSON
    """Return the vectors in an answer of OpenAI, Ollama or text-embeddings-inference; None if it has none."""
    if isinstance(answer, dict):
        if isinstance(alone := answer.get("embedding"), list | str):  # Ollama before 0.3.4
            return [alone]
        answer = answer.get("data", answer.get("embeddings"))
    return answer if isinstance(answer, list) else None


def _match_indexes(numbers: Sequence[Any], count: int) -> Sequence[int] | None:
    """Return the index of each entry's text; None if that is ambiguous."""
    read = []
    for number in numbers:
        with suppress(TypeError, ValueError, OverflowError):
            read.append(int(number))
    if len(read) == len(numbers) == len({*read}):
        if min(read) >= 0 and max(read) < count and (0 in read or len(read) == count):
            return read
        if min(read) >= 1 and max(read) == count:
            return [number - 1 for number in read]
    return range(count) if len(numbers) == count else None


def _read_vector(given: Any) -> Vector | None:  # noqa: ANN401 - JSON
    """Return the numbers of a vector; None if it has no direction or overflows float32."""
    if isinstance(given, str):
        given = _decode_vector_text(given)
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], list):
        given = given[0]  # llama.cpp without pooling
    if not isinstance(given, list) or not given:
        return None
    try:
        numbers = [float(each) for each in given]
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if 0 < math.hypot(*numbers) < _MAX_LENGTH else None


def _decode_vector_text(text: str) -> list[Any] | None:
    """Decode a JSON list, or base64-encoded float32 values."""
    with suppress(ValueError, RecursionError):
        if text.lstrip().startswith("["):
            given = json.loads(text)
            return given if isinstance(given, list) else None
        import numpy as np

        numbers: list[Any] = np.frombuffer(base64.b64decode(text, validate=True), "<f4").tolist()
        return numbers
    return None


CONTROL = "dimension"
"""A text that any working provider can embed: if it succeeds, a failing text is itself at fault."""

_REFUSES_A_TEXT = (400, 413, 422)
_PROVIDER_STATUSES = (401, 429)
"""Statuses that never depend on the text. Any other may, as a content filter can use any status."""

_TOO_LONG = re.compile(
    r"too (?:large|long|many)|context|exceed|maximum|less than|longer than|token limit", re.IGNORECASE
)
"""Matches how providers report that a text is too long."""

_SHORTEST_PART = 200
"""The length in characters below which a refused text is not split further."""


AskVectors = Callable[[list[str], bool], "Sequence[Vector | ProviderError]"]
"""Requests vectors from a provider: returns a vector or an error for each text. The second argument says
whether the texts were already sent in a larger request."""


class EmbeddingRun:
    """Embeds texts with a provider.

    found: the vectors, keyed by text. refused: the errors, keyed by text.
    most: the largest number of texts that the provider has embedded in one request without a timeout.
    is_brief: whether someone is waiting, so that a timeout is not retried in parts.
    """

    def __init__(self, ask: AskVectors, *, most: int, is_brief: bool) -> None:
        self.found: dict[str, NDArray[np.float32]] = {}
        self.refused: dict[str, ProviderError] = {}
        self.most = most
        self._ask, self._is_brief = ask, is_brief
        self._is_working = False

    def embed(self, texts: Sequence[str], *, is_part: bool = False) -> None:
        """Embed texts. Bisect a batch that fails as a whole, and retry texts that fail alone.

        Raises:
            ProviderError: the provider embeds nothing.
        """
        found, errors = self._try_texts(texts, is_part=is_part)
        self.found |= found
        if not errors:
            return
        error = next(iter(errors.values()))
        if len(texts) == 1:
            self._embed_failed_text(texts[0], error)
        elif found:
            self._is_working = True
            for text in errors:
                self.embed([text], is_part=True)
        else:
            self._check_provider_embeds_control(error, is_first=not is_part)
            middle = len(texts) // 2
            self.embed(texts[:middle], is_part=True)
            self.embed(texts[middle:], is_part=True)
            if error.is_late and self.refused.keys().isdisjoint(texts):
                self.most = min(self.most, middle)

    def _embed_failed_text(self, text: str, error: ProviderError) -> None:
        if text == CONTROL:
            raise _mark_provider_error(error)
        if _can_be_sent_in_parts(error, text):
            found = self._embed_halves(text)
            if not isinstance(found, ProviderError):
                self.found[text] = found
                return
            error = found
        self._check_provider_embeds_control(error, is_first=True)
        self.refused[text] = error

    def _embed_halves(self, text: str) -> "NDArray[np.float32] | ProviderError":
        """Return the mean of the vectors of a text's halves, or the error for one half."""
        import numpy as np

        middle = len(text) // 2
        halves = []
        for half in (text[:middle], text[middle:]):
            found, errors = self._try_texts([half], is_part=True)
            if errors and not _can_be_sent_in_parts(errors[half], half):
                return errors[half]
            vector = self._embed_halves(half) if errors else found[half]
            if isinstance(vector, ProviderError):
                return vector
            halves.append(vector)
        mean: NDArray[np.float32] = np.mean(halves, axis=0)
        return mean

    def _try_texts(
        self, texts: Sequence[str], *, is_part: bool
    ) -> "tuple[dict[str, NDArray[np.float32]], dict[str, ProviderError]]":
        """Return the texts' vectors, and the errors of the texts that failed."""
        import numpy as np

        try:
            answers = self._ask(list(texts), is_part)
        except ProviderError as error:
            if not self._may_be_fault_of_texts(error):
                raise
            return {}, dict.fromkeys(texts, error)
        found, errors = {}, {}
        for text, answer in zip(texts, answers, strict=True):
            if isinstance(answer, ProviderError):
                errors[text] = answer
            else:
                found[text] = np.array(answer, dtype=np.float32)
        return found, errors

    def _may_be_fault_of_texts(self, error: ProviderError) -> bool:
        if error.is_of_answer or error.status in _REFUSES_A_TEXT or _says_too_long(error):
            return True
        has_status = error.status is not None and error.status not in _PROVIDER_STATUSES
        return not self._is_brief and (error.is_late or error.is_away or has_status)

    def _check_provider_embeds_control(self, error: ProviderError, *, is_first: bool) -> None:
        """Check that the provider embeds a control text, unless it has already embedded one.

        is_first: whether to check again unless the error is a refusal, because the provider may have gone
            down since.
        """
        is_refusal = error.is_of_answer or error.status in _REFUSES_A_TEXT
        if self._is_working and (is_refusal or not is_first):
            return
        _, errors = self._try_texts([CONTROL], is_part=True)
        if errors:
            raise _mark_provider_error(errors[CONTROL])
        self._is_working = True


def _mark_provider_error(error: ProviderError) -> ProviderError:
    """Mark an error as one that does not depend on the text."""
    error.is_of_answer = False
    return error


def _says_too_long(error: ProviderError) -> bool:
    is_told = error.status in (*_REFUSES_A_TEXT, 500) and _TOO_LONG.search(error.words)
    return bool(is_told) or error.status == 413


def _can_be_sent_in_parts(error: ProviderError, text: str) -> bool:
    """Whether a provider refused a text because of its length, and the text can still be divided."""
    return _says_too_long(error) and len(text) >= _SHORTEST_PART


RetryPolicy = Literal["question", "background", "once", "command"]
"""The caller that waits for a provider: a question, up to the provider's timeout; a background job, which
retries later; an examination, which asks once even if the provider rests; a command, which retries."""

_WAITS = (1.0, 4.0, 15.0)
"""Seconds before each retry of a command."""


class RemoteEmbedder:
    """Embeds with a provider. https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings,
    https://platform.openai.com/docs/api-reference/embeddings

    All requests for one question share a timeout; the first may learn the dimension.
    """

    is_remote = True

    def __init__(self, provider: EmbeddingProvider, breaker: Breaker, patience: RetryPolicy) -> None:
        self._provider, self._breaker, self._patience = provider, breaker, patience
        self._until = time.monotonic() + provider.timeout if patience == "question" else None
        kind = "ollama" if provider.type == "auto" else provider.type
        self._name = name = provider.model or OLLAMA_MODEL
        self._dimension = provider.dimension or breaker.read_record().dimension
        self._batch = provider.batch
        self._prefixes = choose_prefixes(provider, name)
        self._label = f"{kind}/{name}{mark_of_prefixes_in_id(self._prefixes)}"
        self._send: Callable[[list[str], float], list[Vector | None]] = (
            self._ask_ollama if kind == "ollama" else self._ask_api
        )

    @property
    def dimension(self) -> int:
        """The length of the vectors, requested from the provider if it is unknown.

        Raises:
            EmbeddingError: the provider does not answer.
        """
        if self._dimension is None:
            self.embed([CONTROL], "query")
        assert self._dimension is not None
        return self._dimension

    @property
    def id(self) -> str:
        """Provider, model and dimension, such as ollama/all-minilm:l6-v2/384."""
        return f"{self._label}/{self.dimension}"

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        prefix = self._prefixes.passage if kind == "passage" else self._prefixes.query
        is_brief = self._patience in ("question", "once")
        run = EmbeddingRun(partial(self._embed_with_prefix, prefix), most=self._batch, is_brief=is_brief)
        wanted = list(dict.fromkeys(texts))
        try:
            while wanted:
                batch, wanted = wanted[: run.most], wanted[run.most :]
                run.embed(batch)
                self._batch = run.most
        except ProviderError as error:
            self._breaker.record_failure(error)
            raise self._embedding_error(error, run, is_of_texts=False) from error
        if run.refused:
            raise self._embedding_error(next(iter(run.refused.values())), run, is_of_texts=True)
        return scale_to_unit_length([run.found[text] for text in texts])

    def _embedding_error(
        self, error: ProviderError, run: EmbeddingRun, *, is_of_texts: bool
    ) -> EmbeddingError:
        failure = EmbeddingError(error.message, hint=error.hint, retryable=error.retryable)
        failure.said = error.said
        failure.refused, failure.is_of_texts = frozenset(run.refused), is_of_texts
        if run.found:
            rows = scale_to_unit_length([*run.found.values()])
            failure.embedded = {text: row.tobytes() for text, row in zip(run.found, rows, strict=True)}
        return failure

    def _embed_with_prefix(
        self, prefix: str, texts: list[str], is_part: bool
    ) -> Sequence[Vector | ProviderError]:
        if self._patience in ("question", "background"):
            self._breaker.check_available()
        answers = send_with_retries(
            lambda: self._send([prefix + text for text in texts], self._seconds_left()),
            _WAITS if self._patience == "command" else (),
            lambda error: (error.is_away and not is_part) or error.status in (429, 503),
        )
        checked = [self._check_vector(vector) for vector in answers]
        if any(not isinstance(each, ProviderError) for each in checked):
            self._breaker.record_success(self._dimension)
        return checked

    def _seconds_left(self) -> float:
        if self._until is None:
            return self._provider.timeout
        left = self._until - time.monotonic()
        if left <= 0:
            raise late_error(self._url, self._provider.timeout)
        return left

    def _check_vector(self, vector: Vector | None) -> Vector | ProviderError:
        if vector is None:
            return self._unusable_answer("a vector is missing, not finite or all zeros")
        self._dimension = self._dimension or len(vector)
        if len(vector) != self._dimension:
            return self._unusable_answer(
                f"a vector of dimension {len(vector)} instead of {self._dimension}",
                hint="set embedding.dimension to the dimension of the model",
            )
        return vector

    def _unusable_answer(self, why: str, hint: str = "") -> ProviderError:
        return provider_error(f"{self._url}: {why}", hint, is_of_answer=True)

    @property
    def _url(self) -> str:
        return (self._provider.base_url or OLLAMA_URL).rstrip("/")

    def _request_vectors(self, path: str, body: dict[str, Any], seconds: float) -> list[Vector | None]:
        texts = body.get("input", [""])
        vectors = read_vectors(
            self._breaker.make_endpoint(self._url + path).post_and_decode_json(
                encode_outgoing(body), seconds
            ),
            len(texts),
        )
        if vectors is None:
            raise self._unusable_answer(f"the answer does not have {len(texts)} vectors")
        return vectors

    def _ask_ollama(self, texts: list[str], seconds: float) -> list[Vector | None]:
        # A truncated text would not be found by its end; it is embedded in halves instead.
        body = {"model": self._name, "input": texts, "truncate": False}
        started = time.monotonic()
        try:
            return self._request_vectors("/api/embed", body, seconds)
        except ProviderError as error:
            # Ollama before 0.3.4 has only the other path, which takes one text.
            if error.status != 404 or "not found, try" in error.said:
                raise
            vectors = []
            for text in texts:
                left = max(0.1, seconds - (time.monotonic() - started))
                vectors += self._request_vectors(
                    "/api/embeddings", {"model": self._name, "prompt": text}, left
                )
            return vectors

    def _ask_api(self, texts: list[str], seconds: float) -> list[Vector | None]:
        path = "/embeddings" if urlsplit(self._url).path.strip("/") else "/v1/embeddings"
        body = {"model": self._name, "input": texts, "encoding_format": "float"}
        forms = {"encoding_format": self._provider.encoding_format}
        return send_in_known_forms(
            self._breaker, body, forms, lambda sent: self._request_vectors(path, sent, seconds)
        )
