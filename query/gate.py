"""Decides whether answering a message needs the memory, using tables and rules, without a model or a store.

A needless lookup costs a few hundred tokens; a missed one may cost the answer. So a message is stopped only
if nothing in it asks for the memory. docs/tools/gate.md describes the rules and their limits.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Literal

import msgspec

from memlog.eventlog.errors import BadInput, format_value_for_message
from memlog.projector.text import language_files
from memlog.projector.text.language_files import FactWords
from memlog.projector.text.phrases import (
    FOLDED,
    WORD,
    Phrases,
    fold_phrase,
    is_chinese,
    put_spaces_around_chinese,
)

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
_BESIDE_CODE = re.compile(r"^(?:#|//|/\*|\*|--|;|<!--|[-+]\S|[-+]$|\t| {2,})")
"""Lines that count as code only next to code: comments, indented lines, lines of a diff."""


def strip_code(text: str, longest: int) -> str:
    """Return the lines of `text` that are prose; "" if it is all code, output, commands or links.

    longest: how many characters to read at each end of the text, once fenced blocks are removed.
    """
    lines = cut_out_middle_of_text(_FENCED.sub("\n", text), longest).splitlines()
    text_lines = [line for line in (_LINK.sub(" ", line) for line in lines) if line.strip()]
    words = [line for line in text_lines if not _is_code(line.strip())]
    if len(words) < len(text_lines):
        words = [line for line in words if not _BESIDE_CODE.search(line)]
    return "\n".join(words)


def cut_out_middle_of_text(text: str, longest: int) -> str:
    """Cut a `text` longer than 2 × `longest` characters to its first and last `longest`, on two lines."""
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


Reason = Literal["memory", "question", "prose", "greeting", "acknowledgement", "code", "short"]
"""Why consulting the memory is worthwhile (the first three reasons) or not (the others)."""

LONGEST = 100_000
"""The number of characters at each end of a long text that are searched for fenced blocks."""

LOOKED_AT = 1000
"""The number of characters at each end of a long text that are searched for code."""

_READ = 200
"""The most characters of a text whose words are counted; a longer text is always worth a lookup."""

LEAST_WORDS = 4
"""The fewest words that make a text worth a lookup; three Chinese characters count as two words."""

_LEAST_REQUESTED = 2
"""The fewest words in a question with a question mark; `really?` is a reaction."""

_AFTER_OPENING = 6
"""The most words after an opening, as in `thanks for the help with the tests`; longer texts add something."""

_WEIGHT = 3
_WEIGHT_OF_A_CHARACTER = 2
_NAME = re.compile(r"(?<=[,\s])[^\W\d_a-z][^\W\d_]+")
"""Matches a name, such as `Anna` in `Good morning, Anna!`."""

_CLAUSE = re.compile(r"[.,;:!?…\n()。、—~]+")
_SOCIAL = ("openings", "greetings", "acknowledgements", "fillers")


class Gate(msgspec.Struct, frozen=True):
    """Whether to consult the memory, and why; truthy if the memory should be consulted.

    reason: `memory` (words such as `remember`, `as usual`), `question`, `prose` (enough words to search for);
        or `greeting`, `acknowledgement`, `code` (also output, commands, links), `short`.
    words: the phrase that decided, folded, if one did.
    """

    retrieve: bool
    reason: Reason
    words: str | None = None

    def __bool__(self) -> bool:
        """Whether to consult the memory."""
        return self.retrieve


def should_retrieve(text: str) -> Gate:
    """Decide whether to consult the memory before answering a person's message to an agent.

    Questions, words such as `remember`, and longer texts pass; greetings, acknowledgements, pure code and
    short texts do not. Covers every language whose file has a `[gate]`. Deterministic, and takes less than a
    millisecond.

    Raises:
        BadInput: `text` is not a string.
    """
    if not isinstance(text, str):
        raise BadInput(f"text is {format_value_for_message(text)}", hint="pass a str")
    prose = strip_code(cut_out_middle_of_text(text, LONGEST), LOOKED_AT)
    if not prose:
        return Gate(retrieve=False, reason="short" if text.isspace() or not text else "code")
    text = fold_phrase(cut_out_middle_of_text(prose, _READ))
    clauses = [_Clause(part) for part in _CLAUSE.split(text)]
    left = [clause for clause in clauses if not clause.is_social]
    weight = sum(clause.weight for clause in left)
    if memory := next((clause.memory for clause in left if clause.memory), None):
        return Gate(retrieve=True, reason="memory", words=memory)
    asks = next(filter(None, (clause.asking_phrase for clause in left)), None)
    if asks or ("?" in text and weight >= _LEAST_REQUESTED * _WEIGHT):
        return Gate(retrieve=True, reason="question", words=asks)
    if weight >= LEAST_WORDS * _WEIGHT:
        return Gate(retrieve=True, reason="prose")
    return Gate(retrieve=False, reason=_why_social_text_needs_no_context(clauses))


def is_social_text(text: str) -> bool:
    """Whether `text` is nothing but greetings, perhaps with a name, and acknowledgements."""
    prose = strip_code(cut_out_middle_of_text(text, LONGEST), LOOKED_AT)
    if not prose or prose != text.strip():
        return False
    text = fold_phrase(cut_out_middle_of_text(prose, _READ))
    clauses = [clause for clause in map(_Clause, _CLAUSE.split(text)) if clause.words]
    greets = any("greetings" in clause.kinds for clause in clauses)
    names = {name.casefold() for name in _NAME.findall(prose)} if greets else set()
    return bool(clauses) and all(
        (clause.is_social and (greets or clause.begins == len(clause.words)))
        or names.issuperset(clause.words)
        for clause in clauses
    )


def _load_words_around_topic_names(facts: FactWords) -> Iterator[str]:
    """Yield words such as `my` and `favourite`, which start or end a fact's name."""
    yield from f"{facts.favorite} {facts.favorite_behind} {facts.own}".translate(FOLDED).split()
    for prefix in facts.favorite_prefixes.translate(FOLDED).split():
        yield f"{prefix}*"


