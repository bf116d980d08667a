"""Tells what is said of a software project from what is said of a person: `Language: Go`, "项目使用 Go"."""

import re

from memlog.eventlog.content_ids import folded
from memlog.eventlog.text import nfkc

_LONGEST = 200
"""Characters of a text that are looked at: a longer one says more than one thing."""

_PROGRAMMING = frozenset(
    "ada assembly bash c c# c++ clojure cobol cpp crystal css dart delphi elixir elm erlang f# fortran go"
    " golang groovy haskell html java javascript js julia kotlin lisp lua matlab nim node node.js"
    " objective-c ocaml perl php powershell prolog python r racket ruby rust scala scheme shell sh"
    " solidity sql swift tcl ts typescript vb vba zig".split()
)
_LANGUAGE_KEYS = frozenset(
    "language languages lang main_language primary_language язык языки язык_проекта kieli kielet 语言 語言"
    " sprache langue idioma lenguaje lingua linguagem språk taal język мова".split()
)
"""Keys for what a person speaks, and for what a program is written in."""

_PROJECT_KEYS = frozenset(
    "programming_language programming_languages coding_language implementation_language framework frameworks"
    " web_framework ui_framework backend frontend back_end front_end database databases db dbms"
    " datastore orm"
    " runtime build build_tool build_system build_command bundler compiler package_manager"
    " dependency_manager"
    " dependencies test_framework testing_framework test_runner test_command linter lint formatter"
    " ci ci_cd cicd pipeline deployment deploy_target repo repository repo_url codebase stack tech_stack"
    " technology_stack technologies architecture api api_style authentication auth user_authentication"
    " authorization schema migrations version_control vcs framework_version"
    " язык_программирования языки_программирования фреймворк фреймворки база_данных бд субд орм сборка"
    " система_сборки менеджер_пакетов тестовый_фреймворк репозиторий стек стек_технологий технологии"
    " архитектура аутентификация авторизация зависимости"
    " ohjelmointikieli ohjelmointikielet kehys sovelluskehys viitekehys tietokanta koontityökalu"
    " paketinhallinta testikehys testauskehys repositorio tietovarasto pino teknologiat arkkitehtuuri"
    " tunnistautuminen todennus riippuvuudet"
    " 编程语言 编程語言 程式語言 开发语言 框架 数据库 資料庫 数据库类型 运行时 构建工具 包管理器"
    " 测试框架 仓库 代码仓库"
    " 技术栈 架构 认证 依赖"
    " programmiersprache datenbank langage_de_programmation base_de_données lenguaje_de_programación"
    " base_de_datos"
    " linguaggio_di_programmazione linguagem_de_programação banco_de_dados programmeringsspråk"
    " databas".split()
)
"""Keys that only a project has, as `bare_key` spells them."""

_OF_A_PROJECT = re.compile(
    r"(?:the |this |that |our )?(?:"
    r"(?:project|repo(?:sitory)?|code ?base|code|app(?:lication)?|back-?end|front-?end|api|server|web ?site"
    r"|cli"
    r"|software|tests?|build)s?(?: (?:is|are|was|were|has been))?(?: (?:mainly|mostly|primarily|currently))?"
    r" (?:uses?|using|written|built|implemented|developed|coded|based on|runs? (?:on|with|in)|deployed"
    r"|depends on|targets|linted|formatted|powered)"
    r"|(?:repo(?:sitory)?|code ?base|back-?end|front-?end|api) (?:has|requires|stores|follows|supports))\b"
    r"|(?:этот |наш |данный |весь )?(?:проект|репозиторий|код|приложение|сервис|бэкенд|фронтенд|сервер)"
    r" (?:использует|написан\w?|построен\w?|реализован\w?|работает на|основан\w?|разработан\w?|на [a-z])"
    r"|(?:本|该|這個|这个|我们的)?(?:项目|項目|仓库|代码库|代码|应用|应用程序|后端|前端|程序)(?:是|主要)?"
    r"(?:使用|采用|採用|用|基于|依赖|运行在)"
    r"|(?:tämä |tämän )?(?:projekti|repositorio|koodi(?:kanta)?|sovellus|palvelin|taustajärjestelmä|ohjelma)"
    r" (?:käyttää|on (?:kirjoitettu|toteutettu|rakennettu|koodattu)|perustuu|on \w+-kieli)"
    r"|(?:das |dieses |unser )?(?:projekt|repository|backend|frontend) (?:verwendet|nutzt|benutzt|ist in)"
    r"|(?:le |ce )?(?:projet|dépôt) (?:utilise|est écrit)"
    r"|(?:el |este )?(?:proyecto|repositorio) (?:usa|utiliza|está escrito)"
    r"|(?:il |o |este )?(?:progetto|projeto) (?:usa|utilizza|utiliza|è scritto|é escrito)"
)
"""How a sentence about a project begins."""

_HEADING = re.compile(r"#{1,6}\s+\S")
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
    return bare in _LANGUAGE_KEYS and _is_in_code(value)


def tells_of_project(text: str) -> bool:
    """Whether a text is a note about a project: a heading, `Framework: Django`, "The project uses Go"."""
    if len(text) > _LONGEST or "\n" in text.strip():
        return False
    said = folded(text).strip()
    if _HEADING.match(said):
        return True
    pair = _PAIR.fullmatch(text.strip())
    if pair is not None and is_of_project(pair[1], pair[2]):
        return True
    return _OF_A_PROJECT.match(said.lstrip("-*+ ")) is not None


def _is_in_code(value: str) -> bool:
    """Whether each language of a list is one of programs."""
    bare = value[:_LONGEST].casefold().strip(" .。`*_")
    said = re.split(r"\s*(?:,|，|、|/|&|\+(?!\+)|;|\b(?:and|и|ja|und|et|y)\b|和)\s*", bare)
    return all(_VERSION.sub("", each.removesuffix("语言")).strip() in _PROGRAMMING for each in said)
