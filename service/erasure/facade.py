"""Erasure as programs use it: `store.erasure`."""

from collections.abc import Callable
from pathlib import Path

from memlog.eventlog.folders import check_store
from memlog.eventlog.layout import LOG
from memlog.eventlog.writer import Log
from memlog.projector.sqlite import wrapped
from memlog.service.erasure.byte_search import Proof, prove
from memlog.service.erasure.find_secrets import SecretPlace, secrets_in
from memlog.service.erasure.forget import forget
from memlog.service.erasure.reports import ForgetReport, ScrubReport
from memlog.service.erasure.scrub import scrub_store
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
        return forget(self._log, self._read_model, asked)

    @operation(Scrub)
    def scrub(self, asked: Scrub) -> ScrubReport:
        check_store(self._path)
        with self._read_model.mutex, wrapped("the read model"):
            done = scrub_store(self._read_model, self._lock_timeout, asked)
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
        return list(secrets_in(self._path / LOG))
