"""Whether the models work that a store is to use; each provider is asked once."""

from memlog.eventlog.errors import EmbeddingError, ProviderError
from memlog.service.embedding_models import NoModel
from memlog.service.maintenance.findings import Finding
from memlog.service.providers.language_model import LanguageModel
from memlog.service.providers.settings import LanguageModelProvider
from memlog.service.read_model import ReadModel
from memlog.service.searches import reranker_of


def examine_models(read_model: ReadModel, language_model: LanguageModelProvider | None) -> list[Finding]:
    """What is found of the embedding model, and of the provider that ranks and the language model, if any."""
    return [_model(read_model), *_rerank(read_model), *_language(read_model, language_model)]


def _model(read_model: ReadModel) -> Finding:
    try:
        embedder = read_model.model.embedder("once")
    except EmbeddingError as error:
        if isinstance(read_model.model, NoModel):
            return Finding("model", "ok", error.message)
        return Finding(
            "model", "warning", error.message, error.hint or "name a model that works: model=FOLDER"
        )
    if embedder.is_remote:
        try:
            embedder.embed(["Does it answer?"], "query")
        except EmbeddingError as error:
            return Finding("model", "warning", error.message, error.hint)
    return Finding("model", "ok", embedder.id)


def _language(read_model: ReadModel, provider: LanguageModelProvider | None) -> list[Finding]:
    """Ask the language model for next to nothing; [] without one."""
    if provider is None:
        return []
    try:
        LanguageModel(provider, read_model.path).complete_once("Answer with {}", "{}", {"type": "object"})
    except ProviderError as error:
        return [Finding("language model", "warning", error.message, error.hint)]
    return [Finding("language model", "ok", f"{provider.name} answers")]


def _rerank(read_model: ReadModel) -> list[Finding]:
    """Ask the provider once; [] where nobody ranks."""
    rerank = reranker_of(read_model, lambda _: True, has_key=False)
    if rerank is None:
        return []
    try:
        rerank.order("Does it answer?", ["It does.", "It does not."], though_it_rests=True)
    except ProviderError as error:
        return [Finding("rerank", "warning", error.message, error.hint)]
    return [Finding("rerank", "ok", "it answers")]
