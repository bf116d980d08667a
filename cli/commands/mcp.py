"""memlog mcp."""

import json
import shlex
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import click

import memlog
from memlog.cli.options.open_store import make_store_opener
from memlog.cli.options.settings import Command, Settings, projects_folder
from memlog.cli.output.answer import JSON_OPTION
from memlog.cli.output.output import add_options_to_command, asks_for_json, print_json, print_note
from memlog.cli.process.error_handler import close_or_exit
from memlog.eventlog.errors import BadInput

if TYPE_CHECKING:
    from memlog.service.adapters.remote_store import RemoteStore, RunningServer

HOSTS = {
    "claude-code": (
        ".mcp.json of a project; for every project run: claude mcp add --scope user memlog -- {command}"
    ),
    "codex": "~/.codex/config.toml",
    "cursor": "~/.cursor/mcp.json, or .cursor/mcp.json of a project",
    "opencode": "~/.config/opencode/opencode.json, or opencode.json of a project (1.x: no servers)",
    "vscode": ".vscode/mcp.json of a workspace, or mcp.json of the user profile",
}
"""The file that holds each host's entry, keyed by host; `{command}` is a placeholder for the command."""


def host_entry(host: str, command: Sequence[str]) -> str:
    """Return the configuration entry that makes a host start `command`, ending with a newline."""
    program, *args = command
    if host == "codex":
        # A JSON string is a basic string of TOML, and so is a list of them.
        return (
            f"[mcp_servers.memlog]\ncommand = {json.dumps(program)}\n"
            f"args = {json.dumps(args, ensure_ascii=False)}\n"
        )
    stdio: dict[str, Any] = {"command": program, "args": args}
    entries: dict[str, dict[str, Any]] = {
        "claude-code": {"mcpServers": {"memlog": {"type": "stdio"} | stdio}},
        "cursor": {"mcpServers": {"memlog": stdio}},
        "opencode": {"mcp": {"servers": {"memlog": {"type": "local", "command": [*command]}}}},
        "vscode": {"servers": {"memlog": {"type": "stdio"} | stdio}},
    }
    return json.dumps(entries[host], indent=2, ensure_ascii=False) + "\n"


_EXTRA = "pip install '.[mcp]' in a checkout of memlog"


@click.command(cls=Command)
@click.option(
    "--print-config",
    "host",
    type=click.Choice([*HOSTS]),
    help="Print the entry with which a host starts this server, and where to put it.",
)
@add_options_to_command(JSON_OPTION)
@click.pass_context
def mcp(ctx: click.Context, host: str | None) -> None:
    """Serve the store's tools over MCP to the agent that starts this command.

    The agent's host starts it and talks to it on stdin and stdout: docs/agents.md has the entry
    for each host. If `memlog serve` is running for the store, calls are forwarded to it. With --json,
    --print-config prints {"host","file","entry"}.
    """
    settings = ctx.ensure_object(Settings)
    if host is not None:
        command = ["memlog", *settings.store_options, "mcp"]
        text, file = host_entry(host, command), HOSTS[host].format(command=shlex.join(command))
        if asks_for_json(ctx):
            print_json({"host": host, "file": file, "entry": text})
            return
        print_note(f"add this to {file}")
        click.echo(text, nl=False)
        return
    try:
        from memlog.service.adapters.mcp.server import OneStore, create_mcp_server, serve_stdio
    except ImportError as error:
        raise BadInput(f"the MCP server needs {error.name}, which is not installed", hint=_EXTRA) from error
    if sys.stdin.isatty():
        print_note(
            "waiting for a client on stdin; Ctrl-D to stop. A host runs this command: see --print-config HOST"
        )
    # Imported here: it imports this module.
    from memlog.cli.process.main import PARENT

    path = settings.store
    store = OneStore(lambda: make_store_opener(ctx)(path), lambda: _connect_to_server(settings))
    try:
        serve_stdio(create_mcp_server(store.run, memlog.__version__), PARENT)
    finally:
        close_or_exit(store.close)


def _connect_to_server(settings: Settings) -> "RemoteStore | None":
    # Imported here: most stores have no server.
    from urllib.parse import unquote

    from memlog.service.adapters.remote_store import find_running_server, servers_folder

    path, project = settings.store.absolute(), "default"
    try:
        found = find_running_server(servers_folder(), path)
        if found is None and path.parent == projects_folder().absolute():
            found, project = find_running_server(servers_folder(), path.parent), unquote(path.name)
        if found is None or found.version != memlog.__version__:
            return None
        return _cached_connection(found, project)
    except (
        OSError,
        RuntimeError,
        memlog.MemlogError,
    ):  # opening the store reports what is wrong, if anything
        return None


@lru_cache(maxsize=1)
def _cached_connection(server: "RunningServer", project: str) -> "RemoteStore | None":
    from memlog.service.adapters.remote_store import RemoteStore

    connection = server.connect_if_proven(project)
    return None if connection is None else RemoteStore(connection)
