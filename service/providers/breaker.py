"""Remembers which providers failed, so that a dead one is not asked each time.

`cache/providers.json` has it for all processes of a store: a command that starts anew does not wait again.
"""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.errors import ProviderError
from memlog.eventlog.folders import make_path
from memlog.eventlog.layout import LOG, PROVIDERS
from memlog.projector import atomic_file
from memlog.service.providers.endpoint import Endpoint
from memlog.service.providers.settings import Provider

_FIRST_REST = 30.0
_LONGEST_REST = 600.0

_unwritten: "dict[tuple[Path, str], ProviderRecord]" = {}
"""Records by store and provider that could not be written."""


class ProviderRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a provider.

    dimension: of its vectors. failures: in a row; errors: all. failure, failed_at: of the last one, without
    what the provider said. error: by older versions, which had that in it: it is dropped.
    rests_until: seconds since 1970; nobody asks it before.
    spent: tokens of questions and answers on the day spent_on, in UTC.
    forms: of parameters, where it refused another one: `max_tokens`: `max_completion_tokens`.
    """

    dimension: int | None = None
    failures: int = 0
    errors: int = 0
    failure: str | None = None
    error: str | None = None
    failed_at: str | None = None
    rests_until: float = 0.0
    forms: dict[str, str] = {}
    spent_on: str | None = None
    spent: int = 0

    @property
    def rests(self) -> bool:
        """Whether nobody asks it now. A clock that was set back does not make it rest for ever."""
        return 0 < self.rests_until - time.time() <= _LONGEST_REST


class ProviderState(msgspec.Struct, kw_only=True):
    """A provider that a store is to ask, and how it does.

    role: `embedding` or `rerank`. base_url: where texts are sent; None for the address by default.
    failures: in a row. error, failed_at: of the last one; what the provider said of it only as a hash.
    rests_until: nobody asks it before.
    """

    role: str
    type: str
    base_url: str | None
    model: str | None
    failures: int
    error: str | None
    failed_at: str | None
    rests_until: str | None


class Breaker:
    """A circuit breaker: after a failure a provider rests, 30 s at first, twice as long each time, 10 minutes
    at most. https://martinfowler.com/bliki/CircuitBreaker.html

    role: `embedding` or `rerank`.
    """

    def __init__(self, store: Path, role: str, provider: Provider) -> None:
        self._store, self._role, self._provider = store, role, provider
        names = (role, provider.type, provider.base_url, provider.model)
        self._name = " ".join(name for name in names if name)

    def endpoint(self, url: str, **headers: Any) -> Endpoint:  # noqa: ANN401 - as `Endpoint` takes them
        """An address of the provider."""
        provider = self._provider
        return Endpoint(url, provider.api_key, self._store, proxy=provider.proxy, **headers)

    def record(self) -> ProviderRecord:
        """What is known of the provider."""
        own = _unwritten.get((self._store, self._name))
        return own or _records(self._store).get(self._name) or ProviderRecord()

    def state(self) -> ProviderState:
        """For people and programs that ask how it does."""
        record, provider = self.record(), self._provider
        return ProviderState(
            role=self._role,
            type=provider.type,
            base_url=provider.base_url,
            model=provider.model,
            failures=record.failures,
            error=record.failure,
            failed_at=record.failed_at,
            rests_until=timestamps.of_seconds(record.rests_until) if record.rests else None,
        )

    def check(self) -> None:
        """Raise ProviderError while the provider rests."""
        record = self.record()
        if record.rests:
            until = timestamps.of_seconds(record.rests_until)
            why = record.failure or f"{self._name}: it failed"
            error = ProviderError(f"{why} (not asked again before {until})", retryable=True)
            error.is_resting = True
            raise error

    def failed(self, error: ProviderError, *, rests: bool = True) -> None:
        """Note a failure; not one of this machine, such as a key that is missing.

        rests: whether the provider rests.
        """
        known = self.record()
        if error.is_local:
            return
        if known.rests and rests:  # those that were asked at the same time have failed with it
            self._write(replace(known, errors=known.errors + 1))
            return
        rest = min(_LONGEST_REST, max(_FIRST_REST * 2 ** min(known.failures, 8), error.retry_after or 0.0))
        self._write(
            replace(
                known,
                failures=known.failures + 1,
                errors=known.errors + 1,
                failure=error.message,
                failed_at=timestamps.now(),
                rests_until=time.time() + rest if rests else known.rests_until,
            )
        )

    def missed(self, count: int) -> None:
        """Count failures of what was not asked."""
        if count:
            known = self.record()
            self._write(replace(known, errors=known.errors + count))

    def spent_today(self) -> int:
        """Return the tokens that were spent today, as far as the cache knows."""
        record = self.record()
        return record.spent if record.spent_on == timestamps.today() else 0

    def spend(self, tokens: int) -> None:
        """Note that a question and its answer took tokens."""
        spent = self.spent_today() + tokens
        self._write(replace(self.record(), spent_on=timestamps.today(), spent=spent))

    def learn(self, forms: dict[str, str]) -> None:
        """Note in which forms the provider takes parameters."""
        known = self.record()
        self._write(replace(known, forms=known.forms | forms))

    def worked(self, dimension: int | None = None) -> None:
        """Note that the provider answered, and the dimension of its vectors."""
        known = self.record()
        dimension = dimension or known.dimension
        rested = {"failures": 0, "failure": None, "failed_at": None, "rests_until": 0.0}
        record = replace(known, dimension=dimension, **rested)
        if record != known:
            self._write(record)

    def _write(self, record: ProviderRecord) -> None:
        """Where it cannot be written, this process remembers it alone."""
        _unwritten[self._store, self._name] = record
        if not (self._store / LOG).is_dir():
            return
        with suppress(OSError):
            make_path((self._store / PROVIDERS).parent)
            _put(self._store, _records(self._store) | {self._name: record})
            del _unwritten[self._store, self._name]


def count_errors(store: Path, role: str) -> int:
    """How often providers of a role have failed, as far as the cache knows."""
    return sum(record.errors for name, record in _records(store).items() if name.split()[0] == role)


def forget_words(store: Path) -> None:
    """Drop what older versions kept of the words of providers, which may quote what is forgotten.

    A file that cannot be read goes, too: it is a cache.
    """
    if _known(store) is None:
        (store / PROVIDERS).unlink(missing_ok=True)


def _records(store: Path) -> dict[str, ProviderRecord]:
    return _known(store) or {}


def _known(store: Path) -> dict[str, ProviderRecord] | None:
    """The records; None for a file that cannot be read."""
    try:
        data = atomic_file.read(store / PROVIDERS)
        records = {} if data is None else msgspec.json.decode(data, type=dict[str, ProviderRecord])
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None
    if any(record.error is not None for record in records.values()):
        records = {name: replace(record, error=None) for name, record in records.items()}
        with suppress(OSError):
            _put(store, records)
    return records


def _put(store: Path, records: dict[str, ProviderRecord]) -> None:
    atomic_file.replace(store / PROVIDERS, msgspec.json.encode(records) + b"\n")
