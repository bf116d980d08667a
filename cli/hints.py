"""What texts of memlog's Python advise, in the words of the command line."""

import ast
import re
import shlex

PHRASES = {
    "check the path of the store": "check --store and --project",
    "memlog.open(PATH, create=True)": "memlog init",
    "memlog.open(PATH)": "--store",
    "help(memlog.TYPE)": "memlog append TYPE --help",
    "store.erasure.prove(TEXT)": "memlog scrub --prove TEXT",
    "Projects.list()": "memlog projects list",
    "model=FOLDER": "MEMLOG_MODEL",
    "ChunkSizes.window": "chunk_tokens",
    "ChunkSizes.overlap": "chunk_overlap",
    "is_raw": "--raw",
}
"""What has no command, or another form."""

COMMANDS = {
    "conversations.sessions": "sessions",
    "core.get": "core get",
    "core.import_file": "core import",
    "daily.list": "daily list",
    "documents.add": "docs add",
    "documents.list": "docs list",
    "documents.refresh": "docs refresh",
    "documents.remove": "docs remove",
    "erasure.scrub": "scrub",
    "facts.list": "fact list",
    "facts.remove": "fact remove",
    "maintenance.examine": "doctor",
    "maintenance.project": "project",
    "maintenance.quarantine": "quarantine",
    "maintenance.seal": "seal",
    "maintenance.verify": "verify",
    "memories.list": "memory list",
    "memories.save": "memory save",
    "search": "query",
}
"""The methods of a store that hints, notes and findings name, each with its command."""

_CALL = re.compile(r"\bstore\.([a-z_.]+)\(([^()]*)\)")
_NAMED = re.compile(r"\b([a-z_]+)=('[^']*'|\"[^\"]*\"|[A-Z]+\b|True)")


def in_commands(hint: str) -> str:
    """A hint with commands and options in the place of Python's calls and arguments."""
    for python, words in PHRASES.items():
        hint = hint.replace(python, words)
    return _NAMED.sub(_option, _CALL.sub(_command, hint))


def _command(call: re.Match[str]) -> str:
    if call[1] not in COMMANDS:
        return call[0]
    arguments = [_NAMED.sub(_option, each.strip()) for each in call[2].split(",")]
    return " ".join(filter(None, ("memlog", COMMANDS[call[1]], *map(_word, arguments))))


def _option(named: re.Match[str]) -> str:
    option = f"--{named[1].replace('_', '-')}"
    return option if named[2] == "True" else f"{option} {_word(named[2])}"


def _word(argument: str) -> str:
    """Quote a text for a shell; leave anything else unchanged."""
    return shlex.quote(str(ast.literal_eval(argument))) if argument[:1] in ("'", '"') else argument
