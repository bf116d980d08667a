"""Misuses the public API. Never run: type checkers report the lines that end in `# wrong` alone."""

import memlog


def opening() -> None:
    memlog.open("notes", durability="never")  # wrong
    memlog.open_async("notes", durability="never")  # wrong


def appending(store: memlog.Store) -> None:
    store.append(5)  # wrong
    memlog.Message(channel="cli", chat_id="1", role="robot", content="tea")  # wrong
    memlog.MemlogError("no tea", code="no_tea")  # wrong


def searching(store: memlog.Store) -> None:
    store.search("tea", mode="hybird")  # wrong
    store.search("tea", chta="web:1")  # wrong
    store.search(k=5)  # wrong
    store.search("tea", 5)  # wrong
    store.context("tea", max_tokens="many")  # wrong
    print(store.search("tea").hit)  # wrong
    print(store.get("m1").raw)  # wrong


def groups(store: memlog.Store) -> None:
    store.conversations.window("web:1", last="20")  # wrong
    store.erasure.forget("m1", why="private")  # wrong
    store.maintenance.embed(batch="16")  # wrong
    store.memories.save("likes tea", kind="mail")  # wrong
    store.facts.get("tea", rank="first")  # wrong
    store.core.set("usr", "city", "Oulu")  # wrong
    store.daily.list(date=5)  # wrong
    store.documents.add(5)  # wrong
    store.workspaces.add()  # wrong
    print(store.minutes)  # wrong


async def waiting(store: memlog.AsyncStore) -> None:
    await store.search("tea", mode="hybird")  # wrong
    await store.memories.save(content=5)  # wrong
    print(store.search("tea").hits)  # wrong
