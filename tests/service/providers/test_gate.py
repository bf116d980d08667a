"""Whatever is sent to a provider passes one gate: each sender is tried with each kind of secret."""

import ast
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import memlog
from tests.service.jobs.conftest import Clock
from tests.service.jobs.conftest import clock as clock  # a fixture
from tests.support.provider import Provider

CODE = Path(memlog.__file__).parent
_OWNERS = (ast.Module, ast.ClassDef)


class Secret(NamedTuple):
    """Messages, memories (title, content, category, tags) and facts (topic, value) that hold `value`."""

    value: str
    said: tuple[str, ...] = ()
    saved: tuple[tuple[str | None, str, str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def both(value: str, *texts: str) -> Secret:
    """The texts, said and saved."""
    return Secret(value, texts, tuple((None, text, "other", "") for text in texts))


def said_alone(value: str, *texts: str) -> Secret:
    return Secret(value, texts)


KEY = "sk-ant-api03-" + "a1B2" * 12
FIRST, REST = KEY[:16], KEY[16:]

SECRETS = {
    "a credential": Secret("4711-hauki", (), ((None, "The door opens with 4711-hauki", "credential", ""),)),
    "one in capitals": Secret(
        "4712-hauki", (), ((None, "The safe opens with 4712-hauki", "Credential", ""),)
    ),
    "a key": both(KEY, f"the key is {KEY}"),
    "a key at the cut": both(KEY, "tea " * 996 + KEY),
    "behind its name": both("hunter2abc", "password: hunter2abc"),
    "told": both("hunter2abc", "the wifi password is hunter2abc, so tea"),
    "in JSON": both("hunter2abc", '{"name": "password", "value": "hunter2abc"}'),
    "beside its title": Secret("hunter2abc", (), (("wifi password", "hunter2abc", "other", ""),)),
    "in quotes behind a question": said_alone("hunter2abc", "The password?", "`hunter2abc`, tea"),
    "beside its tag": Secret("Teegarten", (), ((None, "Teegarten", "other", "password"),)),
    "behind a question": said_alone("hunter2abc", "What is the wifi password?", "hunter2abc"),
    "behind a line that ends": said_alone("hunter2abc", "the password is:", "hunter2abc"),
    "in a sentence behind a question": said_alone(
        "Sommer2024", "Wie ist das WLAN-Passwort?", "Bei uns tea, Sommer2024!"
    ),
    "in a sentence beside its title": Secret(
        "hunter2abc", (), (("wifi password", "For tea: it's hunter2abc, I think", "other", ""),)
    ),
    "behind a name with words behind it": Secret(
        "swordfish", (), (("Wi-Fi passwords of the cabin", "swordfish", "other", ""),)
    ),
    "beside its topic": Secret("swordfish", facts=(("wifi_password_home", "swordfish"),)),
    "before its name": said_alone("hunter2abc", "hunter2abc", "is my wifi password"),
    "in other notations": both(
        "hunter2x9",
        "tea password for the wifi: hunter2x9",
        "<password>hunter2x9</password>",
        "mysql --password hunter2x9",
    ),
    "split among words": said_alone("Ab1c", "tea: sk-proj-Ab1cDef4", "and the rest: 56Ab1c7890"),
    "split": said_alone(REST, f"my key is {FIRST}", f"{REST} is the rest"),
    "split in three": said_alone(KEY[20:40], KEY[:20], "noted", KEY[20:40], KEY[40:]),
    "split behind what is a key itself": said_alone(KEY[40:], f"it is {KEY[:40]}", KEY[40:]),
}


def said(*contents: str) -> list[memlog.Message]:
    return [
        memlog.Message(
            channel="cli", chat_id="1", role="assistant" if each == "noted" else "user", content=each
        )
        for each in contents
    ]


def filled(store: memlog.Store, secret: Secret) -> None:
    """The secret between two things that may be sent."""
    store.append(said("Green tea is hot"))
    store.append(said(*secret.said))
    store.append(said("Black tea is hot"))
    for number, (title, content, category, tag) in enumerate(
        [(None, "Tea opens at nine", "other", ""), *secret.saved, (None, "Tea closes at ten", "other", "")]
    ):
        saved = {"title": title} if title else {}
        saved |= {
            "content": content,
            "category": category,
            "tags": [tag],
            "ts": f"2026-01-13T00:00:{number:02}Z",
        }
        store.append([{"type": "memory_saved", **saved}])
    for topic, value in secret.facts:
        store.facts.set(topic, value)


def embed(store: memlog.Store, _: Secret) -> None:
    store.maintenance.embed()


def embed_texts(store: memlog.Store, secret: Secret) -> None:
    """As a program does with texts of its own."""
    store.embedder.embed(["Green tea"])
    if secret.said:
        with pytest.raises(memlog.EmbeddingError, match="looks like a key"):
            store.embedder.embed(secret.said)


def ask(store: memlog.Store, secret: Secret) -> None:
    """As an agent does with each message, before and behind the append."""
    for text in ("what tea is there", *secret.said):
        store.context(text, chat="cli:1", record=False)
        store.append(said(text))
        store.context(text, chat="cli:1", record=False)
    if len(secret.said) == 1:
        store.search(secret.said[0])


def ask_for_tea(store: memlog.Store, _: Secret) -> None:
    for text in ("tea", "password", "the key of tea is", "hauki"):
        store.search(text)


def distil(store: memlog.Store, _: Secret) -> None:
    store.extraction.run(mode=f"tea, and {KEY}")


def distil_one_by_one(store: memlog.Store, _: Secret) -> None:
    """Each message in a request of its own, as a watch may do."""
    store.extraction.run()


def distil_days(store: memlog.Store, secret: Secret) -> None:
    for text in ("Tea was drunk", *secret.said):
        store.daily.record(summary=text, date="2026-01-10")
    store.extraction.days()


def weekly(store: memlog.Store, _: Secret) -> None:
    store.jobs.run("weekly")


def summaries(store: memlog.Store, _: Secret) -> None:
    store.append(said("tea " * 3000))
    store.append([memlog.SessionBreak(channel="cli", chat_id="1")])
    store.jobs.run("summaries")


SENDERS: dict[str, tuple[Callable[[memlog.Store, Secret], None], ...]] = {
    "service.engine.provider_embedders.RemoteEmbedder._request_vectors": (embed, embed_texts, ask),
    "service.retrieval.rerank.Reranker._request_scores": (ask_for_tea, ask),
    "service.llm.model.LanguageModel.request_answer_once": (),  # by those who ask it
    "service.llm.task.Task._process_batch": (distil, distil_one_by_one, distil_days, weekly, summaries),
}
"""Every function that makes a request to a provider, or asks a language model, with what makes it do so."""


@cache
def calls() -> list[tuple[str, set[str]]]:
    """Each function of memlog, and what it calls."""
    found = []
    folders = [folder for folder in CODE.iterdir() if folder.is_dir()]
    files = [(folder, path) for folder in folders for path in folder.resolve().rglob("*.py")]
    for folder, path in files:
        module = ".".join((folder.name, *path.relative_to(folder.resolve()).with_suffix("").parts))
        owners = (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, _OWNERS))
        for owner in owners:
            prefix = f"{module}.{owner.name}" if isinstance(owner, ast.ClassDef) else module
            for function in owner.body:
                if isinstance(function, ast.FunctionDef):
                    called = (each.func for each in ast.walk(function) if isinstance(each, ast.Call))
                    names = {ast.unparse(each).removeprefix("self.") for each in called}
                    found.append((f"{prefix}.{function.name}", names))
    return found


def functions_that_call(*names: str) -> set[str]:
    """The functions that call one of these by its last name."""
    return {function for function, called in calls() if not called.isdisjoint(names)}


def test_every_sender_is_tried() -> None:
    assert functions_that_call("_breaker.make_endpoint", "breaker.make_endpoint", "_questions.ask") == {
        *SENDERS
    }
    assert functions_that_call("Endpoint") == {"service.engine.http_client.Breaker.make_endpoint"}
    # Only these open connections: to providers, and to memlog's own server.
    assert functions_that_call("httpx2.Client", "httpx2.AsyncClient", "httpx2.post", "urlopen") == {
        "service.engine.http_client.Endpoint._post",
        "service.adapters.remote.ServerConnection._client",
    }
    assert functions_that_call("Outgoing") == {"eventlog.secrets.outgoing.encode_outgoing"}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("send", {send: None for each in SENDERS.values() for send in each})
def test_no_sender_sends_a_secret(
    tmp_path: Path,
    provider: Provider,
    clock: Clock,
    send: Callable[[memlog.Store, Secret], None],
    secret: Secret,
) -> None:
    def opened(**more: object) -> memlog.Store:
        return memlog.open(
            tmp_path,
            language_model=memlog.LanguageModelProvider(base_url=provider.url, model="m"),
            extraction=memlog.ExtractionRules(tokens=100 if send is distil_one_by_one else 2000),
            **more,
        )

    provider.answer = lambda _: json.dumps({"groups": [], "entries": [], "memories": [], "summary": "tea"})
    with opened(embedding=memlog.EmbeddingProvider(type="none")) as store:
        filled(store, secret)
    embedding = memlog.EmbeddingProvider(type="api", base_url=provider.url, model="mini")
    rerank = memlog.RerankProvider(base_url=provider.url, top_n=8) if send in (ask, ask_for_tea) else None
    with opened(embedding=embedding, rerank=rerank) as store:
        send(store, secret)
    bodies = [json.dumps(body, ensure_ascii=False) for _, body, _ in provider.requests]
    assert any("ea" in body for body in bodies)
    assert [body for body in bodies if secret.value in body or KEY in body] == []
