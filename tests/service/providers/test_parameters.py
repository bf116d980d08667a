"""Parameters that a provider refuses are replaced or left out, sent again, and remembered."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import memlog
from tests.support.provider import Provider

ANSWER = json.dumps(
    {"memories": [{"type": "fact", "content": "Anna has a cat.", "importance": 0.9}], "summary": ""}
)
Body = dict[str, Any]


def said(*contents: str) -> list[memlog.Message]:
    return [memlog.Message(channel="cli", chat_id="1", role="user", content=each) for each in contents]


def distilling(store: Path, provider: Provider, kind: str = "api", **more: Any) -> memlog.Store:
    model = memlog.LanguageModelProvider(type=kind, base_url=provider.url, model="m", timeout=60, **more)
    return memlog.open(store, language_model=model)


def embedding(store: Path, **more: Any) -> memlog.Store:
    given = {"type": "api", "model": "mini", "timeout": 60, **more}
    return memlog.open(store, embedding=memlog.EmbeddingProvider(**given))


def openai(message: str, **more: Any) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


def of_type(body: Body) -> str:
    return str(body.get("response_format", {}).get("type"))


def roles(body: Body) -> list[str]:
    return [each["role"] for each in body["messages"]]


class Refusal(NamedTuple):
    """What a provider refuses with which words, and what is sent in the end."""

    is_refused: Callable[[Body], object]
    words: object
    is_right: Callable[[Body], object]
    status: int = 400
    kind: str = "api"


NO_SCHEMA = "This response_format type is unavailable now"
REFUSALS = {
    "o-series, max_tokens": Refusal(
        lambda body: "max_tokens" in body,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model."
            " Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        lambda body: body["max_completion_tokens"] == 4000,
    ),
    "vLLM, a small context": Refusal(
        lambda body: {"max_tokens", "max_completion_tokens"} & {*body},
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length"
            " is 4096 tokens and your request has 500 input tokens."
        ),
        lambda body: not {"max_tokens", "max_completion_tokens"} & {*body},
    ),
    "Gemini": Refusal(
        lambda body: of_type(body) == "json_schema",
        [openai('Invalid value at generation_config.response_schema: Unknown name "responseSchema"')],
        lambda body: of_type(body) == "json_object",
    ),
    "vLLM, guided": Refusal(
        lambda body: of_type(body) == "json_schema",
        openai("Guided decoding is not supported"),
        lambda body: of_type(body) == "json_object",
    ),
    "Mistral": Refusal(
        lambda body: of_type(body) == "json_schema",
        {"message": {"detail": [{"loc": ["body", "response_format", "json_schema"], "input": "…"}]}},
        lambda body: of_type(body) == "json_object",
        422,
    ),
    "a role": Refusal(
        lambda body: "system" in roles(body),
        openai("Unsupported message role at index 0"),
        lambda body: roles(body) == ["user"],
    ),
    "OpenRouter": Refusal(
        lambda body: "response_format" in body,
        openai("No endpoints found that support the requested parameters: response_format"),
        lambda body: "response_format" not in body,
        404,
    ),
    "no limit at all": Refusal(
        lambda body: {"max_tokens", "max_completion_tokens"} & {*body},
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_tokens"], "msg": "Extra inputs"}]},
        lambda body: not {"max_tokens", "max_completion_tokens"} & {*body},
        422,
    ),
    "temperature": Refusal(
        lambda body: "temperature" in body,
        openai("Unsupported value: 'temperature' does not support 0 with this model.", param="temperature"),
        lambda body: "temperature" not in body,
    ),
    "json_object alone": Refusal(
        lambda body: of_type(body) == "json_schema",
        openai(NO_SCHEMA),
        lambda body: of_type(body) == "json_object",
    ),
    "LM Studio": Refusal(
        lambda body: "response_format" in body,
        openai("'response_format.type' must be 'text'"),
        lambda body: "response_format" not in body,
    ),
    "with HTTP 200": Refusal(
        lambda body: of_type(body) == "json_schema",
        openai(NO_SCHEMA, code=400),
        lambda body: of_type(body) == "json_object",
        200,
    ),
    "output_config": Refusal(
        lambda body: "output_config" in body,
        {"type": "error", "error": {"message": "output_config: Extra inputs are not permitted"}},
        lambda body: body["system"],
        kind="anthropic",
    ),
    "gemma": Refusal(
        lambda body: "system" in roles(body),
        openai("System role not supported"),
        lambda body: roles(body) == ["user"] and "JSON" in body["messages"][0]["content"],
    ),
    "gemma of Google": Refusal(
        lambda body: "system" in roles(body),
        [openai("Developer instruction is not enabled for models/gemma-3-27b-it", code=400)],
        lambda body: roles(body) == ["user"],
    ),
    "o1-mini": Refusal(
        lambda body: "system" in roles(body),
        openai(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
        ),
        lambda body: roles(body) == ["user"],
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_sent_otherwise_and_remembered(
    tmp_path: Path, provider: Provider, name: str
) -> None:
    refusal = REFUSALS[name]
    provider.answer = lambda _: ANSWER
    provider.refuse = lambda body: (refusal.status, refusal.words) if refusal.is_refused(body) else None
    with distilling(tmp_path, provider, refusal.kind) as store:
        store.append(said("I have a cat"))
        assert [report.saved for report in store.extraction.run()] == [1]
        assert refusal.is_right(provider.requests[-1][1])
        assert store.maintenance.status().providers[0].failures == 0
    asked = len(provider.requests)
    with distilling(tmp_path, provider, refusal.kind) as store:  # as in another process
        store.append(said("and a dog"))
        assert len(store.extraction.run()) == 1
    assert len(provider.requests) == asked + 1
    kept = (tmp_path / "cache/providers.json").read_text()
    assert not any(word in kept for word in ("Unsupported", "permitted", "unavailable", "must be"))
    (tmp_path / "cache/providers.json").unlink()
    with distilling(tmp_path, provider, refusal.kind) as store:  # learnt again
        store.append(said("and a bird"))
        assert len(store.extraction.run()) == 1


@pytest.mark.parametrize(
    "words",
    [
        openai("the text is filtered"),
        "no JSON",
        openai("This model's maximum context length is 4096 tokens: your messages and max_tokens exceed it"),
        None,  # quotes what it was sent, with each parameter
    ],
)
def test_a_refusal_that_names_no_parameter_is_asked_once(
    tmp_path: Path, provider: Provider, words: object
) -> None:
    provider.refuse = lambda body: (400, words or openai(f"cannot read {json.dumps(body)}"))
    with distilling(tmp_path, provider) as store:
        store.append(said("I have a cat"))
        with pytest.raises(memlog.ProviderError) as raised:
            store.extraction.run()
    assert (raised.value.is_of_answer, len(provider.requests)) == (True, 1)


def test_settings_say_it_beforehand(tmp_path: Path, provider: Provider) -> None:
    given = {
        "max_tokens_parameter": "max_completion_tokens",
        "temperature": "none",
        "response_format": "json_object",
        "system_role": "user",
    }
    provider.answer = lambda _: ANSWER
    with distilling(tmp_path, provider, **given) as store:
        store.append(said("I have a cat"))
        store.extraction.run()
    ((_, body, _),) = provider.requests
    assert (sorted(body), roles(body)) == (
        ["max_completion_tokens", "messages", "model", "response_format"],
        ["user"],
    )


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_encoding_format_is_left_out(tmp_path: Path, provider: Provider, status: int) -> None:
    detail = {"detail": [{"loc": ["body", "encoding_format"], "msg": "Extra inputs are not permitted"}]}
    provider.refuse = lambda body: (status, detail) if "encoding_format" in body else None
    for text in ("I have a cat", "and a dog"):
        with embedding(tmp_path, base_url=provider.url) as store:
            store.append(said(text))
            assert store.maintenance.embed().computed == 1
    assert sum("encoding_format" in body for _, body, _ in provider.requests) == 1


PREFIXES = {
    "nomic-embed-text:v1.5": ("search_query: ", "search_document: ", "/prefixed"),
    "intfloat/multilingual-e5-large": ("query: ", "passage: ", "/prefixed"),
    "e5-small-v2": ("query: ", "passage: ", "/prefixed"),
    "intfloat/multilingual-e5-large-instruct": ("Instruct: ", "", "/prefixed-"),
    "base5-v1": ("", "", ""),
    "all-minilm:l6-v2": ("", "", ""),
}


@pytest.mark.parametrize("model", PREFIXES)
def test_prefixes_are_those_of_the_model(tmp_path: Path, provider: Provider, model: str) -> None:
    question, passage, mark = PREFIXES[model]
    with embedding(tmp_path, base_url=provider.url, model=model) as store:
        store.append(said("green tea"))
        store.maintenance.embed()
        store.search("a hot drink")
        name = store.maintenance.status().model or ""
    *_, embedded, asked = provider.texts()
    assert embedded == f"{passage}user: green tea" or embedded == f"{passage}green tea"
    assert asked.startswith(question)
    assert asked.endswith("a hot drink")
    assert re.fullmatch(rf"api/{re.escape(model)}{mark}[0-9a-f]*/384", name)


def test_settings_of_prefixes_override_and_vectors_of_two_are_never_mixed(
    tmp_path: Path, provider: Provider
) -> None:
    names = []
    for given in ({}, {"query_prefix": "q: "}, {"query_prefix": "", "passage_prefix": ""}):
        with embedding(tmp_path, base_url=provider.url, model="e5-small", **given) as store:
            store.append(said("green tea"))
            assert store.maintenance.embed().computed == 1
            store.search("a hot drink")
            names.append(store.maintenance.status().model)
    assert len({*names}) == 3
    assert names[2] == "api/e5-small/384"
    assert [text for text in provider.texts() if "hot" in text] == [
        "query: a hot drink",
        "q: a hot drink",
        "a hot drink",
    ]


def test_a_provider_is_asked_through_the_proxy_that_is_set_and_through_no_other(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with embedding(tmp_path, base_url="http://models.invalid/v1", proxy=provider.url) as store:
        store.append(said("green tea"))
        assert store.maintenance.embed().computed == 1
    assert {path for path, *_ in provider.requests} == {"http://models.invalid/v1/embeddings"}
    with embedding(tmp_path, base_url=provider.url) as store:
        store.append(said("black tea"))
        assert store.maintenance.embed().computed == 1


@pytest.mark.parametrize("proxy", ["127.0.0.1:3128", "ftp://a", "http://anna:secret@a:3128", 5])
def test_a_proxy_is_an_address(proxy: Any) -> None:
    with pytest.raises(memlog.BadInput, match="proxy") as raised:
        memlog.EmbeddingProvider(type="ollama", proxy=proxy)
    assert "secret" not in str(raised.value)


NOT_FOUND = {
    "no path": ("", "404 page not found", "type api ends in /v1"),
    "no model": ("/v1", openai('model "m" not found, try pulling it first'), "ollama pull"),
    "too old": ("/v1", "404 page not found", "older than /v1"),
    "of type ollama": ("/v1", "404 page not found", "of type ollama has no path"),
    "elsewhere": ("/v1", openai("The model `m` does not exist"), "base_url and model"),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_a_404_names_its_cause(tmp_path: Path, provider: Provider, name: str) -> None:
    path, words, hint = NOT_FOUND[name]
    data = words.encode() if isinstance(words, str) else words
    provider.refuse = lambda _: (404, data)
    kind = "ollama" if name == "of type ollama" else "api"
    base_url = f"{provider.url}{path or '/api'}"
    with embedding(tmp_path, type=kind, base_url=base_url) as store:
        store.append(said("green tea"))
        with pytest.raises(memlog.EmbeddingError) as raised:
            store.maintenance.embed()
    assert hint in raised.value.hint
