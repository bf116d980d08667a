"""Tells what is said of a software project from what is said of a person: `Language: Go`, "项目使用 Go"."""

import re

from memlog.eventlog.content_ids import folded
from memlog.eventlog.text import nfkc
from memlog.service.core.technologies import BEGINS, LANGUAGES, TECHNOLOGIES

_LONGEST = 200
"""Characters of a text that are looked at: a longer one says more than one thing."""

_LANGUAGE_KEYS = frozenset(
    "language languages lang main_language primary_language язык языки язык_проекта kieli kielet 语言 語言"
    " sprache langue idioma lenguaje lingua linguagem språk taal język мова".split()
)
"""Keys for what a person speaks, and for what a program is written in."""

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
"""Keys that only a project has, as `bare_key` spells them."""

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
"""Keys that a project has with a technology, and a person with anything else: `Build: athletic`."""

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
"""How a sentence about a project begins, up to what it uses."""

_LEADING = re.compile(r"\W*(?:(?:in|with|on|by|using|mit|en|em|на|с|языке|the|a|an) |了|的是)*")

_HEADING = re.compile(r"#{1,6}\s+[^\s:：][^:：]*")
_PAIR = re.compile(
    r"(?:[-*+]\s+)?(?:\*\*|__|`)?([^\W\d][^:：\n*_`]{0,60}?)(?:\*\*|__|`)?\s*[:：](?:\*\*|__|`)?\s*(.+)"
)
_VERSION = re.compile(r"[ (]*v?\d[\d.x+]*\)?")


def bare_key(label: str) -> str:
    """Return a label or a key as keys are spelled: `CI/CD`, `Build Tool` and `buildTool` alike."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", nfkc(label))
    return re.sub(r"[\W_]+", "_", parted.casefold()).strip("_")


def is_of_project(key: str, value: str) -> bool:
    """Whether a key and its value are about a project: its parts, or a language that nobody speaks."""
    bare = re.sub(r"^(?:project|user|the|проекта?|项目|projektin?)_?(?=.)", "", bare_key(key))
    if bare in _PROJECT_KEYS or bare_key(key) in _PROJECT_KEYS:
        return True
    known = LANGUAGES if bare in _LANGUAGE_KEYS else TECHNOLOGIES if bare in _AMBIGUOUS_KEYS else frozenset()
    return all(each in known for each in _listed(value))


def tells_of_project(text: str) -> bool:
    """Whether a text is a note about a project: a heading, `Framework: Django`, "The project uses Go"."""
    if len(text) > _LONGEST or "\n" in text.strip():
        return False
    said = folded(text).strip()
    if _HEADING.fullmatch(said):
        return True
    pair = _PAIR.fullmatch(text.strip())
    if pair is not None and is_of_project(pair[1], pair[2]):
        return True
    begins = _OF_A_PROJECT.match(said.lstrip("-*+ "))
    if begins is None:
        return False
    used = begins.string[begins.end() :]
    return BEGINS.match(_LEADING.sub("", used, count=1)) is not None


def _listed(value: str) -> list[str]:
    """Return what a value lists, without versions."""
    bare = value[:_LONGEST].casefold().strip(" .。`*_")
    said = re.split(r"\s*(?:,|，|、|/|&|\+(?!\+)|;|\b(?:and|with|on|и|ja|und|et|y)\b|和)\s*", bare)
    return [_VERSION.sub("", each.removesuffix("语言")).strip() for each in said]
