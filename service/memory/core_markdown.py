"""Reads core memory from Markdown such as USER.md: `key: value` lines, and lists under headings.

docs/memory/core-memory.md describes what is understood; everything else is skipped.
"""

import io
import re
from collections.abc import Iterator, Mapping
from functools import cache, partial

import msgspec

from memlog.eventlog.codec.content_ids import fold_content
from memlog.eventlog.text import normalise_to_nfkc
from memlog.projector.text.language_files import split_phrases
from memlog.query.records import CoreMemory
from memlog.service.memory.placeholders import is_denial, is_placeholder
from memlog.service.memory.word_tables import load_patterns, load_tables, load_words

# `## User` is about the user; `## User authentication`, and `## User` below `## Data model`, are not.

_FRONT_MATTER = re.compile(
    r"\ufeff?(?:\s|<!--.*?-->)*(?<![^\n\ufeff])---[ \t]*\r?\n(?:(.*?)^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z))?",
    re.M | re.S,
)
_PARAGRAPH = re.compile(r"(?:[^\r\n]*\S[^\r\n]*(?:\r?\n|\Z))*")
_LONGEST_FRONT_MATTER = 16 * 1024
"""The number of characters within which front matter must end, so that a long text is not searched to its
end."""

_MEMBER = re.compile(r"[\"']?[^\W\d][\w .-]{0,60}[\"']?[ \t]*:(?:\s|$)")
_BELOW_A_MEMBER = re.compile(r"\s|-\s|#(?!#)|$")


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return load_patterns(__file__)


_words = partial(load_words, __file__)

_LONGEST_LABEL = 200
"""The maximum number of characters of a heading to examine."""


class Headings:
    """The headings above a line."""

    def __init__(self) -> None:
        self._titles: list[tuple[int, str]] = []

    def add_heading(self, level: int, title: str) -> None:
        """Add a heading, replacing earlier headings of its level and of deeper levels."""
        folded = re.sub(
            r"[`*_\"“”]|^[\W\d]+|[\s:：#]+$", "", normalise_to_nfkc(title[:_LONGEST_LABEL]).casefold()
        )
        self._titles = [each for each in self._titles if each[0] < level]
        self._titles.append((level, re.sub(r"\s+", " ", folded)))

    @property
    def are_of_user(self) -> bool:
        """Whether the last heading is about the user."""
        return bool(self._titles) and self._is_of_user(len(self._titles) - 1)

    @property
    def are_below_user(self) -> bool:
        """Whether the last heading is about the user, or below such a heading and not below a project's."""
        for at in reversed(range(len(self._titles))):
            if self._is_of_user(at):
                return True
            if _is_of_project(self._titles[at][1]):
                return False
        return False

    @property
    def are_of_project(self) -> bool:
        """Whether the last heading, or one above it other than the file's title, is about a project."""
        below_title = [title for level, title in self._titles if level > 1]
        own = below_title or [title for _, title in self._titles]
        return not self.are_below_user and any(map(_is_of_project, own))

    def _is_of_user(self, at: int) -> bool:
        if _patterns()["user"].fullmatch(self._titles[at][1]) is None:
            return False
        above = self._titles[:at]
        is_data = _patterns()["data"].search
        # The title of a file may be `my-api` even if it is about the user.
        return not any(is_data(title) or (level > 1 and _is_of_project(title)) for level, title in above)


def _is_of_project(title: str) -> bool:
    return _patterns()["project"].search(title) is not None and _patterns()["person"].search(title) is None


def without_front_matter(text: str) -> str:
    """Return a text without its front matter: a mapping at its top, between `---` and `---` or `...`.

    Unclosed front matter ends at the first blank line. If the part is not a mapping, only its first line, a
    horizontal rule, is removed.
    """
    found = _FRONT_MATTER.match(text[:_LONGEST_FRONT_MATTER])
    if found is None:
        return text
    if found[1] is not None and _is_mapping(found[1]):
        return text[found.end() :]
    rest = text[found.start(1) if found[1] is not None else found.end() :]
    unclosed = _PARAGRAPH.match(rest[:_LONGEST_FRONT_MATTER])
    return rest[unclosed.end() :] if unclosed is not None and _is_mapping(unclosed[0]) else rest


def _is_mapping(text: str) -> bool:
    has_member = False
    for line in text.splitlines():
        if _MEMBER.match(line):
            has_member = True
        elif line.strip() and not (has_member and _BELOW_A_MEMBER.match(line)):
            return False
    return has_member


@cache
def _technologies() -> frozenset[str]:
    """Return the names of languages, frameworks, databases and tools."""
    tables = load_tables(__file__)["technologies"]
    single = (_words("technologies", name) for name in ("languages", "frameworks", "databases", "tools"))
    return frozenset(split_phrases(tables["of_words"])).union(*single)


