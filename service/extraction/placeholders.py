"""Recognises what a language model writes where it has nothing to say: `…`, `string`, `N/A`, "No memories.".

A text is a placeholder as a whole or not at all: one that merely contains such a word is none. So is what the
model repeats of its own instructions.
"""

import re
from functools import cache

from memlog.eventlog.content_ids import folded
from memlog.service.extraction.prompts import names, prompt
from memlog.service.extraction.untold import tells_nothing

_LONGEST = 200
"""Characters of a placeholder that is no part of a prompt."""

_SHORTEST_INSTRUCTION = 20
"""Characters of a prompt that nobody else says."""

_SLOT = (
    "content|text|memory|memories|value|string|str|name|key|summary|facts?|preferences?|insights?|entry"
    "|entries"
    "|description|number|topic|category|date|title|user|type|conversation"
)
_TEMPLATE = re.compile(
    r"(?:(?:insert|enter|put|write|add|fill in) )?"
    rf"(?:(?:the|an?|your|some|this|of|or|and|user'?s|short|new|{_SLOT}) ){{0,6}}(?:{_SLOT})"
    r"(?: \d{1,3})?(?: (?:goes )?here)?"
    rf"|(?:(?:an?|the|this is an?|some|for) )?(?:example|sample|placeholder|dummy)"
    rf"(?: (?:{_SLOT}))?(?: \d{{1,3}})?"
    "|lorem ipsum.*|to do|todo|tbd|fixme|(?:foo|bar|baz)(?: ?(?:foo|bar|baz)){,2}|x{2,}"
    "|пример|строка|текст|содержание|содержимое|значение|воспоминание|заполнитель"
    "|示例|例子|内容|内容示例|示例内容|字符串|文本|占位符|摘要|记忆|值"
    "|esimerkki|merkkijono|teksti|sisältö|arvo|muisto|tiivistelmä|paikanvaraaja"
)
"""What stands for a text in an example or a schema."""

_SLOTS = re.compile(
    r"(?:[^\W\d][^:：<>{}\n]{0,40}[:：] ?)?(?:<[^<>\n]+>|\{\{.*\}\}|\$\{.*\}|\{[\w .'-]+\}|%[sd])"
)
"""A slot of a template, whatever it is for. Text in square brackets may be a note."""

_EXAMPLE = re.compile(
    # Names
    r"(?:(?:my|your|(?:the )?user(?:'s)?) (?:full )?name is )?(?:(?:john|jane|joe) doe|joe bloggs|(?:max"
    r"|erika) mustermann"
    "|(?:matti|maija) meikäläinen|иванов иван иванович|иван иванович иванов|张三|李四|某某"
    "|fulan[oa](?: de tal)?)"
    # Addresses
    r"|(?:mailto:)?[\w.+-]+@(?:[\w-]+\.)*(?:(?:example|your-?domain|your-?company)\.\w{2,4}|example|test"
    r"|invalid)"
    r"|(?:user(?:name)?|name|your[\w.-]*|e?mail|test|someone|foo)@(?:domain|e?mail|company|test|foo"
    r"|bar)\.\w{2,4}"
    r"|(?:https?://)?(?:[\w-]+\.)*example\.(?:com|org|net|edu)(?:/\S*)?"
    r"|\d{3,4} (?:main|any|fake|example|sample) (?:street|st|road|rd|avenue|ave"
    r"|lane)\b\.?(?:,? (?:any ?town|springfield).*)?"
    # Numbers
    r"|(?:\+?1[-. ]?)?(?:\(?\d{3}\)?[-. ]?)?555[-. ]?01\d\d|(?:\+?1[-. ]?)?(?:\(?(?:555|123)\)?[-. ])"
    r"(?:\d{3}[-. ])?(?:1234|4567|5555|7890|0000)|\+?1?1234567890|\+?[\d-]*(?:x{3,}[- ]?)+"
    # Days
    r"|(?!\d+(?:\D\d+)*$)(?:UNIT)(?:[-/.](?:UNIT))(?:[-/.t](?:UNIT)){1,4}|y{4}(?:-mm)?|hh:mm(?::ss)?"
    # What somebody is to fill in
    r"|\[(?:your|insert|enter|add|fill|put|specify|the user|user|e\.g|ваш|укажите|введите|你的|您的|请"
    r"|syötä|kirjoita)"
    r"[^\[\]\n]*\]|(?:your|insert|enter|put|type|write|add|fill in) (?:[\w']+ ){1,5}here"
    "|etc|et cetera|and so (?:on|forth)|и так далее|и т\\.? ?д|и др|等等|等|jne|ja niin edelleen|usw"
    "|und so weiter".replace(
        "UNIT", "y{2,4}|m{2}|d{2}|x{2,4}|h{2}|s{2}|г{2,4}|м{2}|д{2}|v{4}|k{2}|p{2}|j{2,4}|t{2}|a{4}|\\d{1,4}"
    )
)
"""What examples are made of: the names, the addresses and the days that nobody has."""

