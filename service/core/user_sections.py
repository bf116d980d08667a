"""Tells what notes say about their user from what they say about a project.

`## User` is about the user; `## User authentication`, and `## User` below `## Data model`, are not.
"""

import re

from memlog.eventlog.text import nfkc

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(?:(.*?)^---[ \t]*\r?(?:\n|\Z))?", re.M | re.S)
_LONGEST_FRONT_MATTER = 16 * 1024
"""Characters in which front matter has to end: a text without any is not searched to its end."""

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
"""A heading that is about the user as a whole."""

_DATA = re.compile(
    r"\b(?:(?:data|domain|entity|object|class) ?(?:models?|types?|schemas?|structures?)"
    r"|databases?|schemas?|entities|tables?|models?|types)\b"
    "|数据(?:模型|库|表)|модел[ьи] данных|tietomalli|tietokan"
)
"""A heading whose `User` is a type of a program."""

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
"""A heading about a project, wherever it says so."""

_OF_A_PERSON = re.compile(
    r"\b(?:my|i|prefers?|preferred|preferences?|favou?rites?|hobby|hobbies|current projects?"
    r"|oma|omat|minun|nykyiset)\b|мо[йяиеё]\b|предпочт|текущи|我|偏好|当前|mieltymy"
)
"""What makes such a heading one about a person: `My stack`."""

_LONGEST_LABEL = 200
"""Characters of a heading that are looked at."""


class Headings:
    """The headings above a line."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def add(self, level: int, title: str) -> None:
        """Take a heading: it ends those of its level and below."""
        folded = re.sub(r"[`*_\"“”]|^[\W\d]+|[\s:：#]+$", "", nfkc(title[:_LONGEST_LABEL]).casefold())
        self._open = [each for each in self._open if each[0] < level]
        self._open.append((level, re.sub(r"\s+", " ", folded)))

    @property
    def are_of_user(self) -> bool:
        """Whether the last heading is about the user."""
        return bool(self._open) and self._is_of_user(len(self._open) - 1)

    @property
    def are_below_user(self) -> bool:
        """Whether the last heading, or one above it, is about the user, and none between about a project."""
        for at in reversed(range(len(self._open))):
            if self._is_of_user(at):
                return True
            if _is_of_project(self._open[at][1]):
                return False
        return False

    @property
    def are_of_project(self) -> bool:
        """Whether the last heading, or one above it but the title of the file, is about a project."""
        below_title = [title for level, title in self._open if level > 1]
        own = below_title or [title for _, title in self._open]
        return not self.are_below_user and any(map(_is_of_project, own))

    def _is_of_user(self, at: int) -> bool:
        if _USER.fullmatch(self._open[at][1]) is None:
            return False
        above = self._open[:at]
        # The title of a file says `my-api`, whoever the user is.
        return not any(_DATA.search(title) or (level > 1 and _is_of_project(title)) for level, title in above)


def _is_of_project(title: str) -> bool:
    return _PROJECT.search(title) is not None and _OF_A_PERSON.search(title) is None


def without_front_matter(text: str) -> str:
    """Return a text without what stands between `---` at its top, if that is a mapping; else such a line is
    a horizontal rule, and only it is left out."""
    found = _FRONT_MATTER.match(text[:_LONGEST_FRONT_MATTER])
    if found is None:
        return text
    if found[1] is not None and _is_mapping(found[1]):
        return text[found.end() :]
    return text[text.index("\n") + 1 :]


def _is_mapping(text: str) -> bool:
    has_member = False
    for line in text.splitlines():
        if _MEMBER.match(line):
            has_member = True
        elif line.strip() and not (has_member and _BELOW_A_MEMBER.match(line)):
            return False
    return has_member
