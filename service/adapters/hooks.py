"""Answers coding agents' hooks with context for the agent: when a session starts, and before each prompt.

The context comes from two stores: the project's, and the person's, of which only entries outside all chats
are used. It is one block, recorded in the project's store, so that an import of the agent's transcript
recognises the block and leaves it out. An answer is sent to a model elsewhere, so it contains no credentials
or keys.

Claude Code and Codex send and expect the same JSON: https://code.claude.com/docs/en/hooks and
codex-rs/hooks/schema/generated in openai/codex.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput
from memlog.eventlog.fields import Chat
from memlog.query.event_index import hashes_of_contexts_given
from memlog.service.retrieval.search import record_stable_context
from memlog.service.store import Store

HOSTS = ("claude-code", "codex")
"""The agents whose hooks are answered. Each name is also the channel of the agent's conversations."""

_TOKENS = 1000
"""The budget of each half. Both halves together have at most 8,000 characters; the hosts accept 10,000."""

_PERSON_TOKENS = 400
"""The part of that budget that the person's store may use."""

_CITATION = re.compile(r" \[M\d+\]$")


class HookCall(msgspec.Struct):
    """A hook call from a host.

    session_id: the id of the conversation. cwd: the folder where the agent works.
    source: why a session starts: startup, resume, clear or compact.
    """

    hook_event_name: str
    session_id: str
    cwd: str = ""
    prompt: str = ""
    source: str = "startup"


def read_call(host: str, data: bytes) -> HookCall:
    """Return the hook call in a host's JSON.

    Raises:
        BadInput: the host is unknown, or the data is not a hook call.
    """
    if host not in HOSTS:
        raise BadInput(f"no hooks of {host!r} are known", hint=f"use one of: {', '.join(HOSTS)}")
    try:
        return msgspec.json.decode(data, type=HookCall)
    except msgspec.MsgspecError as error:
        raise BadInput(f"{host} sent no hook: {error}", hint="a host calls this command") from error


def answer_call(
    host: str, call: HookCall, project: Store, person: Store | None, record_id: str | None
) -> bytes:
    """Return the answer to a hook call in the host's format; b"" if there is nothing to say.

    person: the person's store; None if it is the project's. record_id: see `BuildContext`.
    """
    chat = str(Chat(host, call.session_id))
    if call.hook_event_name == "SessionStart":
        is_new = call.source != "resume" or not _was_given_any(project, chat)
        text = _build_stable_half(chat, project, person) if is_new else ""
    elif call.hook_event_name == "UserPromptSubmit" and call.prompt.strip():
        # A session may have begun before the hooks were there, or while nothing could answer.
        first = "" if _was_given_any(project, chat) else _build_stable_half(chat, project, person)
        text = first + _build_turn_half(chat, call.prompt, project, person, record_id)
    else:
        text = ""
    if not text:
        return b""
    output = {"hookEventName": call.hook_event_name, "additionalContext": text}
    return msgspec.json.encode({"hookSpecificOutput": output}) + b"\n"


def _build_stable_half(chat: str, project: Store, person: Store | None) -> str:
    lines = _lines_of_person(person, "", part="stable")
    text = project.context(
        "", part="stable", scope="store", beside=lines, is_sent=True, max_tokens=_TOKENS
    ).text
    if text:
        record_stable_context(project._engine.nonblocking_log, chat, text)
    return text


def _build_turn_half(
    chat: str, prompt: str, project: Store, person: Store | None, record_id: str | None
) -> str:
    return project.context(
        prompt,
        chat=chat,
        part="turn",
        scope="store",
        beside=_lines_of_person(person, prompt, part="turn"),
        is_sent=True,
        max_tokens=_TOKENS,
        record_id=record_id,
    ).text


def _lines_of_person(person: Store | None, prompt: str, *, part: Any) -> tuple[str, ...]:  # noqa: ANN401 - a literal
    """Return the person's context outside all chats, as lines without citations of that other store."""
    if person is None or not person.exists:
        return ()
    given = person.context(
        prompt, part=part, scope="chat", is_sent=True, record=False, max_tokens=_PERSON_TOKENS
    )
    return tuple(_CITATION.sub("", line) for line in given.text.splitlines()[1:-1])


def _was_given_any(project: Store, chat: str) -> bool:
    ask: Callable[[Any], set[str]] = lambda db: hashes_of_contexts_given(db, chat)  # noqa: E731
    return project.exists and bool(project._engine.decide(ask))
