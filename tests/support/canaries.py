"""Keys that no service has issued, of every kind that memlog masks, made from what the issuers document.

The makers know nothing of the patterns in `memlog.eventlog.secrets.keys`, so that the two can differ.
"""

import base64
import random
import string
from collections.abc import Callable
from typing import NamedTuple

_LETTERS = string.ascii_letters + string.digits
_URL_SAFE = _LETTERS + "-_"
_BASE64 = _LETTERS + "+/"
_UPPER = string.ascii_uppercase + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"
_DIGITS = string.digits


class Canary(NamedTuple):
    """A text and the `key` in it that is to be masked. Some keys are known by the text before them alone."""

    kind: str
    text: str
    key: str


class Chance(random.Random):
    """Random texts."""

    def some(self, characters: str, count: int) -> str:
        return "".join(self.choices(characters, k=count))

    def uuid(self) -> str:
        return "-".join(self.some(_HEX, count) for count in (8, 4, 4, 4, 12))

    def base64(self, count: int) -> str:
        return base64.b64encode(self.randbytes(count)).decode()


def _pem(c: Chance) -> str:
    kind = c.choice([" RSA", " EC", " OPENSSH", " ENCRYPTED", ""])
    lines = "\n".join(c.some(_BASE64, 64) for _ in range(4))
    return f"-----BEGIN{kind} PRIVATE KEY-----\n{lines}\n-----END{kind} PRIVATE KEY-----"


def _discord(c: Chance) -> str:
    account = base64.b64encode(str(c.randrange(10**17, 10**19)).encode()).decode().rstrip("=")
    return f"{account}.{c.some(_URL_SAFE, 6)}.{c.some(_URL_SAFE, c.choice([27, 38]))}"


def _token(c: Chance) -> str:
    return c.choice(_LETTERS) + c.some(_LETTERS + "._-", 40) + "7" + c.some(_LETTERS, 6)


