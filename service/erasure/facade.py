"""Erasure as programs use it: `store.erasure`."""

from collections.abc import Callable
from pathlib import Path

from memlog.eventlog.chat import Chat
from memlog.eventlog.folders import check_store
from memlog.eventlog.layout import LOG
from memlog.eventlog.writer import Log
from memlog.projector.sqlite import wrapped
from memlog.service.erasure.byte_search import Proof, prove
from memlog.service.erasure.find_secrets import SecretPlace, secrets_in
from memlog.service.erasure.forget import ForgetReport, Forgetting
from memlog.service.erasure.scrub import ScrubReport, scrub_store
from memlog.service.operations import operation
from memlog.service.read_model import ReadModel
from memlog.service.read_pool import ReadPool
from memlog.service.requests.erasure import FindSecrets, Forget, Prove, Scrub


class Erasure:
    """Forgets events, overwrites their bytes, and searches for what is left.

    log: appends redactions, and syncs whatever the durability of the store is.
    lock_timeout: seconds to wait for writers.
    close_files: closes the database files of the store that `reads` does not hold.
    """

    def __init__(
        self,
        path: Path,
        read_model: ReadModel,
        reads: ReadPool,
        log: Log,
        lock_timeout: float,
        close_files: Callable[[], None],
    ) -> None:
        self._path = path
        self._read_model = read_model
        self._reads = reads
        self._log = log
        self._lock_timeout = lock_timeout
        self._close_files = close_files

    @operation(Forget)
    def forget(self, asked: Forget) -> ForgetReport:
        check_store(self._path)
        forgetting = Forgetting(self._log, self._read_model, asked.reason, asked.confirm)
        if asked.chat is not None:
            return forgetting.chat(Chat.of(asked.chat))
        if asked.memory is not None:
            return forgetting.memory(asked.memory)
        if asked.match is not None:
            return forgetting.match(asked.match)
        assert asked.event_id is not None
        return forgetting.event(asked.event_id, asked.stream)

    @operation(Scrub)
    def scrub(self, asked: Scrub) -> ScrubReport:
        check_store(self._path)
        with self._read_model.mutex, wrapped("the read model"):
            done = scrub_store(self._read_model, self._lock_timeout, asked.confirm, asked.progress)
        # The disk keeps the bytes of a removed generation while a connection to it is open.
        self._reads.close()
        return done

    @operation(Prove)
    def prove(self, asked: Prove) -> Proof:
        check_store(self._path)
        # Who closes a file that SQLite has open in the same process drops SQLite's locks.
        with self._reads.all_closed():
            self._close_files()
            return prove(self._path, asked.text)

    @operation(FindSecrets)
    def secrets(self, _: FindSecrets) -> list[SecretPlace]:
        """Reads the log alone."""
        check_store(self._path)
        return secrets_in(self._path / LOG)
