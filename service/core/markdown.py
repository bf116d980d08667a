"""Reads Markdown such as USER.md: `key: value` lines, and lists under headings.

docs/memory/core-memory.md says what is understood. What it does not know, it skips.
"""

import io
import re
from collections.abc import Iterator

import msgspec

from memlog.eventlog.text import nfkc
from memlog.query.core_memory import CoreMemory
from memlog.service.core.project_facts import is_of_project as is_fact_of_project
from memlog.service.core.user_sections import Headings, without_front_matter
from memlog.service.extraction.placeholders import is_denial, is_placeholder

USER_KEYS = ("name", "location", "occupation", "preferences", "current_projects")
AGENT_KEYS = ("personality_notes", "learned_rules")
_KNOWN = USER_KEYS + AGENT_KEYS
_OF_A_PERSON = frozenset(_KNOWN) - {"name", "location"}
"""Keys that no project has."""

_OF_PROJECTS = frozenset(
    ("agents", "claude", "claude.local", "contributing", "conventions", "copilot-instructions", "gemini")
    + ("memory", "readme")
)
"""Files about a project, by their names in lower case: of the user they say only what they name so."""

_JOINT = "; "

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(.*)$")
_RULE = re.compile(r"\s*([-*_=])(?:\s*\1)*\s*$")
# `**Name:** Anna`, `**Name**: Anna`, `Name: Anna`, `姓名：安娜`: a few words, and a space behind the colon.
_BOLD_PAIR = re.compile(r"(\*\*|__)([^*_:：]{1,60})(?:[:：]\1|\1\s*[:：])\s*(.*)$")
_PAIR = re.compile(r"([^\W\d][\w'’/&-]*(?: [\w'’/&-]+){0,4})\s*(?::(?:\s+|$)|：\s*)(.*)$")


def is_of_project(name: str) -> bool:
    """Whether a file without its suffix, such as CLAUDE, is about a project."""
    return name.casefold() in _OF_PROJECTS


def parse(text: str, *, of_project: bool = False) -> tuple[CoreMemory, int]:
    """What `text` says, and how many of its lines say nothing that was understood.

    of_project: whether it says so only below headings about the user, and with `User name: …`.
    """
    reader = _MarkdownReader(of_project)
    for line in _lines(without_front_matter(text)):
        reader.read(line)
    return reader.memory(), reader.skipped


def key_of(label: str) -> str:
    """A label as a key: `User name` is `name`, `Projects` stays `projects`; '' without a letter."""
    text = re.sub(r"['’]", "", nfkc(label).casefold())
    key = re.sub(r"[\W_]+", "_", text).strip("_")
    bare = re.sub(r"^(?:user|agent)s?_", "", key)
    return next((known for known in _KNOWN if bare in (known, known.removesuffix("s"))), key)


class _Label(msgspec.Struct):
    """The owner of the items that follow. indent: of its list item; -1 for a heading or a line."""

    key: str
    indent: int


class _MarkdownReader:
    """Takes lines in their order."""

    def __init__(self, of_project: bool) -> None:
        self.skipped = 0
        self._of_project = of_project
        self._headings = Headings()
        self._values: dict[str, list[list[str]]] = {}  # by key, each of its lines
        self._heading = _Label("", -1)
        self._label = self._heading
        self._last = ""
        self._is_in_item = False

    def read(self, line: str) -> None:
        """Take one line."""
        if not line.strip():
            self._is_in_item = False
        elif heading := _HEADING.match(line):
            self._open(len(heading[1]), line[heading.end() :].strip())
        elif item := _ITEM.match(line):
            self._read_item(len(item[1].expandtabs(4)), item[2].strip())
        elif self._is_in_item and (line[0].isspace() or _pair(line) is None):
            self._values[self._last][-1].append(line.strip())
        else:
            self._read_line(line.strip())

    def memory(self) -> CoreMemory:
        """The core memory that was read. Repeated values count once."""
        # Not `map`, which would join millions of lines without letting another thread run.
        values = {
            key: _JOINT.join(dict.fromkeys(" ".join(lines) for lines in said))
            for key, said in self._values.items()
        }
        return CoreMemory(
            user={key: value for key, value in values.items() if key not in AGENT_KEYS},
            agent={key: value for key, value in values.items() if key in AGENT_KEYS},
        )

    def _open(self, level: int, title: str) -> None:
        self._headings.add(level, title)
        self._of_project |= level == 1 and self._headings.are_of_project
        self._heading = self._label = _Label(key_of(title), -1)
        self._is_in_item = False

    def _read_item(self, indent: int, text: str) -> None:
        if self._label.indent >= indent:
            self._label = self._heading
        pair = None if self._label.key in _KNOWN else _pair(text)
        if pair is None:
            self._add(self._label.key, text)
        elif pair[1]:
            self._add(*pair)
        else:
            self._label = _Label(pair[0], indent)

    def _read_line(self, text: str) -> None:
        pair = _pair(text)
        if pair is None:
            is_said = self._label is self._heading and self._heading.key in _KNOWN
            self._add(self._heading.key if is_said else "", text)
        elif pair[1]:
            self._label = self._heading
            self._add(*pair)
            self._is_in_item = False
        else:
            self._label = _Label(pair[0], -1)

    def _add(self, key: str, value: str) -> None:
        """Take a value; the lines that follow it without a blank one go on with it."""
        key = key if self._is_of_user(key, value) else ""
        self._last, self._is_in_item = key, bool(key)
        if key:
            self._values.setdefault(key, []).append([value])
        else:
            self.skipped += 1

    def _is_of_user(self, key: str, value: str) -> bool:
        """Whether a value says something, and not of a project."""
        if self._headings.are_of_project or is_fact_of_project(key, value):
            return False
        if is_placeholder(value) and not is_denial(value):  # of a template that nobody has filled in
            return False
        return not self._of_project or key in _OF_A_PERSON or self._headings.are_below_user


def _pair(text: str) -> tuple[str, str] | None:
    """The key and the value of `key: value`; None where a text says neither."""
    if bold := _BOLD_PAIR.match(text):
        key, value = key_of(bold[2]), bold[3].strip()
    elif plain := _PAIR.match(text):
        key, value = key_of(plain[1]), plain[2].strip()
    else:
        return None
    return (key, value) if key else None


def _lines(text: str) -> Iterator[str]:
    """The lines that can say something: none of a fenced block, a comment, a table, and no rule."""
    fence = ""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    # Line by line: to split 16 million lines at once lets no other thread run for 0.3 s.
    ended = io.StringIO("".join(_without_comments(plain)), newline="\n")
    for line in (each.removesuffix("\n") for each in ended):
        mark = _FENCE.match(line)
        if fence:
            closes = mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence)
            fence = "" if closes and not line.strip(" `~") else fence
        elif mark:
            fence = mark[1]
        elif not line.lstrip().startswith("|") and not _RULE.match(line):
            yield line


def _without_comments(text: str) -> Iterator[str]:
    """The parts of `text` outside `<!-- … -->`; a comment that does not end goes on to the end."""
    start = 0
    while (opened := text.find("<!--", start)) >= 0:
        yield text[start:opened]
        closed = text.find("-->", opened + len("<!--"))
        if closed < 0:
            return
        start = closed + len("-->")
    yield text[start:]
