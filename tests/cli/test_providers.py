"""memlog.toml chooses who embeds and ranks, and says what is sent to whom."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.provider import Provider, serving

Run = Callable[..., Any]
SAID = ("append", "message", "--chat", "x:1", "--role", "user", "--content")
KEY = "sk-of-the-test"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as server:
        yield server


def configured(store: Path, text: str) -> None:
    store.mkdir(exist_ok=True)
    (store / "memlog.toml").write_text(text)


def test_the_sections_choose_providers_and_a_failure_shows(
    memlog: Run, store: Path, provider: Provider
) -> None:
    own = store.parent / ".config/memlog/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        f'[embedding]\nprovider = "api"\nbase_url = "{provider.url}"\nmodel = "mini"\napi_key = "${{KEY}}"\n'
        f'timeout = 60\n[rerank]\nbase_url = "{provider.url}/v1"\napi_key_file = "key"\n'
    )
    (own.parent / "key").write_text(f"{KEY}-2\n")
    env = {"KEY": KEY}
    # Neither needs a provider, nor its key.
    assert memlog(*SAID, "I like green tea").code == 0
    assert memlog(*SAID, "The dog is ill").code == 0
    assert "the variable KEY is not set" in memlog("query", "tea", "--json").json["silent"]["vector"]
    assert memlog("embed", "--json", env=env).json["computed"] == 2
    assert memlog("query", "a hot drink", "--json", env=env).json["silent"] == {}
    keys = {path: headers["authorization"] for path, _, headers in provider.requests}
    assert keys == {"/v1/embeddings": f"Bearer {KEY}", "/v1/rerank": f"Bearer {KEY}-2"}

    shown = memlog("config", env=env).out.decode()
    assert f"passages and questions are sent to {provider.url}\n" in shown
    assert f"questions and the 8 best hits are sent to {provider.url}/v1\n" in shown
    env |= {"MEMLOG_EMBEDDING_API_KEY": KEY}
    assert KEY not in memlog("config", env=env).out.decode()

    provider.always = "500"
    assert memlog("query", "tea", "--json", env=env).json["silent"].keys() == {"vector", "rerank"}
    embedding, rerank = memlog("status", "--json", env=env).json["providers"]
    assert [embedding["role"], embedding["failures"], rerank["role"]] == ["embedding", 1, "rerank"]
    assert "HTTP 500: " in embedding["error"]
    assert "1 failures, the last at" in memlog("status", env=env).out.decode()

    asked = len(provider.requests)
    classic = memlog("query", "tea", "--json", env=env | {"MEMLOG_RETRIEVAL_MODE": "classic"}).json
    assert (len(provider.requests), classic["hits"][0]["content"]) == (asked, "I like green tea")
    assert "project the log" in classic["silent"]["vector"]  # which brings the vectors of the model here
    unknown = memlog("query", "tea", env=env | {"MEMLOG_RETRIEVAL_MODE": "magic"})
    assert b"there is no mode 'magic'; using classic" in unknown.err
    assert len(provider.requests) == asked


def test_the_sections_choose_parameters_prefixes_and_a_proxy(
    memlog: Run, store: Path, provider: Provider
) -> None:
    configured(
        store,
        f'[embedding]\ntype = "api"\nbase_url = "http://models.invalid/v1"\nmodel = "mini"\n'
        f'proxy = "{provider.url}"\nquery_prefix = "ask: "\nencoding_format = "none"\ntimeout = 60\n'
        f'[language_model]\nbase_url = "{provider.url}"\nmax_tokens_parameter = "max_completion_tokens"\n'
        'temperature = 0.5\nresponse_format = "none"\nsystem_role = "developer"\n',
    )
    memlog(*SAID, "I like green tea")
    assert memlog("embed", "--json").json["computed"] == 1
    memlog("query", "a hot drink")
    assert memlog("extract").code == 0
    *_, embedded, asked = (body for path, body, _ in provider.requests if path.startswith("http:"))
    assert "encoding_format" not in embedded
    assert asked["input"] == ["ask: a hot drink"]
    body = provider.requests[-1][1]
    assert sorted(body) == ["max_completion_tokens", "messages", "temperature"]
    assert (body["temperature"], body["messages"][0]["role"]) == (0.5, "developer")
    shown = memlog("config").out.decode()
    assert f"are sent to http://models.invalid/v1 through {provider.url}\n" in shown
    for wrong in ("3", "warm"):
        assert memlog("extract", env={"MEMLOG_LANGUAGE_MODEL_TEMPERATURE": wrong}).code == 65


@pytest.mark.parametrize("setting", ["api_key = '${KEY}'", "api_key_file = 'key'"])
def test_a_copied_store_does_not_use_the_users_keys(
    memlog: Run, store: Path, provider: Provider, setting: str
) -> None:
    configured(store, f'[embedding]\ntype = "api"\nbase_url = "{provider.url}"\nmodel = "m"\n{setting}')
    (store / "key").write_text("sk-1\n")
    env = {"KEY": "sk-1"}
    assert memlog("memory", "save", "--content", "tea", "--no-dedup", env=env).code == 0
    assert "own file alone" in memlog("query", "tea", "--json", env=env).json["silent"]["vector"]
    done = memlog("embed", "--json", env=env)
    assert (done.code, "config set --user embedding.api_key" in done.error["hint"]) == (69, True)
    assert provider.requests == []


def test_a_key_in_the_file_is_refused_and_not_printed(memlog: Run, store: Path) -> None:
    configured(store, f'[embedding]\ntype = "api"\nbase_url = "http://127.0.0.1:1"\napi_key = "{KEY}"\n')
    done = memlog("query", "tea", "--json")
    assert (done.code, done.error["code"]) == (65, "bad_input")
    assert "embedding.api_key_file" in done.error["hint"]
    assert KEY not in done.err.decode()


def test_auto_takes_the_model_of_this_machine_and_without_it_ollama(
    memlog: Run, store: Path, provider: Provider
) -> None:
    configured(store, f'[embedding]\ntype = "auto"\nbase_url = "{provider.url}"\n')
    memlog(*SAID, "I like green tea")
    assert memlog("status", "--json").json["model"].startswith("all-MiniLM")
    assert provider.requests == []


def test_memory_that_is_off_gives_nothing_and_keeps_what_is_appended(memlog: Run, store: Path) -> None:
    configured(store, "[memory]\nenabled = false\n")
    memlog(*SAID, "I like green tea")
    found = memlog("query", "tea", "--json").json
    assert (found["hits"], found["silent"].keys()) == ([], {"memory"})
    given = memlog("context", "tea")
    assert (given.out, b"memory.enabled is false" in given.err) == (b"", True)
    assert len(memlog("query", "tea", "--json", env={"MEMLOG_MEMORY_ENABLED": "true"}).json["hits"]) == 1
