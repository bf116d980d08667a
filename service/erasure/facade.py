"""Erasure as programs use it: `store.erasure`."""

from memlog.eventlog.chat import Chat
from memlog.eventlog.store_folder import check_store
from memlog.projector.sqlite import wrapped
from memlog.service.engine import OperationGroup
from memlog.service.erasure.byte_search import Proof, prove
from memlog.service.erasure.find_secrets import SecretPlace, secrets_in
from memlog.service.erasure.forget import ForgetReport, Forgetting, log_that_syncs
from memlog.service.erasure.scrub import ScrubReport, scrub_store
from memlog.service.operations import operation
from memlog.service.requests.erasure import FindSecrets, Forget, Prove, Scrub


class Erasure(OperationGroup):
    """Forgets events, overwrites their bytes, and searches for what is left."""

    @operation(Forget)
    def forget(self, asked: Forget) -> ForgetReport:
        check_store(self._engine.path)
        engine = self._engine
        log = log_that_syncs(
            engine.path, engine.log.lock_timeout, redact=engine.redact, on_stored=engine.on_stored
        )
        forgetting = Forgetting(log, engine.read_model, asked.reason, asked.confirm)
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
        check_store(self._engine.path)
        read_model, lock_timeout = self._engine.read_model, self._engine.log.lock_timeout
        with read_model.mutex, wrapped("the read model"):
            done = scrub_store(read_model, lock_timeout, asked.confirm, asked.progress)
        # The disk keeps the bytes of a removed generation while a connection to it is open.
        self._engine.reads.close()
        return done

    @operation(Prove)
    def prove(self, asked: Prove) -> Proof:
        check_store(self._engine.path)
        # Who closes a file that SQLite has open in the same process drops SQLite's locks.
        with self._engine.reads.all_closed():
            self._engine.known_ids.close()
            return prove(self._engine.path, asked.text)

    @operation(FindSecrets)
    def secrets(self, _: FindSecrets) -> list[SecretPlace]:
        """Reads the log alone."""
        check_store(self._engine.path)
        return secrets_in(self._engine.log.path)