@cache
def _leading_technology_pattern() -> re.Pattern[str]:
    """Return a pattern for a technology at the beginning of a text, possibly with a Finnish ending."""
    names = map(re.escape, sorted(_technologies(), key=len, reverse=True))
    ending = r"(?:-kiel\w+|:?(?:a|ä|ää|lla|llä|ssa|ssä))?(?!['’]|-?\w)"
    return re.compile(f"(?:{'|'.join(names)}){ending}")


_MAX_STATEMENT = 200
"""The maximum number of characters in a text that makes only one statement."""

_FACT_HEADING = re.compile(r"#{1,6}\s+[^\s:：][^:：]*")
_FACT_PAIR = re.compile(
    r"(?:[-*+]\s+)?(?:\*\*|__|`)?([^\W\d][^:：\n*_`]{0,60}?)(?:\*\*|__|`)?\s*[:：](?:\*\*|__|`)?\s*(.+)"
)
_VERSION = re.compile(r"[ (]*v?\d[\d.x+]*\)?")


def normalise_key(label: str) -> str:
    """Normalise a label or key: `Build Tool` and `buildTool` become `build_tool`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", normalise_to_nfkc(label))
    return re.sub(r"[\W_]+", "_", words.casefold()).strip("_")


def is_fact_of_project(key: str, value: str) -> bool:
    """Whether a key and its value describe a project, such as its components or programming language."""
    bare = re.sub(r"^(?:project|user|the|проекта?|项目|projektin?)_?(?=.)", "", normalise_key(key))
    if not {bare, normalise_key(key)}.isdisjoint(_words("keys", "project")):
        return True
    known = frozenset[str]()
    if bare in _words("keys", "languages"):
        known = _words("technologies", "languages")
    elif bare in _words("keys", "ambiguous"):
        known = _technologies()
    return all(each in known for each in _split_items(value))


def is_about_project(text: str) -> bool:
    """Whether a text, such as a heading, `Framework: Django` or "The project uses Go", is about a project."""
    if len(text) > _MAX_STATEMENT or "\n" in text.strip():
        return False
    bare_text = fold_content(text).strip()
    if _FACT_HEADING.fullmatch(bare_text):
        return True
    pair = _FACT_PAIR.fullmatch(text.strip())
    if pair is not None and is_fact_of_project(pair[1], pair[2]):
        return True
    begins = _patterns()["of_a_project"].match(bare_text.lstrip("-*+ "))
    if begins is None:
        return False
    used = begins.string[begins.end() :]
    return _leading_technology_pattern().match(_patterns()["leading"].sub("", used, count=1)) is not None


def _split_items(value: str) -> list[str]:
    """Return the items that a value lists, without version numbers."""
    bare = value[:_MAX_STATEMENT].casefold().strip(" .。`*_")
    text = re.split(r"\s*(?:,|，|、|/|&|\+(?!\+)|;|\b(?:and|with|on|и|ja|und|et|y)\b|和)\s*", bare)
    return [_VERSION.sub("", each.removesuffix("语言")).strip() for each in text]


USER_KEYS = ("name", "location", "occupation", "preferences", "current_projects")
AGENT_KEYS = ("personality_notes", "learned_rules")
_KNOWN = USER_KEYS + AGENT_KEYS
_OF_A_PERSON = frozenset(_KNOWN) - {"name", "location"}
"""Keys that only a person has."""

_OF_PROJECTS = frozenset(
    ("agents", "claude", "claude.local", "contributing", "conventions", "copilot-instructions", "gemini")
    + ("memory", "readme")
)
"""Names of files about a project, in lower case; only values marked as the user's are read from them."""

_JOINT = "; "

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(.*)$")
_RULE = re.compile(r"\s*([-*_=])(?:\s*\1)*\s*$")
# `**Name:** Anna`, `**Name**: Anna`, `Name: Anna`, `姓名：安娜`: a few words, and a space after the colon.
_BOLD_PAIR = re.compile(r"(\*\*|__)([^*_:：]{1,60})(?:[:：]\1|\1\s*[:：])\s*(.*)$")
_PAIR = re.compile(r"([^\W\d][\w'’/&-]*(?: [\w'’/&-]+){0,4})\s*(?::(?:\s+|$)|：\s*)(.*)$")


def is_file_of_project(name: str) -> bool:
    """Whether a file with this name is about a project: CLAUDE is, USER is not. name: without suffix."""
    return name.casefold() in _OF_PROJECTS


def parse_core_memory(text: str, *, of_project: bool = False) -> tuple[CoreMemory, int]:
    """Return the values in `text`, and how many lines were not understood.

    of_project: whether the file is about a project, so that only values marked as the user's are accepted.
    """
    reader = _MarkdownReader(of_project)
    for line in _content_lines(without_front_matter(text)):
        reader.read_next_line(line)
    return reader.collect_core_memory(), reader.skipped


