"""A process that has imported memlog, and forks one for each call of the command line.

A forked process is one as the installed program starts it: the same `main`, and a pid, arguments,
environment, working folder, streams and exit code of its own. What it saves is to start Python and to import.
"""

import gc
import marshal
import os
import signal
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import memlog.cli
import memlog.eventlog
import memlog.projector
import memlog.query
import memlog.service
from memlog.cli.process.forwarding import forward_command
from memlog.cli.process.main import end_process, main
from tests.support.capabilities import give_up_file_capabilities

STREAMS = 3
NOT_OF_COMMANDS = (
    "memlog.service.adapters",
    "memlog.service.engine.sandbox_program",
    "memlog.service.documents.pdf",
)
"""What few commands need, or a process of its own."""


def serve(calls: socket.socket) -> None:
    """Fork for each call, and send its exit code back, until the socket is closed.

    It returns in a child alone, which has the streams and surroundings of the call.
    """
    while True:
        message, files, _, _ = socket.recv_fds(calls, 1, STREAMS + 1)
        if not message:
            os._exit(0)
        pid = os.fork()  # noqa: TID251 - has no threads
        if pid == 0:
            calls.close()
            _take(files)
            return
        for file in files:
            os.close(file)
        _, status = os.waitpid(pid, 0)
        calls.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def accepted(listener: socket.socket) -> socket.socket:
    """A connection, in a process that is forked for it alone: calls may run beside each other."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for these processes
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:  # noqa: TID251 - has no threads
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return connection
        connection.close()


def import_all() -> None:
    """Import what any command does: no child pays for it."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # as memlog does before it imports onnxruntime
    for name in ("numpy", "onnxruntime", "tokenizers"):
        import_module(name)
    for package in (memlog.eventlog, memlog.projector, memlog.query, memlog.service, memlog.cli):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(NOT_OF_COMMANDS):
                import_module(module.name)
    gc.collect()
    gc.freeze()
    # A child has none of its parent's threads, and would wait for ever for what one of them holds.
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "an import has started a thread"


def _take(files: list[int]) -> None:
    for number, file in enumerate(files[:STREAMS]):
        os.dup2(file, number)
        os.close(file)
    with open(files[STREAMS], "rb") as call:
        arguments, environment, folder, is_bound = marshal.load(call)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = ["memlog", *map(os.fsdecode, arguments)]
    if is_bound:
        give_up_file_capabilities()


def _exit_code() -> int:
    if (code := forward_command(sys.argv[1:])) is not None:
        return code
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)


if __name__ == "__main__":
    import_all()
    given = socket.socket(fileno=int(sys.argv[1]))
    serve(accepted(given) if given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) else given)
    end_process(_exit_code())
