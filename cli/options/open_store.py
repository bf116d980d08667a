"""Opens the command line's store, or just its log."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import memlog
from memlog.cli.options.settings import (
    IN_FILE,
    IN_USER_FILE,
    VARIABLE,
    Origin,
    Settings,
    key_in_store_file_error,
    user_settings_file,
)
from memlog.cli.options.settings_schema import setting_named
from memlog.cli.output.output import RUN, STORED, NeedsOwnProcess, print_note
from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Checked, list_fields

if TYPE_CHECKING:
    from memlog.eventlog.log.writer import Log
    from memlog.service.engine.ids import KnownIds

S = TypeVar("S", bound=Checked)


def embedding_provider_of(settings: Settings) -> "memlog.EmbeddingProvider | None":
    """Return the embedding provider, or None to use the bundled model or the `model` setting.

    Raises:
        BadInput: a setting is invalid or missing.
    """
    kind = settings.value("embedding.type") if settings.value("embedding.enabled") else "none"
    is_classic = settings.value("retrieval.mode") == "classic"
    if settings.value("model") is not None or (is_classic and kind not in ("onnx", "none")):
        return None
    model, origin = settings.find_value_and_origin("embedding.model")
    if kind == "onnx":
        if model is None and settings.value("embedding.base_url") is None:
            return None
        beside = {IN_FILE: settings.store, IN_USER_FILE: user_settings_file().parent}.get(origin, Path())
        model = str(beside / Path(model).expanduser()) if model else None
    return _read_section(settings, "embedding", memlog.EmbeddingProvider, type=kind, model=model)


def rerank_provider_of(settings: Settings) -> "memlog.RerankProvider | None":
    """Return the reranking provider, or None.

    Raises:
        BadInput: a setting is invalid.
    """
    is_off = not settings.value("rerank.enabled") or settings.value("retrieval.mode") == "classic"
    if is_off or not _is_configured(settings, "rerank"):
        return None
    return _read_section(settings, "rerank", memlog.RerankProvider)


def language_model_of(settings: Settings) -> "memlog.LanguageModelProvider | None":
    """Return the language model that distils conversations, or None.

    Raises:
        BadInput: a setting is invalid.
    """
    if not _is_configured(settings, "language_model"):
        return None
    return _read_section(settings, "language_model", memlog.LanguageModelProvider)


def describe_texts_sent_to_providers(settings: Settings) -> list[dict[str, str]]:
    """Describe which texts are sent to which provider.

    Raises:
        BadInput: a setting is invalid or missing.
    """
    # Imported here, as an append starts without the sections.
    from memlog.eventlog.sections import OLLAMA_URL

    sent = []
    embedding, rerank = embedding_provider_of(settings), rerank_provider_of(settings)
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
    return any(settings.value(name) != setting_named(name).default for name in names)


def _read_section(settings: Settings, section: str, kind: type[S], **values: Any) -> S:  # noqa: ANN401
    """Return a section's settings as a struct.

    values: field values that override the settings.
    """
    found = {
        field.name: settings.find_value_and_origin(f"{section}.{field.key}")
        for field in list_fields(kind)
        if field.description
    }
    origins = {name: origin for name, (_, origin) in found.items()}
    if IN_USER_FILE in (origins.get("api_key"), origins.get("api_key_file")):
        _check_address_of_key(section, origins)
    values = {name: value for name, (value, _) in found.items()} | values
    if values.get("api_key") is not None:
        values["api_key"] = _make_key_or_reader(values["api_key"], section)
    for name in ("api_key", "api_key_file"):
        if origins.get(name) == IN_FILE:
            # Only requests need it: appends and words go on.
            refused = key_in_store_file_error(setting_named(f"{section}.{name}"), IN_FILE)
            values |= {"api_key_file": None, "api_key": partial(_raise_key_error, refused)}
    try:
        return kind(**values)
    except BadInput as error:
        raise BadInput(f"[{section}] {error.message}", hint=error.hint) from error


def _check_address_of_key(section: str, origins: dict[str, Origin]) -> None:
    """Refuse to send the user's own key to an address that a store chooses."""
    if foreign := [name for name in ("base_url", "proxy") if origins[name] == IN_FILE]:
        message = f"[{section}] the key is in your own config.toml, {foreign[0]} in the store's memlog.toml"
        raise BadInput(message, hint=f"set {foreign[0]} in your own file, too")