# The beginnings are written in two parts: whole, these lines would be taken for leaked keys themselves.
_KEYS: dict[str, Callable[[Chance], str]] = {
    "private-key": _pem,
    "age-key": lambda c: "AGE-SECRET" + "-KEY-1" + c.some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "aws-key": lambda c: c.choice(["AKI" + "A", "ASI" + "A"]) + c.some(_UPPER, 16),
    "azure-client-secret": lambda c: c.some(_LETTERS, 3) + "8Q" + "~" + c.some(_LETTERS + "_-.~", 33) + "a",
    "github-token": lambda c: c.choice(
        [
            "gh" + c.choice("pousr") + "_" + c.some(_LETTERS, 36),
            "github_" + "pat_" + c.some(_LETTERS, 22) + "_" + c.some(_LETTERS, 59),
        ]
    ),
    "gitlab-token": lambda c: "gl" + c.choice(["pat-", "dt-", "rt-", "ptt-"]) + c.some(_URL_SAFE, 20),
    "anthropic-key": lambda c: "sk-" + "ant-api03-" + c.some(_URL_SAFE, 93) + "AA",
    "openrouter-key": lambda c: "sk-" + "or-v1-" + c.some(_HEX, 64),
    "langfuse-key": lambda c: "sk-" + "lf-" + c.uuid(),
    "openai-key": lambda c: c.choice(["sk-proj-", "sk-svcacct-", "s" + "k-"]) + "T3A" + c.some(_LETTERS, 48),
    "deepseek-key": lambda c: "s" + "k-" + c.some(_HEX, 32),
    "elevenlabs-key": lambda c: "s" + "k_" + c.some(_HEX, 48),
    "groq-key": lambda c: "gs" + "k_" + c.some(_LETTERS, 52),
    "xai-key": lambda c: "xa" + "i-" + c.some(_LETTERS, 80),
    "perplexity-key": lambda c: "ppl" + "x-" + c.some(_LETTERS, 48),
    "replicate-key": lambda c: "r" + "8_" + c.some(_LETTERS, 37),
    "nvidia-key": lambda c: "nv" + "api-" + c.some(_URL_SAFE, 64),
    "huggingface-token": lambda c: "h" + "f_" + c.some(string.ascii_letters, 34),
    "langsmith-key": lambda c: "lsv2" + "_pt_" + c.some(_HEX, 32) + "_" + c.some(_HEX, 10),
    "tavily-key": lambda c: "tv" + "ly-" + c.choice(["dev-", ""]) + c.some(_LETTERS, 32),
    "slack-token": lambda c: (
        "xox" + c.choice("abprs") + "-" + c.some(_DIGITS, 12) + "-" + c.some(_LETTERS, 24)
    ),
    "slack-webhook": lambda c: (
        f"hooks.slack{'.com'}/services/T{c.some(_UPPER, 8)}/B{c.some(_UPPER, 8)}/{c.some(_LETTERS, 24)}"
    ),
    "discord-webhook": lambda c: f"discord{'.com'}/api/webhooks/{c.some('123', 19)}/{c.some(_URL_SAFE, 68)}",
    "discord-token": _discord,
    "telegram-token": lambda c: c.some("123456789", 10) + ":A" + "A" + c.some(_URL_SAFE, 33),
    "google-key": lambda c: "AIz" + "a" + c.some(_URL_SAFE, 35),
    "google-token": lambda c: c.choice(["GOC" + "SPX-", "ya2" + "9."]) + c.some(_URL_SAFE, 28),
    "stripe-key": lambda c: c.choice(["sk_" + "live_", "rk_" + "test_"]) + c.some(_LETTERS, 24),
    "square-key": lambda c: c.choice(
        ["sq0" + "atp-" + c.some(_URL_SAFE, 22), "EAA" + "A" + c.some(_URL_SAFE, 60)]
    ),
    "shopify-token": lambda c: "shp" + c.choice(["at", "ca", "pa", "ss"]) + "_" + c.some(_HEX, 32),
    "npm-token": lambda c: "np" + "m_" + c.some(_LETTERS, 36),
    "pypi-token": lambda c: "pypi-" + "AgEIcHlwaS5vcmc" + c.some(_URL_SAFE, 60),
    "rubygems-key": lambda c: "ruby" + "gems_" + c.some(_HEX, 48),
    "docker-token": lambda c: "dckr" + "_pat_" + c.some(_URL_SAFE, 27),
    "digitalocean-token": lambda c: "do" + c.choice("por") + "_v1_" + c.some(_HEX, 64),
    "cloudflare-token": lambda c: (
        c.choice(["cfut_", "cfat_", "cfk_"]) + c.some(_LETTERS, 40) + c.some(_HEX, 8)
    ),
    "heroku-key": lambda c: "HRK" + "U-AA" + c.some(_URL_SAFE, 58),
    "fly-token": lambda c: c.choice(["fo" + "1_" + c.some(_URL_SAFE, 43), "fm" + "2_" + c.base64(150)]),
    "vercel-token": lambda c: "vc" + c.choice("piark") + "_" + c.some(_LETTERS, 56),
    "netlify-token": lambda c: "nf" + "p_" + c.some(_LETTERS, 36),
    "supabase-key": lambda c: c.choice(
        [
            "sb" + "p_" + c.some(_HEX, 40),
            "sb_" + "secret_" + c.some(_URL_SAFE, 22) + "_" + c.some(_URL_SAFE, 8),
        ]
    ),
    "planetscale-key": lambda c: "psc" + "ale_" + c.choice(["tkn_", "pw_"]) + c.some(_URL_SAFE, 43),
    "databricks-token": lambda c: "dap" + "i" + c.some(_HEX, 32) + c.choice(["", "-2"]),
    "grafana-token": lambda c: c.choice(
        ["gl" + "sa_" + c.some(_LETTERS, 32) + "_" + c.some(_HEX, 8), "gl" + "c_" + c.base64(60)]
    ),
    "vault-token": lambda c: "hv" + c.choice("sb") + "." + c.some(_URL_SAFE, 95),
    "terraform-token": lambda c: c.some(_LETTERS, 14) + ".atlas" + "v1." + c.some(_LETTERS, 67),
    "pulumi-token": lambda c: "pu" + "l-" + c.some(_HEX, 40),
    "doppler-token": lambda c: "dp" + c.choice([".pt.", ".st.dev.", ".ct."]) + c.some(_LETTERS, 43),
    "atlassian-token": lambda c: "ATA" + "TT3xFfGF0" + c.some(_URL_SAFE, 173) + "=" + c.some(_UPPER, 8),
    "linear-key": lambda c: "lin" + "_api_" + c.some(_LETTERS, 40),
    "notion-token": lambda c: c.choice(
        ["nt" + "n_" + c.some(_DIGITS, 11) + c.some(_LETTERS, 35), "sec" + "ret_" + c.some(_LETTERS, 43)]
    ),
    "airtable-token": lambda c: "pa" + "t" + c.some(_LETTERS, 14) + "." + c.some(_HEX, 64),
    "figma-token": lambda c: "fig" + "d_" + c.some(_URL_SAFE, 40),
    "postman-key": lambda c: "PMA" + "K-" + c.some(_HEX, 24) + "-" + c.some(_HEX, 34),
    "hubspot-token": lambda c: "pat-" + c.choice(["na1-", "eu1-"]) + c.uuid(),
    "twilio-key": lambda c: "S" + "K" + c.some(_HEX, 32),
    "sendgrid-key": lambda c: "S" + "G." + c.some(_URL_SAFE, 22) + "." + c.some(_URL_SAFE, 43),
    "mailgun-key": lambda c: "ke" + "y-" + c.some(_HEX, 32),
    "mailchimp-key": lambda c: c.some(_HEX, 32) + "-u" + "s" + c.choice(["1", "21"]),
    "resend-key": lambda c: "r" + "e_" + c.some(_LETTERS, 8) + "_" + c.some(_LETTERS, 24),
    "sentry-token": lambda c: c.choice(
        [
            "sntr" + "yu_" + c.some(_HEX, 64),
            "sntr" + "ys_eyJ" + c.some(_LETTERS, 80) + "_" + c.some(_LETTERS, 43),
        ]
    ),
    "newrelic-key": lambda c: c.choice(["NRA" + "K-" + c.some(_UPPER, 27), c.some(_HEX, 36) + "NRA" + "L"]),
    "posthog-key": lambda c: "ph" + "x_" + c.some(_LETTERS, 43),
    "dynatrace-token": lambda c: "dt0" + "c01." + c.some(_UPPER, 24) + "." + c.some(_UPPER, 64),
    "buildkite-token": lambda c: "bk" + "ua_" + c.some(_LOWER, 40),
    "sonar-token": lambda c: "sq" + c.choice("upa") + "_" + c.some(_HEX, 40),
    "1password-token": lambda c: "ops" + "_eyJ" + c.some(_LETTERS, 600),
    "jwt": lambda c: ".".join(["ey" + "J" + c.some(_URL_SAFE, 20)] * 2 + [c.some(_URL_SAFE, 43)]),
}

