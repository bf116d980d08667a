"""Removes code, program output and shell commands from a message, and leaves what a person wrote in words."""

import re

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?:https?|ftp|file)://\S+")

_TOOLS = (
    "apt apt-get awk bash brew bun cargo cat cd chmod chown cmake cp curl df docker du echo export ffmpeg"
    " find gcc gh git go gradle grep head helm java jq kill kubectl ln ls make memlog mkdir mv mvn node npm"
    " npx php pip pip3 pnpm podman ps psql pytest python python3 rg rm rsync ruby scp sed sh source sqlite3"
    " ssh sudo systemctl tail tar terraform touch tsc uv uvx vim wget xargs yarn zsh"
).split()
_TOOL = re.compile(r"(?:[$>%] )?(?:[A-Z_]+=\S+ )*(\S+)(?= )")
_SHELL_SIGN = re.compile(
    r" -{1,2}[a-zA-Z]|&&|\||[<>]|[ =](?:\.{1,2}|~)?/\S|\$[\w(]|\w\.(?:[a-z]\w{0,3})(?= |$)"
)
_OF_PACKAGES = "add build ci dev i init install lint list remove run start sync test uninstall update upgrade"
_VERBS = dict.fromkeys("npm yarn pnpm bun pip pip3 cargo uv".split(), _OF_PACKAGES) | {
    "git": "add branch checkout clone commit diff fetch init log merge pull push rebase reset stash status"
    " switch tag",
    "docker": "build compose exec images logs ps pull push run stop",
    "kubectl": "apply delete describe exec get logs",
}
_TOOL_WITH_VERB = re.compile(r"(?:\$ )?(\w+) (\w+)(?: [\w:.@/=-]+){0,2}$")

_CODE = re.compile(
    r"""
      \{$ | ^\} | ^\S+(?:\ \S+)?;$                          # blocks and statements of C's family
    | ^[\])}][\])};,]*$
    | ^(?:async\ )?(?:def|class)\ \w.*:$
    | ^(?:if|for|while|with|elif|except)\b[^()=<>\[\]]*+[()=<>\[\]].*:$ | ^for\ \w+(?:,\ ?\w+)*\ in\ [\w.]+:$
    | ^(?:else|try|finally):$
    | ^import\ [\w.]+(?:\ as\ \w+)?;?$ | ^from\ [\w.]+\ import\b | ^import\ .+\ from\ ["']
    | ^(?:const|let|var|val)\ [\w{\[][\w,\ }\]]*=
    | ^(?:fn|func|function|public|private|protected|static)\b.*\w\(
    | ^[\w.\[\]"']+\ (?:[-+*/|]?=|:=)\ \S                   # an assignment
    | ^[\w.]+\(.*\)$                                        # a call
    | \)\ *=> | =>\ *\{
    | ^\#! | ^@\w+(?:\.\w+)*\(.*\)$                         # a script's first line, a decorator
    | ^</?\w[^>]*>                                          # markup
    | ^(?:SELECT|INSERT\ INTO|UPDATE|DELETE\ FROM|CREATE|ALTER|DROP|FROM|WHERE|JOIN|VALUES)\ \S
    | ^diff\ --git | ^index\ \w{7} | ^@@\ | ^\+\+\+\ | ^---\ [\w/.]
    | ^Traceback | ^File\ ".*",\ line | ^at\ \S[^\s(]*+\(.*\)$     # a stack trace
    | ^[\w.]*(?:Error|Exception|Warning)(?::|$)
    | ^\[?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d                     # a log
    | ^"[^"]+":\ .*,?$ | ^[{\[]\s*["{\[] | ^\[.*\]$         # JSON
    | ^/[\w-]+(?:\ \S+)?$ | ^(?:[\w.~-]*/)+[\w.-]*$         # a command of the agent's own program, a path
    """,
    re.VERBOSE,
)
_BRACKET = re.compile(r"[(){}=\[\]]")
_REMARK = re.compile(r"(?<!\s)\s++(?://|/\*|#)\s.*$")
_BESIDE = re.compile(r"^(?:#|//|/\*|\*|--|;|<!--|[-+]\S|[-+]$|\t| {2,})")
"""Lines that count as code only beside code: comments, indented lines, lines of a diff."""


def without_code(text: str, longest: int) -> str:
    """The lines of `text` that are words; empty if all of it is code, output, commands or links.

    longest: characters of the beginning and of the end that are read, fenced blocks aside.
    """
    lines = ends_of(_FENCED.sub("\n", text), longest).splitlines()
    text_lines = [line for line in (_LINK.sub(" ", line) for line in lines) if line.strip()]
    words = [line for line in text_lines if not _is_code(line.strip())]
    if len(words) < len(text_lines):
        words = [line for line in words if not _BESIDE.search(line)]
    return "\n".join(words)


def ends_of(text: str, longest: int) -> str:
    """`text`, or the first and the last `longest` characters of a longer one, on lines of their own."""
    return text if len(text) <= 2 * longest else f"{text[:longest]}\n{text[-longest:]}"


def _is_code(line: str) -> bool:
    line = _REMARK.sub("", line)
    is_statement = line.endswith(";") and _BRACKET.search(line) is not None
    if is_statement or _CODE.search(line):
        return True
    command = _TOOL_WITH_VERB.match(line)
    if command and command[2] in _VERBS.get(command[1], "").split():
        return True
    tool = _TOOL.match(line)
    return tool is not None and tool[1] in _TOOLS and _SHELL_SIGN.search(line, tool.end()) is not None
