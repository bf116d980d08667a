"""What must hold of a store whose read model or vector cache a power cut has hit."""

from pathlib import Path

from memlog.service.store import Store
from tests.crash.faults.projecting_scenarios import Traced, append, relative_log
from tests.crash.faults.recovery import NEXT


def read_model_problems(store: Path, done: Traced, *, verify: bool) -> list[str]:
    """Ask the store, append one more event and ask again; say what is wrong, nothing where all is well.

    verify: compare the full text with a replay's, too, and have SQLite and vectors checked.
    """
    told: list[str] = []
    try:
        with Store(store, notify=told.append) as opened:
            problems = [
                *_answer_problems(opened, done, done.ids),
                *(
                    ["the digest is not that of a replay"]
                    if opened.maintenance.digest() != done.digest
                    else []
                ),
                *(opened.maintenance.verify().problems if verify else []),
                *(["the log was touched"] if relative_log(store) != done.log else []),
            ]
            append(store, NEXT)
            problems += _answer_problems(opened, done, {*done.ids, NEXT})
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    lost = [f"the live generation is lost: {note}" for note in told if done.had_one and "built one" in note]
    return problems + lost


def _answer_problems(opened: Store, done: Traced, ids: set[str]) -> list[str]:
    found = opened.search("tea", k=100, mode="hybrid" if done.scenario.has_vectors else "text")
    said = [hit.id for hit in found.hits]
    return [
        *([] if sorted(said) == sorted(ids) else [f"the query found {sorted(said)}"]),
        *([] if found.synced else ["the query was not synced"]),
        *[f"{what} is silent: {why}" for what, why in found.silent.items()],
    ]
