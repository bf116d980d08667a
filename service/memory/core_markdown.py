"""Reads core memory from Markdown such as USER.md: `key: value` lines, and lists under headings.

docs/memory/core-memory.md describes what is understood; everything else is skipped.
"""

import io
import re
from collections.abc import Iterator

import msgspec

from memlog.eventlog.codec.content_ids import fold_content
from memlog.eventlog.text import nfkc
from memlog.query.records import CoreMemory
from memlog.service.memory.placeholders import is_denial, is_placeholder

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

_ABOUT = (
    "profile|info|information|details?|facts?|preferences?|prefs|background|bio|basics|identity|summary"
    "|overview"
)
_USER = re.compile(
    rf"(?:about |(?:my|the|our|primary|main) )*(?:user|human|owner)(?:'?s)?(?:\.md)?(?: (?:{_ABOUT}))*"
    "|about(?: (?:me|myself|you))?|me|myself|who (?:i am|am i|you are)|i"
    rf"|(?:my )?(?:profile|bio)|(?:my|personal|facts about me)(?: (?:{_ABOUT}))?"
    "|обо мне|о себе|кто я|(?:мой )?профиль(?: пользователя)?|(?:о )?пользовател[ьея]|человек"
    "|личн(?:ые данные|ая информация)|(?:данные|предпочтения|информация о|сведения о) пользовател[яе]"
    "|(?:关于|關於)?(?:我|用户|用戶|使用者|本人|主人)(?:的)?(?:个人)?"
    "(?:资料|資料|信息|資訊|档案|简介|偏好|画像|情况|喜好)?"
    "|个人(?:资料|信息|简介|档案)|自我介绍"
    "|(?:tietoja |tietoa )?(?:minusta|käyttäjästä)|minä|käyttäjä|(?:käyttäjän |oma )?profiili"
    "|(?:käyttäjän|omat) (?:tiedot|mieltymykset)|henkilötiedot"
)
"""Matches a heading that is entirely about the user."""

_DATA = re.compile(
    r"\b(?:(?:data|domain|entity|object|class) ?(?:models?|types?|schemas?|structures?)"
    r"|databases?|schemas?|entities|tables?|models?|types)\b"
    "|数据(?:模型|库|表)|модел[ьи] данных|tietomalli|tietokan"
)
"""Marks a heading below which `User` names a data type of a program."""

_PROJECT = re.compile(
    r"\b(?:authentication|authori[sz]ation|auth|login|oauth|sso|apis?|graphql|endpoints?|routes?|routing"
    r"|databases?|db|schemas?|tables?|migrations?|entities|data models?|architecture"
    r"|(?:tech(?:nology)? )?stack|frameworks?|front-?end|back-?end|infrastructure|deploy(?:ment|ing)?"
    r"|ci(?:/cd)?|pipelines?|builds?|conventions?|codebase|code style|style guide|repo(?:sitory)?"
    r"|lint(?:ing)?|tests|testing|dependencies|packages?|modules?|components?|interfaces?|ui|ux|cli"
    r"|commands?|scripts?|env vars?|config(?:uration)?|project|directory structure"
    r"|users? (?:stor(?:y|ies)|management|roles?|permissions?|accounts?|sessions?|registration|flows?"
    r"|guide|manual|models?|settings|research|input|agents?))\b"
    "|аутентификаци|авторизаци|архитектур|сборк|стек|баз[аы] данных|интерфейс|зависимост"
    r"|тестировани|соглашени|проект(?:а|е|у|ом)?\b"
    "|认证|認證|鉴权|登录|接口|界面|架构|技术栈|数据(?:库|模型)|构建|部署|依赖|项目|代码|测试|约定|规范"
    "|todennu|tunnistautumi|käyttöliittym|arkkitehtuur|tietokan|tietomalli|rajapin|riippuvuu"
    r"|käytännö|koonti|teknologi|projekti(?:n|ssa)?\b"
)
"""Marks a heading about a project, at any position."""