_STATE = (
    r"(?:(?:it|this|that) is |is )?(?:not (?:(?:yet|currently|explicitly) )?|un)(?:specified|available"
    r"|provided"
    "|known|applicable|mentioned|given|stated|set|found|sure|determined|disclosed|defined|shared|recorded"
    "|relevant)"
    "(?: (?:yet|here|today|so far|at this time))?"
)
_NOTHING = re.compile(
    f"{_STATE}|n ?/ ?a|n\\. ?a|null|nil|nan|na|empty|(?:an )?empty (?:string|text|list|value)|missing"
    "|i do(?: not|n't) know"
    # Russian
    "|пусто|отсутствует|н ?/ ?д|неизвест(?:но|ен|на|ны)|не (?:известно|указан[оаы]?|задан[оаы]?"
    "|определен[оаы]?"
    "|упомянут[оаы]?|упоминается|применимо|предоставлен[оаы]?)|неприменимо|не знаю"
    # Chinese, Japanese, Korean
    "|暂无|暫無|未知|不详|不詳|不明|未指定|未提供|未提及|未说明|未定义|不适用|不知道|待定|未定|空|空白"
    "|該当なし|미정|알 수 없음"
    # Finnish
    "|ei (?:ole )?(?:tiedossa|määritelty|määritetty|ilmoitettu|kerrottu|mainittu|saatavilla|käytettävissä"
    "|annettu"
    "|sovellettavissa|tiedetä|tunneta|sovellu|asetettu)|tuntematon|tyhjä|puuttuu|en tiedä"
    # Others
    "|unbekannt|nicht (?:bekannt|angegeben|verfügbar|zutreffend|anwendbar|erwähnt|vorhanden|festgelegt)"
    "|keine angaben?"
    "|okänd|(?:ej|inte) (?:angive[nt]|känt|tillämpligt)|inconnue?|sans objet"
    "|non (?:spécifiée?|précisée?|disponible|applicable|renseignée?|mentionnée?|communiquée?|connue?"
    "|défini[e]?)"
    "|desconocid[oa]|desconhecid[oa]|sconosciut[oa]|(?:no|não|non) (?:se )?(?:especificad[oa]|especifica"
    "|disponible|disponível|disponibile|aplica|aplicable|aplicável|applicabile|mencionad[oa]|menciona"
    "|informad[oa]"
    "|specificat[oa]|menzionat[oa]|not[oa]|sabe|definid[oa]|proporcionad[oa])|onbekend|niet (?:bekend"
    "|opgegeven"
    "|beschikbaar|van toepassing|vermeld)|nieznan[yae]|nie (?:podano|dotyczy|określono)|невідом[оа]"
    "|bilinmiyor"
    "|غير معروف|غير محدد|لا توجد معلومات"
)
"""What says that there is nothing to say."""

_DENIAL = re.compile(
    "no|none|nope|nothing|never|no one|нет|ничего|никаких|никогда|无|無|没有|沒有|沒|没|なし|無し|없음"
    "|无内容"
    "|ei|ei ole|ei mitään|ei yhtään|ei koskaan|kein[es]?|nein|nichts|aucune?|rien|non|nessun[oa]?|niente"
    "|ninguno|ninguna|nada|nenhum|inga|inget|ingen|nej|geen|brak|немає|нема|yok|لا شيء|لا يوجد"
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
        _denies(part) or _TEMPLATE.fullmatch(part) or _EXAMPLE.fullmatch(part) for part in _parts(said)
    ) or _is_instruction(said)


def says_nothing(text: str) -> bool:
    """Whether a text says in words that there is nothing to say."""
    parts = _parts(folded(text)) if len(text) <= _LONGEST else []
    return bool(parts) and all(map(_denies, parts))


def is_denial(text: str) -> bool:
    """Whether a text only denies: `none`. It says something as the answer to a question alone."""
    return _DENIAL.fullmatch(_bare(folded(text))) is not None


def _denies(part: str) -> bool:
    """Whether a clause says in words that there is nothing to say."""
    return any(each.fullmatch(part) for each in (_NOTHING, _DENIAL)) or tells_nothing(part)


def _parts(said: str) -> list[str]:
    """The clauses of a folded text without what surrounds them; [] where it has no letter and no digit."""
    whole = _bare(said)
    if _NOTHING.fullmatch(whole):  # n/a
        return [whole]
    if _EXAMPLE.fullmatch(said.strip("\"'`<>() .,…")):  # user@example.com
        return []
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
