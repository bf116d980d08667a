"""Recognises what a language model writes where it has nothing to say: `…`, `string`, `N/A`, "No memories.".

A text is a placeholder as a whole or not at all: one that merely contains such a word is none. So is what the
model repeats of its own instructions.
"""

import re
from functools import cache

from memlog.eventlog.content_ids import folded
from memlog.service.extraction.prompts import names, prompt

_LONGEST = 200
"""Characters of a placeholder that is no part of a prompt."""

_SHORTEST_INSTRUCTION = 20
"""Characters of a prompt that nobody else says."""

_SLOT = (
    "content|text|memory|memories|value|string|str|name|key|summary|facts?|preferences?|insights?|entry|entries"
    "|description|number|topic|category|date|title|user|type|conversation"
)
_TEMPLATE = re.compile(
    r"(?:(?:insert|enter|put|write|add|fill in) )?"
    rf"(?:(?:the|an?|your|some|this|of|or|and|user'?s|short|new|{_SLOT}) ){{0,6}}(?:{_SLOT})"
    r"(?: \d{1,3})?(?: (?:goes )?here)?"
    rf"|(?:(?:an?|the|this is an?|some|for) )?(?:example|sample|placeholder|dummy)"
    rf"(?: (?:{_SLOT}))?(?: \d{{1,3}})?"
    "|lorem ipsum.*|to do|todo|tbd|fixme|foo|bar|foobar|x{2,}"
    "|пример|строка|текст|содержание|содержимое|значение|воспоминание|заполнитель"
    "|示例|例子|内容|内容示例|示例内容|字符串|文本|占位符|摘要|记忆|值"
    "|esimerkki|merkkijono|teksti|sisältö|arvo|muisto|tiivistelmä|paikanvaraaja"
)
"""What stands for a text in an example or a schema."""

_SLOTS = re.compile(r"<[^<>\n]+>|\{\{.*\}\}|\$\{.*\}|\{[\w .'-]+\}|%[sd]")
"""A slot of a template, whatever it is for. Text in square brackets may be a note."""

_ADJECTIVES = (
    "new|relevant|important|notable|other|further|additional|specific|more|useful|lasting|personal|else"
    "|significant|such|particular|explicit|clear"
)
_NOUNS = (
    "memory|memories|facts?|information|info|data|details?|content|summary|preferences?|insights?|entry|entries"
    "|events?|values?|examples?|profile|changes?|updates?|messages?|text|answer|response|context"
)
_TAIL = (
    r"(?: (?:(?:was|were|is|are|has been|have been) )?(?:found|available|provided|given|specified|mentioned"
    "|known|recorded|stored|stated|needed|necessary|required|extracted|shared|happened|happens|said|noted|present|here"
    "|yet|today|so far|at this time"
    "|(?:to|worth) (?:remember|report|stor|sav|extract|add|not|record|summari[sz]|keep|say|distil|mention)"
    "(?:e|ing)?"
    "|(?:in|from|of|about|for|during) (?:(?:this|the|that|these|those) )?(?:conversation|messages?|text|diary"
    "|day|chat|session|user|data|input|memories|person)))*"
)
_NOTHING = re.compile(
    rf"(?:there (?:are|is|were|was) )?(?:no(?: (?:{_ADJECTIVES}))*(?: (?:{_NOUNS}))"
    rf"|(?:nothing|none|no one)(?: (?:{_ADJECTIVES}))*(?: (?:{_NOUNS}))?){_TAIL}"
    "|(?:(?:it|this|that) is |is )?(?:not (?:(?:yet|currently|explicitly) )?|un)(?:specified|available"
    "|provided|known|applicable|mentioned|given|stated|set|found|sure|determined|disclosed|defined|shared|recorded"
    f"|relevant){_TAIL}"
    "|n ?/ ?a|n\\. ?a|null|nil|nan|na|empty|(?:an )?empty (?:string|text|list|value)|missing"
    "|i do(?: not|n't) know"
    # Russian
    "|нет (?:данных|информации|сведений|воспоминаний|фактов|изменений|предпочтений)|(?:данных|информации"
    "|сведений|воспоминаний) нет|(?:данные|информация|сведения|воспоминания) отсутству[ею]т|отсутству[ею]т"
    "|пусто|н ?/ ?д|неизвест(?:но|ен|на|ны)|не (?:известно|указан[оаы]?|задан[оаы]?|определен[оаы]?"
    "|упомянут[оаы]?|упоминается|применимо|предоставлен[оаы]?)|неприменимо"
    "|нечего (?:запоминать|запомнить|сохранять|добавить)|не знаю"
    "|ничего (?:важного|нового|не произошло|не известно)"
    # Chinese
    "|(?:暂|暫)?(?:无|無|没有|沒有)(?:任何|相关|相關|可用|新|重要|需要|值得|可|记住|記住|记录|的)*"
    "(?:信息|資訊|数据|數據|资料|資料|内容|內容|记忆|記憶|记录|記錄|摘要|变化)"
    "|暂无|暫無|未知|不详|不詳|不明|未指定|未提供|未提及|未说明|未定义|不适用|不知道|待定|空|空白|没什么可记的?"
    # Finnish
    "|ei (?:ole )?(?:tiedossa|tietoa|tietoja|muistoja|muistettavaa|mitään muistettavaa|mitään uutta"
    "|määritelty|määritetty|ilmoitettu|kerrottu|mainittu|saatavilla|käytettävissä|annettu|sovellettavissa|tiedetä|tunneta"
    "|sisältöä|dataa)|tuntematon|tyhjä|puuttuu|en tiedä"
    # Others
    "|unbekannt|okänd|inconnue?|desconocid[oa]|sconosciut[oa]|desconhecid[oa]|keine (?:angaben?|daten)"
)
"""What says that there is nothing to say."""

