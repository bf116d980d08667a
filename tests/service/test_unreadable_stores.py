"""What the system does not let memlog read is an error of memlog's, with its path, and `examine` finds it."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlog
from memlog.cli.process.error_handler import error_to_failure, exit_code_of
from memlog.eventlog.files import disk

CALLS: dict[str, Callable[[memlog.Store], object]] = {
    "search": lambda store: store.search("tea", mode="text"),
    "window": lambda store: store.conversations.window("c:1"),
    "get": lambda store: store.get("m1"),
    "core": lambda store: store.core.get("user"),
    "save": lambda store: store.memories.save("black tea"),
    "append": lambda store: store.append({"type": "redacted", "target_id": "m1"}),
    "status": lambda store: store.maintenance.status(),
    "stats": lambda store: store.maintenance.stats(),
    "verify": lambda store: store.maintenance.verify(),
    "digest": lambda store: store.maintenance.digest(),
    "seal": lambda store: store.maintenance.seal(),
    "secrets": lambda store: store.erasure.secrets(),
    "scrub": lambda store: store.erasure.scrub(),
}


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets the system refuse to list the folders of the log, with an error of this number."""
    real = disk.scan_folder

    def start(number: int) -> None:
        def entries(folder: Path | str | int) -> Any:
            if not isinstance(folder, int) and "/log" in str(folder):
                raise OSError(number, "refused", str(folder))
            return real(folder)

        monkeypatch.setattr(disk, "scan_folder", entries)

    return start


@pytest.fixture
def store(tmp_path: Path) -> memlog.Store:
    store = memlog.Store(tmp_path)
    store.append(memlog.Message(id="m1", channel="c", chat_id="1", role="user", content="green tea"))
    return store


def test_what_cannot_be_read_is_an_error_of_the_log(
    store: memlog.Store, refuse: Callable[[int], None]
) -> None:
    refuse(errno.EACCES)
    for name, call in CALLS.items():
        with pytest.raises(memlog.LogError, match=r"/log.*: refused") as told:
            pytest.fail(f"{name} gave {call(store)}")
        assert (told.value.code, bool(told.value.hint)) == ("log_io", True), name
        assert (exit_code_of(told.value), error_to_failure(told.value).code) == (74, "log_io"), name


def test_a_lack_of_descriptors_stays_a_lack_of_resources(
    store: memlog.Store, refuse: Callable[[int], None]
) -> None:
    refuse(errno.EMFILE)
    with pytest.raises(memlog.LogError) as told:
        store.maintenance.stats()
    assert (exit_code_of(told.value), error_to_failure(told.value).code) == (71, "resources")


def test_examine_finds_what_cannot_be_read_and_goes_on(
    store: memlog.Store, refuse: Callable[[int], None]
) -> None:
    refuse(errno.EACCES)
    findings = {each.check: each for each in store.maintenance.examine()}
    assert findings["log"].state == "problem"
    assert "refused" in findings["log"].finding
    assert findings["log"].remedy.startswith("chmod")
    assert {"sqlite", "disk", "cache"} <= set(findings)
