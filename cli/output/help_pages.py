"""Translates Python calls and arguments in hints to commands and options."""

import ast
import re
import shlex

PHRASES = {
    "check the path of the store": "check --store and --project (see memlog projects list)",
    "memlog.open(PATH, create=True)": "memlog init",
    "memlog.open(PATH)": "--store",
    "memlog.open(language_model=…)": "the section [language_model] of memlog.toml",
    "help(memlog.TYPE)": "memlog append TYPE --help",
    "store.exchange.import_from(FORMAT, PATHS)": "memlog --project NAME import FORMAT PATH",
    "store.erasure.prove(TEXT)": "memlog scrub --prove TEXT",
    "Projects.links()": "memlog projects links",
    "Projects.list()": "memlog projects list",
    "model=FOLDER": "MEMLOG_MODEL",
    "ChunkSizes.window": "chunk_tokens",
    "ChunkSizes.overlap": "chunk_overlap",
    "is_raw": "--raw",
}
"""Phrases for Python callers, each with its wording for the command line."""

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
    "exchange.import_from": "import",
    "exchange.list_imports": "import runs",
    "extraction.run": "extract",
    "facts.list": "fact list",
    "facts.remove": "fact remove",
    "maintenance.examine": "doctor",
    "maintenance.project": "project",
    "maintenance.quarantine": "quarantine",
    "maintenance.seal": "seal",
    "maintenance.verify": "verify",
    "memories.conflicts": "memory conflicts",
    "memories.history": "memory history",
    "memories.list": "memory list",
    "memories.save": "memory save",
    "memories.unmerge": "memory unmerge",
    "search": "query",
}
"""The store's methods that hints, notes and findings name, each with its command."""

_CALL = re.compile(r"\bstore\.([a-z_.]+)\(")
_NAMED = re.compile(r"\b([a-z_]+)=('[^']*'|\"[^\"]*\"|[A-Z]+\b|True)")


def translate_hint(hint: str) -> str:
    """Replace Python calls and arguments in a hint with commands and options."""
    for python, words in PHRASES.items():
        hint = hint.replace(python, words)
    return _NAMED.sub(lambda named: _translate_argument(named[1], named[2]), translate_calls(hint))


def translate_calls(text: str) -> str:
    """Replace Python calls with commands in a text that may quote other texts."""
    for python, words in PHRASES.items():
        if "(" in python:  # only memlog writes these
            text = text.replace(python, words)
    done = ""
    while call := _CALL.search(text):
        end, command = _translate_call(call[1], text[call.end() :])
        done += text[: call.start()] + (command or text[call.start() : call.end()])
        text = text[call.end() + end :] if command else text[call.end() :]
    return done + text


def _translate_call(name: str, behind: str) -> tuple[int, str | None]:
    """Return the length of the arguments at the start of `behind`, and the command; (0, None) if unknown."""
    for close in re.finditer(r"\)", behind) if name in COMMANDS else ():
        try:
            call = ast.parse(f"f({behind[: close.end()]}", mode="eval").body
        except (SyntaxError, ValueError):
            continue  # the bracket is within a string
        if isinstance(call, ast.Call):
            words = ["memlog", COMMANDS[name], *map(_quote_argument, call.args)]
            words += [_translate_argument(str(each.arg), ast.unparse(each.value)) for each in call.keywords]
            return close.end(), " ".join(words)
    return 0, None


def _translate_argument(name: str, value: str) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value == "True" else f"{option} {_quote_argument(ast.parse(value, mode='eval').body)}"


def _quote_argument(argument: ast.expr) -> str:
    """Quote a string for a shell; return anything else unchanged."""
    is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return shlex.quote(argument.value) if is_text else ast.unparse(argument)  # type: ignore[attr-defined]