def label_to_key(label: str) -> str:
    """Return the key for a label, such as `name` for `User name`; "" if it has no letters or digits."""
    text = re.sub(r"['’]", "", normalise_to_nfkc(label).casefold())
    key = re.sub(r"[\W_]+", "_", text).strip("_")
    bare = re.sub(r"^(?:user|agent)s?_", "", key)
    return next((known for known in _KNOWN if bare in (known, known.removesuffix("s"))), key)


class _Label(msgspec.Struct):
    """The key of the items that follow. indent: the label's indentation in a list; -1 outside a list."""

    key: str
    indent: int


class _MarkdownReader:
    """Collects the values in a Markdown text, line by line."""

    def __init__(self, of_project: bool) -> None:
        self.skipped = 0
        self._of_project = of_project
        self._headings = Headings()
        self._values: dict[str, list[list[str]]] = {}  # by key: its values, as lists of lines
        self._heading = _Label("", -1)
        self._label = self._heading
        self._last = ""
        self._is_in_item = False

    def read_next_line(self, line: str) -> None:
        if not line.strip():
            self._is_in_item = False
        elif heading := _HEADING.match(line):
            self._open_heading(len(heading[1]), line[heading.end() :].strip())
        elif item := _ITEM.match(line):
            self._read_item(len(item[1].expandtabs(4)), item[2].strip())
        elif self._is_in_item and (line[0].isspace() or _split_pair(line) is None):
            self._values[self._last][-1].append(line.strip())
        else:
            self._read_line(line.strip())

    def collect_core_memory(self) -> CoreMemory:
        """Return the core memory that has been read, without repeated values."""
        # Not `map`, which would join millions of lines without releasing the GIL.
        values = {
            key: _JOINT.join(dict.fromkeys(" ".join(lines) for lines in text))
            for key, text in self._values.items()
        }
        return CoreMemory(
            user={key: value for key, value in values.items() if key not in AGENT_KEYS},
            agent={key: value for key, value in values.items() if key in AGENT_KEYS},
        )

    def _open_heading(self, level: int, title: str) -> None:
        self._headings.add_heading(level, title)
        self._of_project |= level == 1 and self._headings.are_of_project
        self._heading = self._label = _Label(label_to_key(title), -1)
        self._is_in_item = False

    def _read_item(self, indent: int, text: str) -> None:
        if self._label.indent >= indent:
            self._label = self._heading
        pair = None if self._label.key in _KNOWN else _split_pair(text)
        if pair is None:
            self._add_value(self._label.key, text)
        elif pair[1]:
            self._add_value(*pair)
        else:
            self._label = _Label(pair[0], indent)

    def _read_line(self, text: str) -> None:
        pair = _split_pair(text)
        if pair is None:
            is_told = self._label is self._heading and self._heading.key in _KNOWN
            self._add_value(self._heading.key if is_told else "", text)
        elif pair[1]:
            self._label = self._heading
            self._add_value(*pair)
            self._is_in_item = False
        else:
            self._label = _Label(pair[0], -1)

    def _add_value(self, key: str, value: str) -> None:
        """Add a value, which the lines up to the next blank line continue."""
        key = key if self._is_of_user(key, value) else ""
        self._last, self._is_in_item = key, bool(key)
        if key:
            self._values.setdefault(key, []).append([value])
        else:
            self.skipped += 1

    def _is_of_user(self, key: str, value: str) -> bool:
        """Whether a value has content, and is about the user rather than a project."""
        if self._headings.are_of_project or is_fact_of_project(key, value):
            return False
        if is_placeholder(value) and not is_denial(value):  # from a template that is not filled in
            return False
        return not self._of_project or key in _OF_A_PERSON or self._headings.are_below_user


def _split_pair(text: str) -> tuple[str, str] | None:
    """Return the key and the value of `key: value`; None for any other text."""
    if bold := _BOLD_PAIR.match(text):
        key, value = label_to_key(bold[2]), bold[3].strip()
    elif plain := _PAIR.match(text):
        key, value = label_to_key(plain[1]), plain[2].strip()
    else:
        return None
    return (key, value) if key else None


def _content_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, skipping fenced blocks, comments, tables and horizontal rules."""
    fence = ""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    # Line by line: splitting 16 million lines at once holds the GIL for 0.3 s.
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
    """Yield the parts of `text` outside `<!-- … -->`; an unclosed comment extends to the end."""
    start = 0
    while (opened := text.find("<!--", start)) >= 0:
        yield text[start:opened]
        closed = text.find("-->", opened + len("<!--"))
        if closed < 0:
            return
        start = closed + len("-->")
    yield text[start:]