# Known by what stands before them: (before, key, behind).
_NAMED: dict[str, Callable[[Chance], tuple[str, str, str]]] = {
    "aws-secret-key": lambda c: (
        c.choice(["aws_secret_access_key = ", "AWS_SECRET_ACCESS_KEY=", '"SecretAccessKey": "']),
        c.base64(30),
        "",
    ),
    "azure-storage-key": lambda c: (
        f"DefaultEndpointsProtocol=https;AccountName=a{c.some(_LOWER, 9)};AccountKey=",
        c.base64(64),
        ";EndpointSuffix=core.windows.net",
    ),
    "azure-access-key": lambda c: (
        f"Endpoint=sb://{c.some(_LOWER, 9)}.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey=",
        c.base64(32),
        ";EntityPath=q",
    ),
    "azure-signature": lambda c: (
        f"https://{c.some(_LOWER, 9)}.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=",
        c.base64(32).replace("+", "-").replace("/", "_"),
        "&sp=r",
    ),
    "database-url": lambda c: (
        c.choice(
            ["postgres://app:", "postgresql+psycopg://app:", "mongodb+srv://app:", "redis://:", "amqp://m:"]
        ),
        c.some(_LETTERS, 8) + c.choice("-!.~") + c.some(_LETTERS, 8),
        "@db.internal:5432/main",
    ),
    "url-password": lambda c: (
        c.choice(["https://deploy:", "ftp://deploy:"]),
        c.some(_LETTERS, 18),
        "@files.example.com/a",
    ),
    "named-secret": lambda c: (
        c.choice(["DB_PASSWORD=", "export DATADOG_API_KEY=", "CLIENT_SECRET: ", '"SMTP_PASSWORD": ']),
        c.some(_LETTERS, 5) + "4x" + c.some("!%+/=@^~-", 1) + c.some(_LETTERS, 12),
        "",
    ),
    "basic-auth": lambda c: (
        "Authorization: Basic ",
        base64.b64encode(f"deploy:{c.some(_LETTERS, 18)}".encode()).decode(),
        "",
    ),
    "bearer-token": lambda c: (
        c.choice(["Authorization: Bearer ", "curl -H 'authorization: Bearer "]),
        _token(c),
        "",
    ),
}


def _made(kind: str, chance: Chance) -> Canary:
    if kind in _KEYS:
        key = _KEYS[kind](chance)
        return Canary(kind, key, key)
    before, key, behind = _NAMED[kind](chance)
    return Canary(kind, before + key + behind, key)


def canaries(count: int, seed: int = 7) -> list[Canary]:
    """`count` canaries, each kind as often as the others."""
    chance = Chance(seed)
    kinds = sorted([*_KEYS, *_NAMED])
    return [_made(kind, chance) for kind in (kinds * (count // len(kinds) + 1))[:count]]


def secret_part(key: str) -> str:
    """What of a key nobody may see: a middle of it that nothing else says."""
    return max(key.replace("PRIVATE KEY", "").split("\n")[1:2] or [key], key=len)[-20:]