_ABOUT_A_PERSON = re.compile(
    r"\b(?:my|i|prefers?|preferred|preferences?|favou?rites?|hobby|hobbies|current projects?"
    r"|oma|omat|minun|nykyiset)\b|мо[йяиеё]\b|предпочт|текущи|我|偏好|当前|mieltymy"
)
"""Marks a heading as one about a person, even if `_PROJECT` matches it: `My stack`."""

_LONGEST_LABEL = 200
"""The most characters of a heading that are examined."""


class Headings:
    """The headings above a line."""

    def __init__(self) -> None:
        self._titles: list[tuple[int, str]] = []

    def add(self, level: int, title: str) -> None:
        """Add a heading, replacing earlier headings of its level and of deeper levels."""
        folded = re.sub(r"[`*_\"“”]|^[\W\d]+|[\s:：#]+$", "", nfkc(title[:_LONGEST_LABEL]).casefold())
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
        if _USER.fullmatch(self._titles[at][1]) is None:
            return False
        above = self._titles[:at]
        # The title of a file may be `my-api` even if it is about the user.
        return not any(_DATA.search(title) or (level > 1 and _is_of_project(title)) for level, title in above)


def _is_of_project(title: str) -> bool:
    return _PROJECT.search(title) is not None and _ABOUT_A_PERSON.search(title) is None


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


LANGUAGES = frozenset(
    "ada assembly bash c c# c++ clojure cobol cpp crystal css dart delphi elixir elm erlang f# fortran go"
    " golang groovy haskell html java javascript js julia kotlin lisp lua matlab nim node node.js"
    " objective-c ocaml perl php powershell prolog python r racket ruby rust scala scheme shell sh"
    " solidity sql swift tcl ts typescript vb vba zig".split()
)
"""Programming languages."""

_FRAMEWORKS = (
    "angular angularjs astro axum bootstrap celery django express express.js fastapi flask flutter gin"
    " hibernate ionic jquery keras ktor laravel micronaut nest nestjs next.js nextjs nuxt numpy pandas"
    " phoenix prisma pydantic pytorch qt quarkus rails react react.js react-native redux rocket scipy"
    " solid spring sqlalchemy starlette svelte sveltekit symfony tailwind tensorflow tokio vue vue.js"
    " vuejs wordpress xamarin"
)
_DATABASES = (
    "cassandra clickhouse cockroachdb couchdb dynamodb elasticsearch firebase firestore influxdb kafka"
    " mariadb memcached mongo mongodb mssql mysql neo4j oracle postgres postgresql rabbitmq redis snowflake"
    " sqlite sqlite3 supabase"
)
_TOOLS = (
    "ansible aws azure babel bazel black bun bundler cargo circleci cloudflare cmake composer cypress deno"
    " docker docker-compose esbuild eslint flake8 gcc gcp git github gitlab gradle grafana graphql grpc"
    " heroku helm jenkins jest jira jwt k8s kubernetes linux llvm make maven mercurial mocha mypy netlify"
    " nginx npm nuget oauth oauth2 openapi pip pipenv playwright pnpm podman poetry prettier prometheus"
    " pytest rest rollup rspec ruff selenium storybook subversion swagger terraform tox uv uvicorn vercel"
    " vite vitest webpack yarn"
)
_OF_WORDS = (
    "github actions|gitlab ci|google cloud|docker compose|next js|react native|ruby on rails|spring boot"
    "|sql server|tailwind css|vs code|visual studio|microservices|serverless"
)

TECHNOLOGIES = LANGUAGES.union(_FRAMEWORKS.split(), _DATABASES.split(), _TOOLS.split(), _OF_WORDS.split("|"))
"""Languages, frameworks, databases and tools."""

BEGINS = re.compile(
    rf"(?:{'|'.join(map(re.escape, sorted(TECHNOLOGIES, key=len, reverse=True)))})"
    r"(?:-kiel\w+|:?(?:a|ä|ää|lla|llä|ssa|ssä))?(?!['’]|-?\w)"
)
"""Matches a technology at the beginning of a text, possibly with a Finnish ending."""

_MAX_STATEMENT = 200
"""The most characters of a text that makes only one statement."""