def _make_key_or_reader(text: str, section: str) -> str | Callable[[], str]:
    """Return a key, or a function that reads it from the variable that `text` names."""
    named = VARIABLE.fullmatch(text)
    return text if named is None else lambda: _read_key_variable(named[1], f"{section}.api_key")


def _raise_key_error(error: BadInput) -> str:
    raise error


def _read_key_variable(name: str, setting: str) -> str:
    key = os.environ.get(name)
    if not key and RUN.is_forwarded:
        raise NeedsOwnProcess  # the client may have it, but does not send it
    if not key:
        raise BadInput(f"{setting}: the variable {name} is not set", hint=f"set it: export {name}=…")
    return key


# The annotation is quoted: evaluated, it would import the whole store, for `open_log` too.
def open_store(
    ctx: click.Context, notify: Callable[[str], None] = print_note
) -> "AbstractContextManager[memlog.Store]":
    """Open the store chosen by this call's settings. Notes go to stderr by default.

    Raises:
        BadInput: a setting is unusable.
    """
    options = _options_of_store(ctx.ensure_object(Settings))
    options |= {"notify": notify, "on_stored": STORED.add_and_print_warnings}
    return nullcontext(KEPT_STORES.open(options)) if RUN.is_forwarded else memlog.open(**options)


class KeptStores:
    """Stores that a process keeps open between forwarded commands, since opening one takes 10 ms."""

    def __init__(self) -> None:
        self._stores: list[tuple[dict[str, Any], memlog.Store]] = []

    def open(self, options: dict[str, Any]) -> "memlog.Store":
        """Return the store for these options, opening it if necessary; keep the last `_MOST_KEPT` open."""
        # Imported here: only a server keeps stores open.
        from memlog.service.engine.create import identify_files_of_store

        # Its path may be relative, and another store may have been put in its place.
        key = options | {"of": Path.cwd(), "files": identify_files_of_store(options["path"])}
        found = next((each for each in self._stores if each[0] == key), None)
        if found is None:
            found = key, memlog.open(**options)
        else:
            self._stores.remove(found)
        self._stores.append(found)
        while len(self._stores) > _MOST_KEPT:
            self._stores.pop(0)[1].close()
        return found[1]

    def close_newest(self) -> None:
        """Close the store used last, so that it says again what a process of its own would say."""
        if self._stores:
            self._stores.pop()[1].close()


_MOST_KEPT = 4
KEPT_STORES = KeptStores()
"""The stores of this process, if it runs forwarded commands."""


def make_store_opener(
    ctx: click.Context, on_stored: Callable[..., None] | None = None
) -> "Callable[[Path], memlog.Store]":
    """Return a function that opens the store in a given folder with that store's settings.

    on_stored: called with the positions of stored events.
    """
    settings = ctx.ensure_object(Settings)
    return lambda path: memlog.open(
        **_options_of_store(settings.with_store_at(path)), notify=print_note, on_stored=on_stored
    )


def _options_of_store(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `memlog.open` that the settings choose."""
    return {
        "path": settings.store,
        "model": settings.value("model"),
        "embedding": embedding_provider_of(settings),
        "rerank": rerank_provider_of(settings),
        "language_model": language_model_of(settings),
        "extraction": _read_section(settings, "extraction", memlog.ExtractionRules),
        "jobs": _read_section(settings, "jobs", memlog.JobRules, timezone=settings.value("timezone")),
        "decay": _read_section(settings, "decay", memlog.DecayRules),
        "search": _read_section(settings, "search", memlog.SearchRules),
        "people": _read_section(settings, "context", memlog.People),
        "memory": settings.value("memory.enabled"),
        "durability": settings.value("durability"),
        "lock_timeout": settings.value("lock_timeout"),
        "redact": settings.value("redact"),
        "chunk_sizes": memlog.ChunkSizes(settings.value("chunk_tokens"), settings.value("chunk_overlap")),
        "document_seconds": settings.value("document_seconds"),
    }


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
        on_stored=STORED.add_and_print_warnings,
    )
