"""The blocks of docs/python.md run, and what the page says of the API is so."""

import re
import subprocess
import sys

import msgspec

import memlog
from tests.support.places import ROOT

PAGE = (ROOT / "docs/python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


EACH = """
import sys
for block in sys.argv[1:]:
    exec(block, {"__name__": "__main__"})
    print(end="\\0", flush=True)
"""


def test_the_blocks_of_the_page_run_as_they_stand(tmp_path):
    """In one process, which imports memlog and loads the model once."""
    command = [sys.executable, "-W", "error", "-c", EACH, *BLOCKS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    first, looked_after, failing, waiting, _ = done.stdout.split("\0")
    segment = r"\d{4}-\d\d-\d\d\.\w{6}\.jsonl"
    assert re.search(rf"Anna likes green tea memory/{segment}:1$", first, re.MULTILINE)
    assert re.fullmatch(r"[0-9a-f]{64}\n", looked_after)
    assert failing == ""
    assert "The kettle is new" in waiting
    assert "Anna likes green tea" in waiting


def test_a_store_is_opened_for_asyncio_on_the_page():
    assert any("async with memlog.open_async(" in block for block in BLOCKS)


def test_the_page_names_every_call_and_every_error():
    calls = [
        name for name, value in vars(memlog.Store).items() if callable(value) and not name.startswith("_")
    ]
    for name in {*calls} - {"stream_with"}:
        assert re.search(rf"`{name}[`(]", PAGE), name
    for name, value in memlog._modules().items():
        if value == "memlog.eventlog.errors":
            assert name in PAGE, name


def test_a_result_encodes_to_what_the_command_prints(store):
    document = msgspec.json.decode(msgspec.json.encode(store.search("tea", mode="text")))
    assert list(document) == ["hits", "mode", "synced", "silent", "took_ms", "certain"]


def test_a_closed_store_can_be_used_again_and_a_process_that_does_not_close_loses_nothing(tmp_path):
    store = memlog.open(tmp_path)
    store.append([memlog.MemorySaved(content="tea")])
    assert store.search("tea", mode="text").hits
    store.close()
    assert store.search("tea", mode="text").hits
    with memlog.open(tmp_path) as other:
        assert other.maintenance.status().events == 1
    store.close()
