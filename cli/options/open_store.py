"""Opens the command line's store, or just its log."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import memlog
from memlog.cli.options.settings import IN_FILE, VARIABLE, Settings
from memlog.cli.options.settings_schema import BY_NAME
from memlog.cli.output.output import STORED, note
from memlog.eventlog.errors import BadInput
from memlog.eventlog.limits import OLLAMA_URL, EmbeddingType
from memlog.eventlog.log.streams import shown
from memlog.eventlog.secrets.detection import masked

if TYPE_CHECKING:
    from memlog.eventlog.log.writer import Log
    from memlog.service.engine.ids import KnownIds


def embedding_of(settings: Settings) -> "memlog.EmbeddingProvider | None":
    """Return the embedding provider, or None to use the bundled model or the `model` setting.

    Raises:
        BadInput: a setting is invalid or missing.
    """
    values = {name: settings.find(f"embedding.{name}") for name in ("type", "enabled", "model")}
    kind: EmbeddingType = values["type"][0] if values["enabled"][0] else "none"
    is_classic = settings.value("retrieval.mode") == "classic"
    if settings.value("model") is not None or (is_classic and kind not in ("onnx", "none")):
        return None
    model, origin = values["model"]
    if kind == "onnx":
        if model is None and settings.value("embedding.base_url") is None:
            return None
        folder = Path(model or "").expanduser()
        model = str(settings.store / folder if origin == IN_FILE else folder) if model else None
    with _name_section_in_errors("embedding"):
        return memlog.EmbeddingProvider(
            type=kind,
            **_common_values(settings, "embedding") | {"model": model},
            dimension=settings.value("embedding.dimension"),
            **_section_values(
                settings, "embedding", "batch", "query_prefix", "passage_prefix", "encoding_format"
            ),
        )


def rerank_of(settings: Settings) -> "memlog.RerankProvider | None":
    """Return the reranking provider, or None.

    Raises:
        BadInput: a setting is invalid.
    """
    is_off = not settings.value("rerank.enabled") or settings.value("retrieval.mode") == "classic"
    if is_off or not _is_configured(settings, "rerank"):
        return None
    kind, top_n = settings.value("rerank.type"), settings.value("rerank.top_n")
    with _name_section_in_errors("rerank"):
        return memlog.RerankProvider(type=kind, **_common_values(settings, "rerank"), top_n=top_n)


def language_model_of(settings: Settings) -> "memlog.LanguageModelProvider | None":
    """Return the language model that distils conversations, or None.

    Raises:
        BadInput: a setting is invalid.
    """
    if not _is_configured(settings, "language_model"):
        return None
    parameters = ("max_tokens_parameter", "temperature", "response_format", "system_role")
    with _name_section_in_errors("language_model"):
        return memlog.LanguageModelProvider(
            **_common_values(settings, "language_model"),
            **_section_values(settings, "language_model", "type", "max_tokens", *parameters),
        )


def extraction_rules_of(settings: Settings) -> "memlog.ExtractionRules":
    """Return the rules for distilling conversations.

    Raises:
        BadInput: a setting is invalid.
    """
    rules = memlog.ExtractionRules
    return rules(**_section_values(settings, "extraction", *rules.__struct_fields__))


def job_rules_of(settings: Settings) -> "memlog.JobRules | None":
    """Return the times of jobs, or None for the defaults.

    Raises:
        BadInput: a setting is invalid.
    """
    names = {"daily": "jobs.daily", "weekly": "jobs.weekly", "timezone": "timezone"}
    given = {key: settings.value(name) for key, name in names.items()}
    if all(given[key] == BY_NAME[name].default for key, name in names.items()):
        return None  # most commands do not need the import
    return memlog.JobRules(**given)


def sent_to_providers(settings: Settings) -> list[dict[str, str]]:
    """Describe which texts are sent to which provider.

    Raises:
        BadInput: a setting is invalid or missing.
    """
    sent = []
    embedding, rerank = embedding_of(settings), rerank_of(settings)
    if embedding is not None and embedding.type not in ("onnx", "none"):
        where = _describe_route(embedding.proxy, embedding.base_url or OLLAMA_URL)
        when = ", if no model on this machine works" if embedding.type == "auto" else ""
        sent.append({"what": "passages and questions", "to": where + when})
    if rerank is not None:
        what = f"questions and the {rerank.top_n} best hits"
        sent.append({"what": what, "to": _describe_route(rerank.proxy, rerank.base_url)})
    if (model := language_model_of(settings)) is not None:
        sent.append({"what": "conversations", "to": _describe_route(model.proxy, model.base_url)})
    return sent


def _describe_route(proxy: str | None, url: str | None) -> str:
    return str(url) if proxy is None else f"{url} through {proxy}"


def _is_configured(settings: Settings, section: str) -> bool:
    """Whether the settings choose a provider. A missing address is reported later."""
    names = (f"{section}.{name}" for name in ("base_url", "type", "model"))
    return any(settings.value(name) != BY_NAME[name].default for name in names)


@contextmanager
def _name_section_in_errors(section: str) -> Iterator[None]:
    try:
        yield
    except BadInput as error:
        raise BadInput(f"[{section}] {error.message}", hint=error.hint) from error


def _common_values(settings: Settings, section: str) -> dict[str, Any]:
    values = _section_values(settings, section, "base_url", "model", "timeout", "proxy")
    return values | {"api_key": _api_key(settings, section)}


def _section_values(settings: Settings, section: str, *names: str) -> dict[str, Any]:
    return {name: settings.value(f"{section}.{name}") for name in names}


def _api_key(settings: Settings, section: str) -> Callable[[], str] | str | None:
    """Return a provider's key, or a function that reads it, since most commands do not need it."""
    text = settings.value(f"{section}.api_key")
    if text is not None:
        named = VARIABLE.fullmatch(text)
        return text if named is None else lambda: _read_key_variable(named[1], f"{section}.api_key")
    path = settings.value(f"{section}.api_key_file")
    return None if path is None else lambda: _read_key_file(path)