_LANGUAGE_KEYS = frozenset(
    "language languages lang main_language primary_language язык языки язык_проекта kieli kielet 语言 語言"
    " sprache langue idioma lenguaje lingua linguagem språk taal język мова".split()
)
"""Keys for spoken languages and for programming languages."""

_PROJECT_KEYS = frozenset(
    "programming_language programming_languages coding_language implementation_language web_framework"
    " ui_framework dbms datastore orm build_tool build_system build_command bundler package_manager"
    " dependency_manager test_framework testing_framework test_runner test_command linter ci ci_cd cicd"
    " deploy_target repo_url codebase tech_stack technology_stack api_style user_authentication"
    " version_control vcs framework_version"
    " язык_программирования языки_программирования субд орм система_сборки менеджер_пакетов"
    " тестовый_фреймворк стек_технологий"
    " ohjelmointikieli ohjelmointikielet sovelluskehys koontityökalu paketinhallinta testikehys testauskehys"
    " 编程语言 编程語言 程式語言 开发语言 数据库类型 构建工具 包管理器 测试框架 代码仓库 技术栈"
    " programmiersprache langage_de_programmation lenguaje_de_programación"
    " linguaggio_di_programmazione linguagem_de_programação programmeringsspråk".split()
)
"""Keys that only a project has, as `normalise_key` spells them."""

_AMBIGUOUS_KEYS = frozenset(
    "framework frameworks backend frontend back_end front_end database databases db runtime build compiler"
    " dependencies lint formatter pipeline deployment repo repository stack technologies architecture api"
    " authentication auth authorization schema migrations"
    " фреймворк фреймворки база_данных бд сборка репозиторий стек технологии архитектура аутентификация"
    " авторизация зависимости"
    " kehys viitekehys tietokanta repositorio tietovarasto pino teknologiat arkkitehtuuri tunnistautuminen"
    " todennus riippuvuudet"
    " 框架 数据库 資料庫 运行时 仓库 架构 认证 依赖"
    " datenbank base_de_données base_de_datos banco_de_dados databas".split()
)
"""Keys that belong to a project if the value is a technology, else to a person: `Build: athletic`."""

_OF_A_PROJECT = re.compile(
    r"(?:the |this |that |our )?(?:"
    r"(?:project|repo(?:sitory)?|code ?base|code|app(?:lication)?|back-?end|front-?end|api|server|web ?site"
    r"|cli"
    r"|software|tests?|build)s?(?: (?:is|are|was|were|has been))?(?: (?:mainly|mostly|primarily|currently))?"
    r" (?:uses?|using|written|built|implemented|developed|coded|based on|runs? (?:on|with|in)|deployed"
    r"|depends on|targets|linted|formatted|powered)"
    r"|(?:repo(?:sitory)?|code ?base|back-?end|front-?end|api) (?:has|requires|stores|follows|supports))\b"
    r"|(?:этот |наш |данный |весь )?(?:проект|репозиторий|код|приложение|сервис|бэкенд|фронтенд|сервер)"
    r" (?:использует|написан\w?|построен\w?|реализован\w?|работает на|основан\w?|разработан\w?|на)"
    r"|(?:本|该|這個|这个|我们的)?(?:项目|項目|仓库|代码库|代码|应用|应用程序|后端|前端|程序)(?:是|主要)?"
    r"(?:使用|采用|採用|用|基于|依赖|运行在)"
    r"|(?:tämä |tämän )?(?:projekti|repositorio|koodi(?:kanta)?|sovellus|palvelin|taustajärjestelmä|ohjelma)"
    r" (?:käyttää|on (?:kirjoitettu|toteutettu|rakennettu|koodattu)|perustuu)"
    r"|(?:das |dieses |unser )?(?:projekt|repository|backend|frontend) (?:verwendet|nutzt|benutzt|ist in)"
    r"|(?:le |ce )?(?:projet|dépôt) (?:utilise|est écrit)"
    r"|(?:el |este )?(?:proyecto|repositorio) (?:usa|utiliza|está escrito)"
    r"|(?:il |o |este )?(?:progetto|projeto) (?:usa|utilizza|utiliza|è scritto|é escrito)"
)
"""The beginning of a sentence about a project, up to what it uses."""

