"""The entry of `memlog mcp` in the settings of each host, as its documentation has it (November 2026)."""

import json
from collections.abc import Sequence
from typing import Any

HOSTS = {
    "claude-code": (
        ".mcp.json of a project; for every project run: claude mcp add --scope user memlog -- memlog mcp"
    ),
    "codex": "~/.codex/config.toml",
    "cursor": "~/.cursor/mcp.json, or .cursor/mcp.json of a project",
    "opencode": "~/.config/opencode/opencode.json, or opencode.json of a project (1.x: no servers)",
    "vscode": ".vscode/mcp.json of a workspace, or mcp.json of the user profile",
}
"""The hosts, and the file that holds the entry of each."""


def entry(host: str, command: Sequence[str]) -> str:
    """The entry of a host that starts a command, with its newline."""
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
