"""Keys that no service has given out, of every kind that memlog masks."""

import random
import string
from collections.abc import Callable

_LETTERS = string.ascii_letters + string.digits
_URL_SAFE = _LETTERS + "-_"
_UPPER = string.ascii_uppercase + string.digits


def _some(chance: random.Random, characters: str, count: int) -> str:
    return "".join(chance.choices(characters, k=count))


# The beginnings are written in two parts: whole, these lines would be taken for leaked keys themselves.
_MAKERS: dict[str, Callable[[random.Random], str]] = {
    "aws-key": lambda c: c.choice(["AKI" + "A", "ASI" + "A"]) + _some(c, _UPPER, 16),
    "github-token": lambda c: c.choice(
        [
            "gh" + c.choice("pousr") + "_" + _some(c, _LETTERS, 36),
            "github_" + "pat_" + _some(c, _LETTERS, 22) + "_" + _some(c, _LETTERS, 59),
        ]
    ),
    "gitlab-token": lambda c: "glp" + "at-" + _some(c, _URL_SAFE, 20),
    "anthropic-key": lambda c: "sk-" + "ant-api03-" + _some(c, _URL_SAFE, 93) + "AA",
    "openai-key": lambda c: (
        c.choice(["sk-" + "proj-", "sk-" + "svcacct-", "s" + "k-"]) + "T3A" + _some(c, _LETTERS, 48)
    ),
    "slack-token": lambda c: "xox" + c.choice("abprs") + "-" + _some(c, string.digits, 12) + "-abc",
    "slack-webhook": lambda c: (
        "hooks.slack"
        + ".com/services/T"
        + _some(c, _UPPER, 8)
        + "/B"
        + _some(c, _UPPER, 8)
        + "/"
        + _some(c, _LETTERS, 24)
    ),
    "google-key": lambda c: "AIz" + "a" + _some(c, _URL_SAFE, 35),
    "google-token": lambda c: c.choice(["GOC" + "SPX-", "ya2" + "9."]) + _some(c, _URL_SAFE, 28),
    "stripe-key": lambda c: c.choice(["sk_" + "live_", "rk_" + "test_"]) + _some(c, _LETTERS, 24),
    "telegram-token": lambda c: _some(c, "123456789", 10) + ":A" + "A" + _some(c, _URL_SAFE, 33),
    "npm-token": lambda c: "np" + "m_" + _some(c, _LETTERS, 36),
    "pypi-token": lambda c: "pypi-" + "AgEIcHlwaS5vcmc" + _some(c, _URL_SAFE, 60),
    "huggingface-token": lambda c: "h" + "f_" + _some(c, string.ascii_letters, 34),
    "sendgrid-key": lambda c: "S" + "G." + _some(c, _URL_SAFE, 22) + "." + _some(c, _URL_SAFE, 43),
    "private-key": lambda c: (
        "-----BEGIN"
        + c.choice([" RSA", " EC", " OPENSSH", ""])
        + " PRIVATE KEY-----\n"
        + "\n".join(_some(c, _LETTERS + "+/", 64) for _ in range(4))
        + "\n-----END PRIVATE KEY-----"
    ),
    "jwt": lambda c: ".".join(["ey" + "J" + _some(c, _URL_SAFE, 20)] * 2 + [_some(c, _URL_SAFE, 43)]),
}


def canaries(count: int, seed: int = 7) -> list[tuple[str, str]]:
    """(kind, key), each kind as often as the others."""
    chance = random.Random(seed)
    kinds = sorted(_MAKERS)
    return [(kind, _MAKERS[kind](chance)) for kind in (kinds * (count // len(kinds) + 1))[:count]]


def secret_part(key: str) -> str:
    """What of a key nobody may see: a middle of it that nothing else says."""
    return max(key.replace("PRIVATE KEY", "").split("\n")[1:2] or [key], key=len)[-20:]