_LEADING = re.compile(r"\W*(?:(?:in|with|on|by|using|mit|en|em|на|с|языке|the|a|an) |了|的是)*")

_FACT_HEADING = re.compile(r"#{1,6}\s+[^\s:：][^:：]*")
_FACT_PAIR = re.compile(
    r"(?:[-*+]\s+)?(?:\*\*|__|`)?([^\W\d][^:：\n*_`]{0,60}?)(?:\*\*|__|`)?\s*[:：](?:\*\*|__|`)?\s*(.+)"
)
_VERSION = re.compile(r"[ (]*v?\d[\d.x+]*\)?")


def normalise_key(label: str) -> str:
    """Normalise a label or key: `Build Tool` and `buildTool` become `build_tool`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", nfkc(label))
    return re.sub(r"[\W_]+", "_", words.casefold()).strip("_")


def is_fact_of_project(key: str, value: str) -> bool:
    """Whether a key and its value describe a project, such as its components or programming language."""
    bare = re.sub(r"^(?:project|user|the|проекта?|项目|projektin?)_?(?=.)", "", normalise_key(key))
    if bare in _PROJECT_KEYS or normalise_key(key) in _PROJECT_KEYS:
        return True
    known = LANGUAGES if bare in _LANGUAGE_KEYS else TECHNOLOGIES if bare in _AMBIGUOUS_KEYS else frozenset()
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
    begins = _OF_A_PROJECT.match(bare_text.lstrip("-*+ "))
    if begins is None:
        return False
    used = begins.string[begins.end() :]
    return BEGINS.match(_LEADING.sub("", used, count=1)) is not None


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


def is_of_project(name: str) -> bool:
    """Whether a file with this name is about a project: CLAUDE is, USER is not. name: without suffix."""
    return name.casefold() in _OF_PROJECTS


def parse(text: str, *, of_project: bool = False) -> tuple[CoreMemory, int]:
    """Return the values in `text`, and how many lines were not understood.

    of_project: whether the file is about a project, so that only values marked as the user's are accepted.
    """
    reader = _MarkdownReader(of_project)
    for line in _content_lines(without_front_matter(text)):
        reader.read(line)
    return reader.memory(), reader.skipped


def label_to_key(label: str) -> str:
    """Return the key for a label, such as `name` for `User name`; "" if it has no letters or digits."""
    text = re.sub(r"['’]", "", nfkc(label).casefold())
    key = re.sub(r"[\W_]+", "_", text).strip("_")
    bare = re.sub(r"^(?:user|agent)s?_", "", key)
    return next((known for known in _KNOWN if bare in (known, known.removesuffix("s"))), key)


class _Label(msgspec.Struct):
    """The key of the items that follow. indent: that of the label's list item; -1 if it is not in a list."""

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

    def read(self, line: str) -> None:
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

    def memory(self) -> CoreMemory:
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
        self._headings.add(level, title)
        self._of_project |= level == 1 and self._headings.are_of_project
        self._heading = self._label = _Label(label_to_key(title), -1)
        self._is_in_item = False

    def _read_item(self, indent: int, text: str) -> None:
        if self._label.indent >= indent:
            self._label = self._heading
        pair = None if self._label.key in _KNOWN else _split_pair(text)
        if pair is None:
            self._add(self._label.key, text)
        elif pair[1]:
            self._add(*pair)
        else:
            self._label = _Label(pair[0], indent)

    def _read_line(self, text: str) -> None:
        pair = _split_pair(text)
        if pair is None:
            is_told = self._label is self._heading and self._heading.key in _KNOWN
            self._add(self._heading.key if is_told else "", text)
        elif pair[1]:
            self._label = self._heading
            self._add(*pair)
            self._is_in_item = False
        else:
            self._label = _Label(pair[0], -1)

    def _add(self, key: str, value: str) -> None:
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