_DENIAL = re.compile(
    "no|none|nope|nothing|never|нет|ничего|никаких|никогда|无|無|没有|沒有|沒|没"
    "|ei|ei ole|ei mitään|ei yhtään|ei koskaan|kein[es]?|nein|nichts|aucune?|rien|non"
    "|ninguno|ninguna|nada|inga|inget|ingen|nej"
)
"""What denies a question, and says nothing without one."""

_LABEL = re.compile(rf"(?:(?:{_SLOT}) )?(?:{_SLOT})[\"'`]? ?[:=] ?[\"'`]?(?=\S)")
_ENDS = re.compile(r"[.;,|!?。；，、…]+ ?| [-–—/] ")
_MARKUP = re.compile(r"[`*_]+")


def is_placeholder(text: str) -> bool:
    """Whether a text says nothing: an example, a slot of a template, a mere denial, a part of a prompt."""
    said = folded(text)
    if len(said) > _LONGEST:
        return _is_instruction(said)
    if _SLOTS.fullmatch(said.strip("\"'` .")) is not None:
        return True
    return all(
        any(each.fullmatch(part) for each in (_NOTHING, _DENIAL, _TEMPLATE)) for part in _parts(said)
    ) or _is_instruction(said)


def says_nothing(text: str) -> bool:
    """Whether a text says in words that there is nothing to say."""
    parts = _parts(folded(text)) if len(text) <= _LONGEST else []
    return bool(parts) and all(_NOTHING.fullmatch(part) or _DENIAL.fullmatch(part) for part in parts)


def is_denial(text: str) -> bool:
    """Whether a text only denies: `none`. It says something as the answer to a question alone."""
    return _DENIAL.fullmatch(_bare(folded(text))) is not None


def _parts(said: str) -> list[str]:
    """The clauses of a folded text without what surrounds them; [] where it has no letter and no digit."""
    whole = _bare(said)
    if _NOTHING.fullmatch(whole):  # n/a
        return [whole]
    return [bare for part in _ENDS.split(whole) if (bare := _bare(part))]


def _bare(said: str) -> str:
    """A folded text without quotes, brackets, markup and a label in front."""
    start, end = 0, len(said)
    while start < end and not said[start].isalnum():
        start += 1
    while end > start and not said[end - 1].isalnum():
        end -= 1
    return _LABEL.sub("", said[start:end].replace("_", " "), count=1) if start < end else ""


def _is_instruction(said: str) -> bool:
    """Whether a folded text stands in a prompt."""
    told = " ".join(_MARKUP.sub("", said).split()).strip("-.:;,\"' ")
    return len(told) >= _SHORTEST_INSTRUCTION and told in _instructions()


@cache
def _instructions() -> str:
    texts = (" ".join(_MARKUP.sub("", prompt(name).text).split()) for name in names())
    return "\n".join(map(folded, texts))
