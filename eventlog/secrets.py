"""Well-known shapes of keys, and texts without them.

Only shapes that begin with what nothing else does: a search for high entropy would mask hashes and ids. Where
each is documented:

    aws-key        https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    github-token   https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
    gitlab-token   https://docs.gitlab.com/security/tokens/
    anthropic-key, openai-key
                   https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
    slack-token    https://api.slack.com/authentication/token-types
    slack-webhook  https://api.slack.com/messaging/webhooks
    google-key     https://cloud.google.com/docs/authentication/api-keys
    google-token   https://developers.google.com/identity/protocols/oauth2
    stripe-key     https://docs.stripe.com/keys
    telegram-token https://core.telegram.org/bots/api#authorizing-your-bot
    npm-token      https://docs.npmjs.com/about-access-tokens
    pypi-token     https://pypi.org/help/#apitoken
    huggingface-token
                   https://huggingface.co/docs/hub/security-tokens
    sendgrid-key   https://docs.sendgrid.com/ui/account-and-settings/api-keys
    private-key    https://www.rfc-editor.org/rfc/rfc7468
    jwt            https://www.rfc-editor.org/rfc/rfc7519
"""

import re
from collections.abc import Container, Iterable, Iterator
from functools import cache
from itertools import count
from typing import Any

import msgspec

from memlog.eventlog.errors import BadInput, MemlogError

KINDS = {
    # A key cut short has no end: it goes to the end of the text.
    "private-key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    "aws-key": r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])",
    "github-token": r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255}",
    "gitlab-token": r"gl(?:pat|dt|ptt|rt|cbt)-[A-Za-z0-9_-]{20,}",
    "anthropic-key": r"sk-ant-[A-Za-z0-9_-]{20,}",
    # A word with hyphens may begin with sk-, too; it has no digit and no capital within 20 characters.
    "openai-key": r"sk-(?=[a-zA-Z_-]{0,40}[0-9])(?=[a-z0-9_-]{0,40}[A-Z])[A-Za-z0-9_-]{20,}",
    "slack-token": r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
    "slack-webhook": r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,}",
    "google-key": r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    "google-token": r"GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}",
    "stripe-key": r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{24,}",
    "telegram-token": r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])",
    "npm-token": r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
    "pypi-token": r"pypi-AgE[A-Za-z0-9_-]{50,}",
    "huggingface-token": r"hf_[A-Za-z0-9]{34}(?![A-Za-z0-9])",
    "sendgrid-key": r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
}
"""What each kind of key looks like; none begins within a word."""

_NAMES = frozenset(
    ("id", "channel", "chat_id", "memory_id", "memory_ids", "ids", "target_id", "stream", "source_id", "file")
    + ("topic_key", "section", "key", "from_message_id", "to_message_id", "through_message_id")
    + ("source_message_id",)
)
"""Members that name things: masked, two things would be one."""


def masked(text: str) -> str:
    """`text` with `[REDACTED:kind]` in the place of each key."""
    return _keys().sub(lambda found: f"[REDACTED:{_kind(found)}]", text)


def kinds_in(text: str) -> list[str]:
    """The kinds of the keys in `text`, in their order."""
    return [_kind(found) for found in _keys().finditer(text)]


def masked_event(source: bytes) -> bytes:
    """The event of a line of JSON with its keys masked, at any depth, and without `at` and `crc`; the same
    object where it has none.

    Raises:
        BadInput: a member that names something holds a key.
    """
    try:
        members = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return source  # what is wrong with it is told by who reads it
    if not isinstance(members, dict):
        return source
    # Those of a line of another log were of what it said.
    said = {name: value for name, value in members.items() if name not in ("at", "crc")}
    clean = _without_keys(said)
    if clean == said:
        return source
    for name in _NAMES & clean.keys():
        if clean[name] != said[name]:
            raise BadInput(f"{name} holds what looks like a key", hint="name things otherwise: names stay")
    return msgspec.json.encode(clean)


def masked_error(error: MemlogError) -> MemlogError:
    """`error`, which may quote what was given, without keys."""
    return type(error)(
        masked(error.message), hint=masked(error.hint), code=error.code, retryable=error.retryable
    )


def texts_in(line: bytes) -> Iterator[str]:
    """All that a line may say: each text of its JSON, names of members too; or the line, where it is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield line.decode(errors="replace")
        return
    yield from texts_within([value])


def texts_within(values: Iterable[Any]) -> Iterator[str]:
    """Each text in JSON values, at any depth, names of members too, in their order. Without recursion."""
    waiting = list(values)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [part for pair in reversed(value.items()) for part in reversed(pair)]
        elif isinstance(value, list):
            waiting += reversed(value)


@cache
def _keys() -> re.Pattern[str]:
    """Compiled when it is first needed: most appends mask nothing."""
    shapes = "|".join(f"(?P<{kind.replace('-', '_')}>{shape})" for kind, shape in KINDS.items())
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{shapes})", re.DOTALL)


def _kind(found: re.Match[str]) -> str:
    return str(found.lastgroup).replace("_", "-")


def _without_keys(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, list):
        return [_without_keys(each) for each in value]
    if isinstance(value, dict):
        clean: dict[str, Any] = {}
        for name, each in value.items():
            clean[_unlike(clean, masked(name))] = _without_keys(each)
        return clean
    return value


def _unlike(members: Container[str], name: str) -> str:
    """`name`, with a number where one of `members` is called so: two keys of one kind are two names."""
    numbered = (f"{name} {number}" for number in count(2))
    return name if name not in members else next(each for each in numbered if each not in members)
