"""Erasure as programs use it: `store.erasure`."""

from memlog.eventlog.folders import check_store
from memlog.eventlog.writer import Log
from memlog.projector.sqlite import wrapped
from memlog.service.engine import OperationGroup
from memlog.service.erasure.byte_search import Proof, prove
from memlog.service.erasure.find_secrets import SecretPlace, secrets_in
from memlog.service.erasure.forget import forget
from memlog.service.erasure.reports import ForgetReport, ScrubReport
from memlog.service.erasure.scrub import scrub_store
from memlog.service.operations import operation
from memlog.service.requests.erasure import FindSecrets, Forget, Prove, Scrub


class Erasure(OperationGroup):
    """Forgets events, overwrites their bytes, and searches for what is left."""

    @operation(Forget, effect="erase")
    def forget(self, asked: Forget) -> ForgetReport:
        check_store(self._engine.path)
        engine = self._engine
        # It syncs redactions: forgotten events must not come back after a power cut.
        log = Log(
            engine.path,
            lock_timeout=engine.lock_timeout,
            redact=engine.redact,
            on_stored=engine.on_stored,
        )
        try:
            return forget(log, engine.read_model, asked)
        finally:
            engine.read_model.questions.empty()

    @operation(Scrub, effect="erase")
    def scrub(self, asked: Scrub) -> ScrubReport:
        check_store(self._engine.path)
        read_model = self._engine.reads.maintenance
        with read_model.mutex, wrapped("the read model"):
            done = scrub_store(read_model, self._engine.lock_timeout, asked)
        # The disk keeps the bytes of a removed generation while a connection to it is open.
        self._engine.reads.close()
        return done

    @operation(Prove, effect="read")
    def prove(self, asked: Prove) -> Proof:
        check_store(self._engine.path)
        # Who closes a file that SQLite has open in the same process drops SQLite's locks.
        with self._engine.reads.all_closed():
            self._engine.known_ids.close()
            return prove(self._engine.path, asked.text)

    @operation(FindSecrets, effect="read")
    def secrets(self, _: FindSecrets) -> list[SecretPlace]:
        """Reads the log alone."""
        check_store(self._engine.path)
        return list(secrets_in(self._engine.log_path))
