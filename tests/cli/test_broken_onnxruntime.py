"""An onnxruntime that cannot be imported is an absent model, not a fault."""

import pytest

COMMANDS = {
    "query": ["query", "kettle", "--json"],
    "context": ["context", "where is the kettle?", "--json"],
    "project": ["project", "--from-scratch", "--json"],
    "status": ["status", "--json"],
    "doctor": ["doctor", "--json"],
    "watch": ["watch", "--once", "--json"],
}
BROKEN = {
    "not there": "raise ImportError('no such library')",
    "of another processor": "raise OSError('invalid ELF header')",
    "of another numpy": "raise AttributeError('_ARRAY_API not found')",
}


@pytest.mark.parametrize("error", BROKEN)
@pytest.mark.parametrize("command", COMMANDS)
def test_words_go_on_and_the_reason_is_named(memlog, store, tmp_path, command, error):
    memlog("core", "set", "user", "name", "Anna")
    saved = memlog("memory", "save", "--content", "The kettle is on the stove")
    assert saved.code == 0
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "onnxruntime.py").write_text(BROKEN[error])
    done = memlog(*COMMANDS[command], env={"PYTHONPATH": str(tmp_path / "site")})
    assert done.code == 0
    assert b"onnxruntime cannot be imported" in done.out + done.err
    if command in ("query", "context"):
        assert b"kettle is on the stove" in done.out
    if command == "context":
        assert b"Anna" in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_without_numpy_words_go_on(memlog, store, tmp_path, command):
    assert memlog("memory", "save", "--content", "The kettle is on the stove").code == 0
    assert memlog("embed").code == 0
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "numpy.py").write_text("raise ImportError('no such library')")
    done = memlog(*COMMANDS[command], env={"PYTHONPATH": str(tmp_path / "site")})
    assert b"no such library" in done.out + done.err
    assert done.code == (1 if command == "doctor" else 0)