def _read_key_variable(name: str, setting: str) -> str:
    key = os.environ.get(name)
    if not key:
        raise BadInput(f"{setting}: the variable {name} is not set", hint=f"set it: export {name}=…")
    return key


def _read_key_file(path: Path) -> str:
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BadInput(
            masked(f"{shown(path)}: {why}"), hint="set api_key_file to a file with the key in its first line"
        ) from error
    return lines[0].strip() if lines else ""


# The annotation is quoted: evaluated, it would import the whole store, for `open_log` too.
def open_store(ctx: click.Context, notify: Callable[[str], None] = note) -> "memlog.Store":
    """Open the store chosen by this call's settings. Notes go to stderr by default.

    Raises:
        BadInput: a setting is unusable.
    """
    return _open_with_settings(ctx.ensure_object(Settings), notify, STORED.add)


def store_opener(ctx: click.Context) -> "Callable[[Path], memlog.Store]":
    """Return a function that opens the store in a given folder with that store's settings."""
    settings = ctx.ensure_object(Settings)
    return lambda path: _open_with_settings(settings.at(path), note, None)


def _open_with_settings(
    settings: Settings, notify: Callable[[str], None], on_stored: Callable[..., None] | None
) -> "memlog.Store":
    language_model = language_model_of(settings)
    return memlog.open(
        settings.store,
        model=settings.value("model"),
        embedding=embedding_of(settings),
        rerank=rerank_of(settings),
        language_model=language_model,
        extraction=None if language_model is None else extraction_rules_of(settings),
        jobs=job_rules_of(settings),
        people=memlog.People(
            messengers=settings.value("context.messengers"), chats=settings.value("context.people")
        ),
        memory=settings.value("memory.enabled"),
        durability=settings.value("durability"),
        lock_timeout=settings.value("lock_timeout"),
        redact=settings.value("redact"),
        chunk_sizes=memlog.ChunkSizes(settings.value("chunk_tokens"), settings.value("chunk_overlap")),
        document_seconds=settings.value("document_seconds"),
        notify=notify,
        on_stored=on_stored,
    )


def open_log(ctx: click.Context) -> "Log":
    """Open only the store's log, without the read model, so that commands that append start fast.

    Raises:
        BadInput: a setting is unusable.
    """
    from memlog.eventlog.log.writer import Log

    settings = ctx.ensure_object(Settings)

    def find_stream(event_id: str) -> str:
        with open_store(ctx) as store:
            return store.stream_with(event_id)

    @cache
    def known_ids() -> "KnownIds":
        # Imported here: it needs SQLite, and memlog chooses the id of most events.
        from memlog.service.engine.ids import KnownIds

        return KnownIds(settings.store)

    return Log(
        settings.store,
        durability=settings.value("durability"),
        lock_timeout=settings.value("lock_timeout"),
        find_stream=find_stream,
        redact=settings.value("redact"),
        look_up=lambda stream, ids: known_ids()(stream, ids),
        on_stored=STORED.add,
    )
