"""Libraries that read files of strangers do so in a process that is bounded in all that it takes and does."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from memlog.service.engine import sandbox
from memlog.service.engine.sandbox import ReaderFailed, Readers
from tests.support import hostile_files

_LIBRARY = """
import os, signal, socket, subprocess, sys, time

class PdfReader:
    def __init__(self, file):
        self.pages = [self]
        self.what = file.read().decode()

    def extract_text(self):
        return str(eval(self.what))
"""
"""Does what the "PDF" says: a library that a file has taken over."""


@pytest.fixture
def taken_over(tmp_path, monkeypatch):
    """Readers whose library for PDFs runs the files that it reads."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/pypdf.py").write_text(_LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"), prepend=os.pathsep)
    with closing(Readers(1, on_wait=lambda: None)) as readers:
        yield readers


@pytest.fixture
def readers():
    with closing(Readers(1, on_wait=lambda: None)) as readers:
        yield readers


def run(readers, code):
    return readers.extract_text(code.encode(), "pdf")


# Time


@pytest.mark.deep
@pytest.mark.parametrize(
    ("data", "filetype"),
    [
        (hostile_files.html_of_many_attributes(100_000), "html"),
        (hostile_files.pdf_of_shared_pages(320), "pdf"),
    ],
    ids=["attributes", "shared pages"],
)
def test_a_file_that_takes_long_is_past_the_limit_while_all_else_goes_on(readers, data, filetype):
    turns = []
    ended = threading.Event()

    def count():
        while not ended.wait(0.01):
            turns.append(True)

    counting = threading.Thread(target=count)
    counting.start()
    with pytest.raises(ReaderFailed, match="more than 1 second"):
        readers.extract_text(data, filetype)
    ended.set()
    counting.join()
    assert len(turns) > 5
    assert readers.extract_text(b"<p>tea", "html").text == "tea"


def test_a_process_that_waits_is_past_the_limit_of_time(taken_over, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "CLOCK_SHARE", 0.5)
        with pytest.raises(ReaderFailed, match="second"):
            run(taken_over, "time.sleep(60)")
    assert run(taken_over, "1 + 1").text == "2"


def test_what_is_raised_while_a_file_takes_long_ends_it_at_once(taken_over, monkeypatch):
    class Stopped(BaseException):
        pass

    started, waits = [], []

    def start(*args, **options):
        started.append(subprocess_of(*args, **options))
        return started[-1]

    def stop():
        waits.append(True)
        if len(waits) == 3:
            raise Stopped

    subprocess_of = subprocess.Popen
    monkeypatch.setattr(sandbox.subprocess, "Popen", start)
    with closing(Readers(600, on_wait=stop)) as readers:
        with pytest.raises(Stopped):
            run(readers, "[1 for _ in iter(int, 1)]")
        assert [child.returncode for child in started] == [-signal.SIGKILL]


# Memory and output


def test_a_file_that_takes_much_memory_is_past_the_limit_of_memory(readers, taken_over, monkeypatch):
    monkeypatch.setattr(sandbox, "MEMORY", 200 * 1024**2)
    with pytest.raises(ReaderFailed, match="200 MiB of memory"):
        run(taken_over, "len('x' * 10**9)")
    with pytest.raises(ReaderFailed):
        readers.extract_text(hostile_files.html_of_many_elements(8 * 1024**2), "html")
    assert readers.extract_text(b"<p>tea", "html").text == "tea"


def test_a_file_is_not_blamed_for_the_memory_that_others_took(taken_over, monkeypatch):
    monkeypatch.setattr(sandbox, "MEMORY", 200 * 1024**2)
    assert run(taken_over, "setattr(sys, 'kept', 'x' * 100_000_000)").text == "None"
    assert run(taken_over, "len('x' * 100_000_000)").text == "100000000"


def test_a_text_that_no_event_can_hold_is_past_the_limit(taken_over):
    with pytest.raises(ReaderFailed, match="too long for an event"):
        run(taken_over, "'x' * 20_000_000")


def test_what_is_printed_is_one_short_line_that_drives_no_terminal(taken_over):
    code = (
        r"[os.write(fd, b'\x1b]0;owned\x07 \xe2\x80\xae\xff' * 20 + b'\nmore\n' * 30_000) for fd in (1, 2)]"
    )
    text, warning = run(taken_over, code)
    assert text.startswith("[")
    assert warning.startswith(r"\x1b]0;owned\x07 \u202e")
    assert warning.isprintable()
    assert len(warning) < 1000
    assert run(taken_over, "'tea'").warning == ""


# What it may do


def test_it_reaches_no_network_starts_no_program_and_writes_no_file(taken_over, tmp_path):
    written = tmp_path / "written"
    for code in (
        "socket.socket()",
        "socket.create_connection(('127.0.0.1', 1))",
        "subprocess.run(['true'])",
        "os.system('true')",
        "os.execv('/bin/true', ['true'])",
        "os.write(os.open(path, os.O_CREAT | os.O_WRONLY), b'x')",
    ):
        with pytest.raises(ReaderFailed) as failed:
            run(taken_over, code.replace("path", repr(str(written))))
        assert failed.value.why == "damaged", code
        assert not written.exists() or written.stat().st_size == 0


def test_it_has_no_descriptors_but_its_pipes(taken_over, tmp_path):
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        described = run(
            taken_over, "[os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')[:-1]]"
        )
    assert "secret" not in described.text
    assert described.text.count("pipe:") == 4


def test_modules_of_the_current_folder_are_not_imported(tmp_path, monkeypatch, readers):
    for module in ("lxml", "pypdf", "msgspec", "logging", "memlog"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert readers.extract_text(b"<p>tea", "html").text == "tea"
    assert not (tmp_path / "ran").exists()


# Its life


def test_one_process_reads_many_files(taken_over):
    assert len({run(taken_over, "os.getpid()").text for _ in range(5)}) == 1


def test_a_process_that_crashes_is_replaced(taken_over):
    for code in ("os.abort()", "os.kill(os.getpid(), signal.SIGSEGV)", "os._exit(3)"):
        with pytest.raises((ReaderFailed, OSError), match=r"killed|ended"):
            run(taken_over, code)
        assert run(taken_over, "'tea'").text == "tea", code


def test_a_process_that_was_killed_between_two_files_is_replaced(taken_over):
    os.kill(int(run(taken_over, "os.getpid()").text), signal.SIGKILL)
    assert run(taken_over, "'tea'").text == "tea"


def test_threads_share_it(readers):
    texts = []

    def read(number):
        texts.extend(readers.extract_text(f"<p>{number}".encode(), "html").text for _ in range(20))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(texts) == sorted(str(number) for number in range(4) for _ in range(20))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of a pipe ends it, when it reads on")
def test_a_busy_process_dies_with_the_one_that_started_it(taken_over, tmp_path):
    told = tmp_path / "pid"
    code = "os.write(2, str(os.getpid()).encode()) and [1 for _ in iter(int, 1)]"
    program = f"""
import sys
from memlog.service.engine import sandbox
keep = sandbox._Exchange._keep_printed
def kept(self):
    keep(self)
    open({str(told)!r}, "w").write(self.printed.decode())
sandbox._Exchange._keep_printed = kept
sandbox.Readers(600, on_wait=lambda: None).extract_text({code!r}.encode(), "pdf")
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    while not (told.exists() and told.read_text()):
        assert parent.poll() is None
        time.sleep(0.02)
    pid = int(told.read_text())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