@cache
def _load_phrases(name: str) -> Phrases:
    tables = [getattr(each.gate, name) for each in language_files.load_languages_with_table("gate").values()]
    phrases = [
        phrase
        for table in tables
        for phrase in language_files.split_phrases(put_spaces_around_chinese(table))
    ]
    facts = language_files.load_languages_with_table("facts").values() if name == "memory" else ()
    return Phrases(
        [*phrases, *(word for each in facts for word in _load_words_around_topic_names(each.facts))]
    )


class _Clause:
    """The words between two punctuation marks.

    begins: the number of words at the start that belong to greetings, acknowledgements and fillers.
    kinds: the tables that these words come from. memory: the first phrase that refers to the memory, if any.
    """

    def __init__(self, text: str) -> None:
        self.words = WORD.findall(put_spaces_around_chinese(text))
        self.begins, self.kinds = _count_words_of_social_beginning(self.words)
        self.memory = _find_phrase("memory", self.words, range(len(self.words)))

    @property
    def is_social(self) -> bool:
        """Whether it is only greetings, acknowledgements and fillers, perhaps with a name: `hello Anna`."""
        rest = len(self.words) - self.begins
        is_named = rest == 1 and not self.memory and not self.kinds <= {"fillers"}
        return is_named or (not rest and not (self.memory and "openings" in self.kinds))

    @property
    def weight(self) -> int:
        """The clause's length, in thirds of a word."""
        return sum(_WEIGHT_OF_A_CHARACTER if is_chinese(word[0]) else _WEIGHT for word in self.words)

    @property
    def asking_phrase(self) -> str | None:
        """The phrase that makes this a question, if any; a `why` on its own refers to the last message."""
        rest = len(self.words) - self.begins
        beginnings = [place for place in (0, self.begins) if rest]
        return _find_phrase("asks", self.words, beginnings, shorter_than=rest) or _find_phrase(
            "asks_anywhere", self.words, range(len(self.words)), shorter_than=rest
        )


def _count_words_of_social_beginning(words: Sequence[str]) -> tuple[int, set[str]]:
    """Return the number of words at the start that belong to social phrases, and these phrases' kinds."""
    place, kinds = 0, set[str]()
    while place < len(words):
        lengths = {kind: _load_phrases(kind).length_of_phrase_at(words, place) for kind in _SOCIAL}
        kind = max(lengths, key=lengths.__getitem__)
        if not lengths[kind]:
            break
        kinds.add(kind)
        place += lengths[kind]
        if kind == "openings" and len(words) - place <= _AFTER_OPENING:
            place = len(words)
    return place, kinds


def _find_phrase(
    name: str, words: Sequence[str], places: Iterable[int], *, shorter_than: int | None = None
) -> str | None:
    for place in places:
        length = _load_phrases(name).length_of_phrase_at(words, place)
        if length and (shorter_than is None or length < shorter_than):
            phrase = words[place : place + length]
            return ("" if is_chinese(phrase[0][0]) else " ").join(phrase)
    return None


def _why_social_text_needs_no_context(clauses: Sequence[_Clause]) -> Reason:
    """Return the reason why a short text needs no context. A greeting outranks an acknowledgement."""
    kinds = {kind for clause in clauses for kind in clause.kinds if clause.is_social}
    if "greetings" in kinds:
        return "greeting"
    return "acknowledgement" if kinds & {"acknowledgements", "openings"} else "short"
