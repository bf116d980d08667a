"""Settings of providers, extraction and jobs, from `memlog.toml` or `memlog.open`."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from ipaddress import ip_address
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, shown_value
from memlog.eventlog.limits import (
    ANSWER_TOKENS,
    BUFFER_TOKENS,
    DAILY,
    EMBEDDING_BATCH,
    EMBEDDING_DIMENSION,
    EXTRACTION_THRESHOLD,
    LANGUAGE_MODEL_TIMEOUT,
    MEMORIES_PER_SESSION,
    PROVIDER_TIMEOUT,
    QUIET_MINUTES,
    RERANKED,
    TEMPERATURE,
    TOKENS_PER_DAY,
    WEEKLY,
    EmbeddingType,
    EncodingFormat,
    LanguageModelType,
    Limit,
    RerankType,
    ResponseFormat,
    SystemRole,
    TokenParameter,
)
from memlog.eventlog.secrets.detection import masked

ApiKey = str | Callable[[], str]
"""A key, or a function that returns it for each request."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that all providers share."""

    type: str = "none"
    base_url: str | None = None
    model: str | None = None
    timeout: float = PROVIDER_TIMEOUT.default
    api_key: ApiKey | None = None
    proxy: str | None = None

    def __repr__(self) -> str:
        """Show the provider without its key."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        values["api_key"] = None if self.api_key is None else "…"
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items())
        return f"{type(self).__name__}({shown})"

    def _check(
        self, kind: object, kinds: tuple[str, ...], numbers: dict[str, Limit[Any]], **choices: object
    ) -> None:
        for name, given, allowed in (
            ("type", kind, kinds),
            *((name, getattr(self, name), get_args(choice)) for name, choice in choices.items()),
        ):
            if given not in allowed:
                raise BadInput(f"{name} is {shown_value(given)}", hint=f"one of {', '.join(allowed)}")
        for name, limit in {"timeout": PROVIDER_TIMEOUT, **numbers}.items():
            value = getattr(self, name)
            if value is not None and not limit.allows(value):
                raise BadInput(f"{name} is {shown_value(value)}", hint=f"a number {limit}")
        for name in ("base_url", "proxy"):
            if getattr(self, name) is not None:
                _check_url(name, getattr(self, name))
        if kind in ("api", "tei", "anthropic") and self.base_url is None:
            raise BadInput(f"type {kind} needs base_url", hint="set it, as to https://api.example.com/v1")


class EmbeddingProvider(Provider, frozen=True, kw_only=True):
    """The provider that embeds texts.

    type: `onnx`: a model on this machine; `ollama`; `api`: OpenAI's `/v1/embeddings`, which many servers
        offer; `none`: no embeddings, full-text search only; `auto`: onnx, else Ollama if it answers, else
        none.
    base_url: for Ollama http://127.0.0.1:11434 by default; for an API include the version: https://…/v1.
    model: the provider's name for it; for Ollama all-minilm:l6-v2 by default. For onnx a folder with
        `model.onnx` and `tokenizer.json`; None for the bundled model.
    dimension: the length of the vectors; None to take it from the first vector.
    timeout: how many seconds a question waits at most for the provider.
    batch: how many texts a request has at most.
    api_key: the key, sent as a bearer token, or a function that returns it. Never shown.
    proxy: the address of a proxy, such as http://127.0.0.1:3128; None for no proxy.
    query_prefix, passage_prefix: prepended to questions and passages; None for the prefixes that the model
        was trained with, if memlog knows them.
    encoding_format: `none` to omit the parameter, which some providers refuse.

    Raises:
        BadInput: a value has the wrong type, is out of bounds, or is missing.
    """

    type: EmbeddingType = "onnx"
    dimension: int | None = None
    batch: int = EMBEDDING_BATCH.default
    query_prefix: str | None = None
    passage_prefix: str | None = None
    encoding_format: EncodingFormat = "float"

    def __post_init__(self) -> None:
        numbers = {"dimension": EMBEDDING_DIMENSION, "batch": EMBEDDING_BATCH}
        self._check(self.type, get_args(EmbeddingType), numbers, encoding_format=EncodingFormat)
        for name in ("query_prefix", "passage_prefix"):
            if not isinstance(getattr(self, name), str | None):
                raise BadInput(f"{name} is {shown_value(getattr(self, name))}", hint="give a text")
        if self.type == "api" and self.model is None:
            raise BadInput("type api needs model", hint="set model to the provider's name for it")
        if self.type == "onnx" and self.base_url is not None:
            raise BadInput("type onnx takes no base_url", hint="set type to ollama or api")


class RerankProvider(Provider, frozen=True, kw_only=True):
    """The provider that reranks search results.

    type: `api`: `/v1/rerank` of Cohere, Jina, vLLM and llama.cpp; `tei`: `/rerank` of Hugging Face's
        text-embeddings-inference.
    top_n: how many of the best hits the provider ranks.
    base_url, model, timeout, api_key, proxy: see `EmbeddingProvider`.

    Raises:
        BadInput: a value has the wrong type, is out of bounds, or is missing.
    """

    type: RerankType = "api"
    top_n: int = RERANKED.default

    def __post_init__(self) -> None:
        self._check(self.type, get_args(RerankType), {"top_n": RERANKED})


class LanguageModelProvider(Provider, frozen=True, kw_only=True):
    """The language model that distils conversations into memories.

    type: `api`: OpenAI's `/v1/chat/completions` with a JSON schema, as OpenAI, Ollama, llama.cpp, vLLM and LM
        Studio serve it; `anthropic`: Anthropic's `/v1/messages`.
    max_tokens: the most tokens of an answer.
    max_tokens_parameter, temperature, response_format, system_role: the forms of parameters that are tried
        first; `none` omits the parameter.
        A form that the provider refuses is replaced, and the replacement is remembered.
        temperature: None means 0 for `api`, omitted for `anthropic`. response_format: how JSON is enforced;
        for `anthropic` anything but `json_schema` means `none`.
    base_url, model, timeout, api_key, proxy: see `EmbeddingProvider`; nobody waits for this one.

    Raises:
        BadInput: a value has the wrong type, is out of bounds, or is missing.
    """

    type: LanguageModelType = "api"
    timeout: float = LANGUAGE_MODEL_TIMEOUT.default
    max_tokens: int = ANSWER_TOKENS.default
    max_tokens_parameter: TokenParameter = "max_tokens"
    temperature: float | Literal["none"] | None = None
    response_format: ResponseFormat = "json_schema"
    system_role: SystemRole = "system"

    def __post_init__(self) -> None:
        numbers: dict[str, Limit[Any]] = {"max_tokens": ANSWER_TOKENS, "timeout": LANGUAGE_MODEL_TIMEOUT}
        if self.temperature != "none":
            numbers["temperature"] = TEMPERATURE
        self._check(
            self.type,
            get_args(LanguageModelType),
            numbers,
            max_tokens_parameter=TokenParameter,
            response_format=ResponseFormat,
            system_role=SystemRole,
        )

    @property
    def name(self) -> str:
        """The name of the model; if none is set, the type of the API."""
        return self.model or self.type

    @property
    def is_of_this_machine(self) -> bool:
        """Whether what is sent to the provider stays on this machine."""
        host = urlsplit(self.base_url or "").hostname or ""
        if host == "localhost":
            return True
        with suppress(ValueError):
            return ip_address(host).is_loopback
        return False

    @property
    def place(self) -> str:
        """The address of the provider as written to the log."""
        return self.base_url or self.type


class ExtractionRules(msgspec.Struct, frozen=True, kw_only=True):
    """When messages are distilled, and which memories are kept.

    enabled: False to use no language model, neither for conversations nor in jobs.
    quiet_minutes: distil a chat after so many minutes without a message. tokens: distil it immediately when
        its buffer has so many; also the limit of one request.
    max_tokens_per_day: the most tokens of requests and answers in a UTC day, for extraction and jobs
        together.
    channels: channels or import formats whose messages may be sent to a provider on another machine.
    threshold: the least importance of a memory that is kept. max_per_session: the most memories per session.
    prompts_dir: a folder; a file NAME.md there replaces memlog's prompt NAME.

    Raises:
        BadInput: a number is out of bounds.
    """

    enabled: bool = True
    quiet_minutes: float = QUIET_MINUTES.default
    tokens: int = BUFFER_TOKENS.default
    threshold: float = EXTRACTION_THRESHOLD.default
    max_per_session: int = MEMORIES_PER_SESSION.default
    max_tokens_per_day: int = TOKENS_PER_DAY.default
    channels: tuple[str, ...] = ()
    prompts_dir: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.channels, str) or not all(isinstance(each, str) for each in self.channels):
            raise BadInput(f"channels is {shown_value(self.channels)}", hint="give a list of names")
        limits: dict[str, Limit[Any]] = {
            "quiet_minutes": QUIET_MINUTES,
            "tokens": BUFFER_TOKENS,
            "threshold": EXTRACTION_THRESHOLD,
            "max_per_session": MEMORIES_PER_SESSION,
            "max_tokens_per_day": TOKENS_PER_DAY,
        }
        for name, limit in limits.items():
            if not limit.allows(getattr(self, name)):
                raise BadInput(f"{name} is {shown_value(getattr(self, name))}", hint=f"a number {limit}")


def _check_url(name: str, url: str) -> None:
    example = "https://api.example.com/v1" if name == "base_url" else "http://127.0.0.1:3128"
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        raise BadInput(f"{name} is {masked(shown_value(url))}", hint=f"such as {example}")
    if parts.username or parts.password or parts.query or parts.fragment:
        hint = 'give it as api_key = "${NAME}"' if name == "base_url" else f"such as {example}"
        raise BadInput(f"{name} has a password, a query or a fragment", hint=hint)


OFF = "off"

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TIME = re.compile(r"(?a)([01]?\d|2[0-3]):([0-5]\d)")


class Slot(NamedTuple):
    """A time at which a job is due.

    period: the local day of the slot. ts: its time in UTC.
    """

    period: str
    ts: str


class Schedule(NamedTuple):
    """The time of day at which a job is due.

    weekday: 0 is Monday; None means every day.
    """

    weekday: int | None
    at: time
    zone: tzinfo | None

    @property
    def words(self) -> str:
        """The schedule in words: `daily at 03:00 Europe/Helsinki`."""
        now = datetime.now().astimezone(self.zone)
        zone = getattr(self.zone, "key", None) or timestamps.zone_name(now)
        day = "daily" if self.weekday is None else f"on {_DAYS[self.weekday].capitalize()}"
        return f"{day} at {self.at:%H:%M} {zone}"

    def latest(self, now: str) -> Slot:
        """Return the last slot at or before `now`."""
        return max(slot for slot in self._slots_around(now) if slot.ts <= now)

    def next(self, now: str) -> Slot:
        """Return the first slot after `now`."""
        return min(slot for slot in self._slots_around(now) if slot.ts > now)

    def _slots_around(self, now: str) -> list[Slot]:
        today = timestamps.in_zone(now, self.zone).date()
        days = (today + timedelta(days=shift) for shift in range(-8, 9))
        return [self._slot(day) for day in days if self.weekday in (None, day.weekday())]

    def _slot(self, day: date) -> Slot:
        local = datetime.combine(day, self.at)
        # A time in a skipped hour is moved to the hour after it; of a repeated hour, the first counts.
        moment = local.astimezone(UTC) if self.zone is None else local.replace(tzinfo=self.zone)
        return Slot(str(day), timestamps.normalise(moment.isoformat(), naive_is_utc=False))


class JobRules(msgspec.Struct, frozen=True, kw_only=True):
    """When jobs run.

    daily: a time, such as 03:00. weekly: a weekday and a time, such as monday 04:00. With `off`, jobs run
        only on request.
    timezone: the time zone of these times, and of contexts that name none, such as Europe/Helsinki; None for
        the system's.

    Raises:
        BadInput: a time or a time zone is invalid.
    """

    daily: str = DAILY
    weekly: str = WEEKLY
    timezone: str | None = None

    def __post_init__(self) -> None:
        self.schedules()

    def schedules(self) -> dict[str, Schedule | None]:
        """Return the schedule of each job; None for one that is off."""
        zone = load_zone(self.timezone)
        return {
            "daily": parse_schedule(self.daily, zone, has_day=False),
            "weekly": parse_schedule(self.weekly, zone, has_day=True),
        }


def parse_schedule(text: str, zone: tzinfo | None = None, *, has_day: bool) -> Schedule | None:
    """Parse the schedule in a setting; None if it is off.

    Raises:
        BadInput: the setting is invalid.
    """
    hint = "such as monday 04:00, or off" if has_day else "such as 03:00, or off"
    if not isinstance(text, str):
        raise BadInput(f"the time of a job is {shown_value(text)}", hint=hint)
    *day, clock = text.lower().split() or [""]
    if [*day, clock] == [OFF]:
        return None
    found = _TIME.fullmatch(clock)
    weekdays = [number for number, name in enumerate(_DAYS) if day in ([name], [name[:3]])]
    if found is None or len(day) != has_day or len(weekdays) != has_day:
        raise BadInput(f"invalid time of a job: {text!r}", hint=hint)
    return Schedule(next(iter(weekdays), None), time(int(found[1]), int(found[2])), zone)


def load_zone(name: str | None) -> tzinfo | None:
    """Return a time zone by name; None, for the system's zone, if `name` is None.

    Raises:
        BadInput: no time zone has this name.
    """
    if name is None:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
        raise BadInput(f"unknown time zone: {shown_value(name)}", hint="such as Europe/Helsinki") from error
