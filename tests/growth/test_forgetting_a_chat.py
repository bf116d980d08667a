"""Forgetting a chat takes fewer steps than projecting it."""

from pathlib import Path

import memlog
from tests.growth.store_growth import counted, messages

COUNT = 2_000


def test_forgetting_a_chat_takes_fewer_steps_than_projecting_it(tmp_path: Path) -> None:
    """A redaction for each event would take more."""
    messages(tmp_path, COUNT)
    with counted() as steps, memlog.open(tmp_path, durability="os") as store:
        projecting = steps(lambda: store.maintenance.project(embed=False, from_scratch=True))
        forgetting = steps(lambda: store.erasure.forget(chat=("c", "1")))
    assert forgetting < projecting
