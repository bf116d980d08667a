"""memlog serve."""

import os
import secrets
import signal
import socket
import stat
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import memlog
from memlog.cli.options.open_store import make_store_opener
from memlog.cli.options.param_types import FOLDER, Number
from memlog.cli.options.settings import Command, Settings, projects_folder
from memlog.cli.output.answer import JSON_OPTION
from memlog.cli.output.output import add_options_to_command, asks_for_json, print_json, print_note
from memlog.cli.process.command_workers import serving_commands
from memlog.cli.process.confirmation import migrate_notes_or_name_command
from memlog.cli.process.error_handler import close_or_exit
from memlog.eventlog.errors import BadInput, Busy, LogError
from memlog.service.adapters.local_sockets import LEAST_TOKEN

if TYPE_CHECKING:
    from memlog.service.adapters.mcp.http import McpApplication
    from memlog.service.exchange.following import ConversationFollower
    from memlog.service.exchange.importing import ImportReport
    from memlog.service.projects import OpenStores

_DEFAULT = click.core.ParameterSource.DEFAULT
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_OTHER_FILE = "use --token-file to specify another file"
_EXTRA = "pip install '.[server]' in a checkout of memlog"
_LONGEST_TOKEN = 4096


@click.command(cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=5858, show_default=True, help="The port to listen on."
)
@click.option(
    "--no-port", is_flag=True, help="Listen on no port, only on a Unix socket for programs of yours."
)
@click.option(
    "--idle-minutes",
    type=Number(0.01, 10_000),
    help="Exit after this many minutes without a command, a request or a new turn.",
)
@click.option("--allow-remote", is_flag=True, help="Listen on an address that other machines can reach.")
@click.option("--no-token", is_flag=True, help="Require no token; only for this machine.")
@click.option("--token-file", type=FOLDER, help="The file with the token; it is created if missing.")
@click.option("--root", type=FOLDER, help="The folder whose files requests may name; without it, none.")
@click.option("--exports", type=FOLDER, help="The folder to which requests may export; without it, none.")
@add_options_to_command(JSON_OPTION)
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    no_port: bool,
    idle_minutes: float | None,
    allow_remote: bool,
    no_token: bool,
    token_file: Path | None,
    root: Path | None,
    exports: Path | None,
) -> None:
    """Serve every operation over HTTP, for one store (as the project default) or for all projects.

    The store is the one named by --store, a variable or a setting; otherwise, every project in the user data
    folder is served. Requests need a token, kept in a file that only you can read. SIGTERM or Ctrl-C ends the
    server once running requests are done. docs/service.md has the routes. With --json, prints
    {"url","token_file"} once it is listening.
    """
    if no_port and {ctx.get_parameter_source(name) for name in ("host", "port")} != {_DEFAULT}:
        raise click.UsageError("--no-port cannot be combined with --host and --port: omit them")
    is_remote = host not in _LOOPBACK
    if is_remote and not allow_remote:
        raise click.UsageError(f"{host} is reachable from other machines: use --allow-remote to allow that")
    if is_remote and no_token:
        raise click.UsageError(f"--no-token cannot be combined with --host {host}: use a token")
    for name, folder in (("--root", root), ("--exports", exports)):
        if folder is not None and not folder.is_dir():
            raise BadInput(f"not a folder: {folder}", hint=f"use {name} to specify a folder")
    try:
        from memlog.service.adapters.http.application import create_application
        from memlog.service.adapters.http.guard import Admission
        from memlog.service.adapters.http.server import serve as run
    except ImportError as error:
        raise BadInput(f"the server needs {error.name}, which is not installed", hint=_EXTRA) from error
    from memlog.service.adapters.remote_store import (
        RunningServer,
        announcing_server,
        servers_folder,
        sockets_folder,
    )
    from memlog.service.engine.http_client import abandon_requests
    from memlog.service.projects import OpenStores

    settings = ctx.ensure_object(Settings)
    where = settings.store if settings.names_store else memlog.Projects(projects_folder())
    if settings.names_store:
        migrate_notes_or_name_command(ctx)
    stores = OpenStores(make_store_opener(ctx), where, print_note)
    listening = [] if no_port else [_bind_socket(host, port)]
    bound, port = listening[0].getsockname()[:2] if listening else (host, 0)
    url = f"http://{f'[{bound}]' if ':' in bound else bound}:{port}"
    names = None if is_remote else [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    token_file = None if no_token else token_file or _default_token_file()
    token = None if token_file is None else _read_or_create_token(token_file)
    app = create_application(
        stores,
        Admission(names, token, url),
        root=None if root is None else root.resolve(),
        exports=None if exports is None else exports.resolve(),
        version=memlog.__version__,
        mcp=_make_mcp_endpoint(stores),
    )
    idle = _Idle(idle_minutes)
    follow = settings.value("serve.follow", of_store=False)
    follower = _make_follower(ctx, follow, stores, idle)
    served = settings.store if settings.names_store else projects_folder()
    file = None if token_file is None else str(token_file.absolute())
    try:
        server = RunningServer(url, file, memlog.__version__)
        with (
            announcing_server(servers_folder(), sockets_folder(), served, server) as (announcement, more),
            serving_commands(idle.end_wait),
            ExitStack() as following,
        ):
            if no_port and not more:
                raise _no_socket_error(served)
            if asks_for_json(ctx):
                print_json({"url": url, "token_file": None if token_file is None else str(token_file)})
            else:
                shown = "a Unix socket" if no_port else url
                print_note(
                    f"listening on {shown}"
                    + ("" if token_file is None else f"; the token is in {token_file}")
                )
            stores.begin_watches()
            if follower is not None:
                print_note(f"following {', '.join(follow)}")
                stop = threading.Event()
                following.callback(stop.set)
                threading.Thread(target=follower.run_until, args=(stop,), daemon=True).start()

            def begin_to_end() -> None:
                announcement.close()
                abandon_requests()

            run(idle.watch_application(app), [*listening, *more], begin_to_end)
    finally:
        close_or_exit(stores.close)


_STARTING = 60.0
"""Seconds allowed for startup, which do not count as idle time."""


class _Idle:
    """Stops the server once it has been idle for `minutes`; never stops it if `minutes` is None."""

    def __init__(self, minutes: float | None) -> None:
        self._seconds = None if minutes is None else 60 * minutes
        self._used = time.monotonic() + _STARTING
        self._is_used = threading.Event()
        self._running = 0
        if self._seconds is not None:
            threading.Thread(target=self._end_when_idle, args=(self._seconds,), daemon=True).start()

    def end_wait(self) -> None:
        """Restart the idle timer, because something has used the server."""
        self._used = time.monotonic()
        self._is_used.set()

    def watch_application(self, application: Any) -> Any:  # noqa: ANN401 - of ASGI
        """Wrap the application so that each of its requests keeps the server from being idle."""

        async def run(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
            self._running += scope["type"] == "http"
            try:
                await application(scope, receive, send)
            finally:
                self._running -= scope["type"] == "http"
                self.end_wait()

        return run

    def _end_when_idle(self, seconds: float) -> None:
        while (left := self._used + seconds - time.monotonic()) > 0 or self._running:
            self._is_used.wait(max(left, 0.1))
            self._is_used.clear()
        os.kill(os.getpid(), signal.SIGTERM)


def _make_follower(
    ctx: click.Context, hosts: Sequence[str], stores: "OpenStores", idle: _Idle
) -> "ConversationFollower | None":
    if not hosts:
        return None
    # Imported here: most servers follow nothing.
    from memlog.cli.options.follow import make_follower

    def watch_project(report: "ImportReport") -> None:
        idle.end_wait()
        if stores.has_projects and report.project is not None:
            stores.run(report.project, lambda _: None)

    return make_follower(ctx, hosts, watch_project)


def _make_mcp_endpoint(stores: "OpenStores") -> "McpApplication | None":
    """Return the MCP endpoint, or None if the SDK is not installed."""
    if find_spec("mcp") is None:
        return None
    from memlog.service.adapters.mcp.http import McpApplication

    return McpApplication(stores, memlog.__version__)


def _no_socket_error(served: Path) -> Busy:
    # Imported here: few starts fail.
    from memlog.service.adapters.remote_store import find_running_server, servers_folder

    if find_running_server(servers_folder(), served) is not None:
        return Busy("another of your servers is running", hint="use that one, or stop it first")
    return Busy("there is no private folder for a socket", hint="set XDG_RUNTIME_DIR, or omit --no-port")


def _bind_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With a named protocol, asyncio sets TCP_NODELAY: otherwise answers wait 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(256)
    except OSError as error:
        raise LogError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="use --port to specify another port"
        ) from error
    return listening


def _default_token_file() -> Path:
    # Imported here: only a server has a token.
    from platformdirs import user_config_path

    return user_config_path("memlog", appauthor=False) / "token"


def _read_or_create_token(file: Path) -> str:
    """Read the token from `file`, creating the file with a new token if it is missing.

    Raises:
        BadInput: the file has no token, or others own it or can read it. LogError: it cannot be created.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        raise LogError(f"cannot create {file}: {error.strerror}", hint=_OTHER_FILE) from error
    else:
        with os.fdopen(fd, "w") as made:
            made.write(secrets.token_urlsafe(32) + "\n")
    try:
        # Opening a FIFO would block until somebody writes to it.
        with open(file, opener=lambda name, _: os.open(name, os.O_RDONLY | os.O_NONBLOCK)) as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise BadInput(f"not a regular file: {file}", hint=_OTHER_FILE)
            if found.st_uid != os.geteuid():
                raise BadInput(
                    f"{file} belongs to another user", hint="use --token-file to specify a file of yours"
                )
            if found.st_mode & 0o077:
                raise BadInput(f"{file} can be read by others", hint=f"run: chmod 600 {file}")
            token = opened.read(_LONGEST_TOKEN + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BadInput(f"cannot read {file}: {why}", hint=_OTHER_FILE) from error
    if not (token.isascii() and token.isprintable() and LEAST_TOKEN <= len(token) <= _LONGEST_TOKEN):
        raise BadInput(
            f"{file} does not contain a token of {LEAST_TOKEN} to {_LONGEST_TOKEN} characters",
            hint="remove the file: the next start will create a token",
        )
    return token
