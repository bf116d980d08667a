"""Recognises placeholders that language models write instead of content: `…`, `string`, "No memories.".

Only a whole text is a placeholder, not one that merely contains such a word. Parts of the model's own
instructions are placeholders, too.
"""

import re
from functools import cache
from typing import NamedTuple

from memlog.eventlog.codec.content_ids import fold_content
from memlog.service.engine.prompts import prompt_names, read_prompt

# Such a sentence consists only of words of a closed set, in any order: who might have told, that they have
# not, and a generic noun for what is told. With any other word it has content, like "told no family". In
# doubt a text has content: a false refusal loses a memory permanently.


class _TellingWords(NamedTuple):
    """One language's words for saying nothing, as patterns that match all their forms.

    denying: negations. telling: verbs such as "say" and "contain". told: nouns and pronouns for anything that
    can be said. others: who might have said it, and function words. is_spaced: whether spaces separate words.
    """

    denying: str
    telling: str
    told: str
    others: str
    is_spaced: bool = True


_LANGUAGES = [
    _TellingWords(
        "no|not|nothing|none|without|neither|nor",
        "said|says?|told|tells?|shared?|provided?|mention(?:ed)?|stated?|gave|given?|disclosed?"
        "|reveal(?:ed)?"
        "|express(?:ed)?|indicated?|report(?:ed)?|contain(?:s|ed)?|included?|includes|identified"
        "|extracted"
        "|recorded|specif(?:y|ied)|discuss(?:ed)?|offer(?:ed)?|convey(?:ed)?|communicated?|happen(?:s|ed)?"
        "|noted",
        "nothing|none|anything|something|memory|memories|facts?|information|info|data|details?|content"
        "|summary"
        "|preferences?|insights?|entry|entries|knowledge|statements?|takeaways?|noteworthy|memorable|substance"
        "|topics?",
        "the|an?|one|this|that|these|those|it|its|there|here|found|any|all|other|else|more|much|yet|so|far|today"
        "|currently"
        "|explicit(?:ly)?|clear(?:ly)?|directly|really|particularly|about|of|to|in|from|for|during|on|at"
        "|by|with|or|and"
        "|as|is|are|was|were|be|been|being|has|have|had|does|did|could|can|cannot|would|that|which|what"
        "|worth"
        "|users?|person|persons|people|speakers?|humans?|participants?|they|them|their|he|she|his|her"
        "|himself|herself"
        "|themselves|assistant|conversations?|chats?|dialog(?:ue)?s?|discussions?|exchanges?|sessions?"
        "|messages?|text"
        "|transcripts?|diary|day|input|log|new|relevant|important|notable|significant|specific|useful"
        "|lasting|personal"
        "|meaningful|interesting|concrete|further|additional|such|particular|certain|special|long|term"
        "|durable"
        "|importance|interest|value|significance|time|moment|s|remember(?:ed|ing)?|stor(?:e|ed|ing)"
        "|sav(?:e|ed|ing)"
        "|extract(?:ing)?|add(?:ed|ing)?|record(?:ing)?|report(?:ing)?|not(?:e|ing)|keep(?:ing)?|say(?:ing)?"
        "|summari[sz](?:e|ed|ing)|distil(?:led|ling)?|mention(?:ing)?|available|present|known|needed"
        "|necessary|required"
        "|user's",
    ),
    _TellingWords(
        "не|нет|отсутств\\w+|ничего|никак\\w*|без|нечего|ни",
        "(?:со)?общ(?:ил|ал|ает|или)\\w*|сообщ\\w+|рассказ\\w+|сказ\\w+|говор\\w+|поделил\\w+"
        "|предостав\\w+|указ\\w+"
        "|упом\\w+|раскры\\w+|вырази\\w+|содерж\\w+|произош\\w+|случил\\w+|наш\\w+|найден\\w*|обнаруж\\w+"
        "|дал\\w{0,2}|отмет\\w+|назва\\w+",
        "ничего|нечего|чего|что|информаци\\w+|сведени\\w+|данн\\w+|факт\\w*|воспоминан\\w+|детал\\w+"
        "|подробност\\w+"
        "|предпочтени\\w+|изменени\\w+|событи\\w+|содержани\\w+|нибудь|либо|себе",
        "пользовател\\w+|собеседник\\w*|человек\\w*|он|она|они|ассистент\\w*|разговор\\w*|диалог\\w*"
        "|бесед\\w+"
        "|чат\\w*|сообщени\\w+|перепис\\w+|текст\\w*|сесси\\w+|ден\\w+|дневник\\w*|сегодня|в|во|из|о|об"
        "|обо|нем|нём"
        "|ней|сво\\w+|для|и|или|а|про|за|на|по|этот|это\\w*|был\\w*|есть|пока|ещё|еще|важн\\w+|нов\\w+"
        "|личн\\w+"
        "|конкретн\\w+|существенн\\w+|значим\\w+|значительн\\w+|полезн\\w+|особенн\\w+|интересн\\w+"
        "|примечательн\\w+"
        "|так\\w+|люб(?:ой|ые|ых|ого|ую|ая)|друг\\w+|явн\\w+|(?:за)?помн\\w+|запомин\\w+|сохран(?:ять|ить|ени\\w+)|добав\\w+|достойн\\w+"
        "|сто\\w+"
        "|заслужива\\w+|требу\\w+|котор\\w+|можно|нужно|бы|како\\w+|кто",
    ),
    _TellingWords(
        "ei|eivät|en|emme|ilman",
        "kerto\\w+|kerro\\w*|mainin\\w+|maini\\w+|antanut|anna|antaneet|jakanut|jaa|jakaneet|ilmais\\w+"
        "|ilmaise"
        "|sisäl\\w+|sanonut|sano|sanottu|paljast\\w+|esit\\w+|ilmoit\\w+|löyty\\w*|tapahtu\\w+|tullut"
        "|puhunut|todettu",
        "mitään|mikään|yhtään|mitä|tieto\\w*|tieto(?:a|ja)|muisto\\w*|fakt\\w+|yksityiskoht\\w+"
        "|mieltymy\\w+|seikk\\w+"
        "|muistettav\\w+|kerrottav\\w+|tallennettav\\w+|sisältöä|dataa|asi(?:aa|oita)|muutoks\\w+|uutta"
        "|tärkeää"
        "|merkittävää|huomionarvoista|tapahtum\\w+",
        "käyttäjä\\w*|henkilö\\w*|ihminen|hän|he|avustaja\\w*|keskustelu\\w*|viesti\\w*|viest\\w+|teksti\\w*"
        "|päiväkirja\\w*|istun\\w+|päivä\\w*|itsestään|ollut|ole|oli|olleet|liity\\w*|tärke\\w+|uus\\w*"
        "|uusi\\w*"
        "|olennais\\w+|henkilökohtais\\w+|merkittäv\\w+|muuta|muita|erityis\\w*|tänään|vielä|ja|tai|tässä"
        "|tämä|tämän"
        "|sen|siinä|jota|joita|jonka|muista\\w*|tallenta\\w+|kirja\\w+|voi|voisi|pitäisi|kannattaa"
        "|hyödyllis\\w+",
    ),
    _TellingWords(
        "kein\\w*|nichts|nicht|ohne",
        "gesagt|erzählt|mitgeteilt|genannt|erwähnt|geteilt|angegeben|preisgegeben|enthält|enthalten"
        "|gemacht|gegeben"
        "|geäußert|passiert|geschehen|sagte|nannte|erwähnte|teilte|gab|machte",
        "nichts|informationen|information|angaben?|daten|fakten|details?|erinnerung(?:en)?|vorlieben"
        "|präferenzen"
        "|erkenntnisse?|inhalte?|aussagen|einzelheiten|neues|wichtiges|relevantes|besonderes"
        "|erwähnenswertes",
        "der|die|das|dem|den|des|ein\\w*|dies\\w*|es|er|sie|gibt|gab|hat|haben|hatte|wurden?|worden|ist"
        "|sind|war\\w*"
        "|in|im|aus|von|vom|zu|zum|zur|über|für|sich|mit|und|oder|nutzer\\w*|benutzer\\w*|person"
        "|gespräch\\w*|chat"
        "|unterhaltung|konversation|nachricht(?:en)?|text|sitzung|tag|persönlich\\w*|wichtig\\w*|neue?\\w*"
        "|relevant\\w*"
        "|weiter\\w*|besonder\\w*|konkret\\w*|vorhanden|verfügbar|bekannt|merken|speichern|was|mit|heute|gefunden",
    ),
    _TellingWords(
        "aucune?s?|rien|pas|sans|ne|n|ni",
        "dit|fourni\\w*|partagé\\w*|mentionn\\w+|donn(?:é|e)\\w*|révél\\w+|indiqu\\w+|contien\\w+"
        "|communiqu\\w+"
        "|exprim\\w+|précis\\w+|trouv\\w+|comport\\w+",
        "rien|informations?|données?|faits?|souvenirs?|détails?|préférences?|contenus?|éléments?"
        "|renseignements?"
        "|événements?|mémoires?",
        "l|d|le|la|les|un|une|de|des|du|à|au|aux|en|il|elle|on|y|a|est|sont|été|dans|sur|pour|par|et|ou|ce"
        "|cette"
        "|qui|que|utilisat\\w+|personne|conversation|discussion|messages?|texte|session|journée"
        "|personnel\\w*"
        "|important\\w*|pertinent\\w*|nouve\\w+|nouvelles?|particuli\\w+|notable\\w*|utile\\w*"
        "|disponibles?|connue?s?"
        "|retenir|mémoriser|enregistrer|signaler|soi|lui|même|autre\\w*",
    ),
    _TellingWords(
        "sin|ningun[oa]?s?|ningún|nada|no|sem|nenhuma?s?|não|nessun[oa]?|niente|nulla|non|senza",
        "d(?:ijo|icho|isse|ito|etto)|ha|compart\\w+|mencion\\w+|proporcion\\w+|d(?:io|ado)|revel\\w+"
        "|indic\\w+|contien\\w+"
        "|contém|forne\\w+|inform(?:ó|ou|ado)|deu|expres\\w+|fornit\\w+|condivis\\w+|menzion\\w+"
        "|conteng\\w+|cont(?:ó|ou)"
        "|raccont\\w+|rivelat\\w+|especific\\w+|specificat\\w+|encontr\\w+|trovat\\w+",
        "nada|informaci(?:ón|ones)|informaç(?:ão|ões)|informazion[ei]|datos?|dados?|dat[oi]|recuerdos?"
        "|lembranças?"
        "|memórias?|memorias?|ricord[oi]|hechos?|fatos?|fatt[oi]|detalles?|detalhes?|dettagli[o]?"
        "|preferencias?"
        "|preferências?|preferenz[ae]|contenido|conteúdo|contenuto|niente|nulla",
        "el|la|los|las|lo|un[ao]?|o|os|as|a|il|gli|le|l|i|de|del|do|da|dos|das|di|dell[ao]?|en|em|in|nel"
        "|nella|na|no"
        "|sobre|para|per|por|su|suo|sí|si|se|mismo|que|che|y|e|ha|hay|há|h[aá]|houve|hubo|c|è|es|é|son"
        "|sono|fue|foi"
        "|est[aá]|usu[aá]ri[ao]|utente|persona|pessoa|conversaci[oó]n|conversa|conversazione|mensajes?"
        "|mensage(?:m|ns)"
        "|messaggi[o]?|chat|texto|testo|personale?s?|person(?:al|ales|ais|ali)|importantes?|importanti?"
        "|nuev\\w+|nov[ao]s?"
        "|nuov\\w+|relevantes?|rilevant\\w+|disponibles?|disponív(?:el|eis)|disponibil[ei]|recordar"
        "|lembrar|guardar"
        "|ricordare|alguna?|alcun[ao]?|qualquer|ninguna",
    ),
    _TellingWords(
        "inget|inga|ingen|ingenting|inte|utan|geen|niets|niet|zonder|brak|nic|nie|žádn\\w+|nema|немає|нема"
        "|нічого|yok|değil",
        "sa(?:de|gt)|nämn\\w+|berätta\\w*|delade?|delat|angav|angivits|innehåller|fanns|finns|gezegd"
        "|gedeeld|genoemd"
        "|verteld|gegeven|bevat|vermeld|opgegeven|powiedział\\w*|podał\\w*|zawiera|повідом\\w+|розпов\\w+"
        "|belirtilmedi"
        "|paylaş\\w+|bahset\\w+",
        "inget|ingenting|information|uppgifter|minnen|fakta|detaljer|preferenser|informatie|gegevens"
        "|herinneringen|feiten"
        "|details|voorkeuren|niets|informacji|danych|wspomnień|faktów|nic|інформаці\\w+|даних|спогадів"
        "|фактів|нічого"
        "|bilgi|veri|anı",
        "användar\\w+|personen|samtal\\w*|meddeland\\w+|det|den|de|het|een|ett|en|i|in|om|sig|har|hade|är"
        "|var|att|och|of"
        "|over|zich|heeft|had|er|is|zijn|gebruiker|persoon|gesprek|berichten?|persoonlijke|viktig\\w*"
        "|personlig\\w*|nya"
        "|relevant\\w*|belangrijke?|nieuwe|beschikbaar|tillgänglig\\w*|użytkownik\\w*|rozmow\\w+|w|o|sobie"
        "|ważn\\w+"
        "|osobist\\w*|користувач\\w*|розмов\\w+|у|про|себе|важлив\\w+|не|kullanıcı\\w*|hiçbir|bir|hakkında"
        "|kişisel|mevcut",
    ),
    _TellingWords(
        "没有|沒有|没|沒|未|无|無|并未|不|暂无|暫無",
        "提供|提及|提到|分享|透露|说明|说|說|表达|表示|告诉|告知|包含|包括|涉及|讲|发生|發生|给出|记录"
        "|記錄|发现|找到|出现|介绍",
        "信息|資訊|数据|數據|资料|資料|内容|內容|记忆|記憶|记录|記錄|摘要|变化|事实|事實|细节|偏好|喜好"
        "|事情|事件|什么|什麼"
        "|任何事|东西|情况|要点|值得记的",
        "用户|用戶|使用者|对方|他|她|本次|这次|此次|这段|该|此|这|对话|對話|会话|聊天|谈话|消息|文本|日记"
        "|今天|今日|目前|当前|里|中|内|都"
        "|也|任何|一些|其他|其它|相关|相關|可用|新|重要|个人|個人|具体|有用|有价值|特别|需要|需|值得|值|可"
        "|可以|能|记住|記住|记|存储|保存"
        "|提取|添加|总结|的|地|得|了|过|关于|自己|有|是|所|和|或|与|到|在|被|尚|还|暂时|暂|明确|以|供|等"
        "|什么都|什么也",
        is_spaced=False,
    ),
    _TellingWords(
        "ない|なかった|なし|無し|無い|ません|ませんでした|없음|없다|없습니다|않았다|않음|않았습니다",
        "述べ|話し|言い|言わ|提供され|提供し|共有し|共有され|含まれ|含ま|言及し|言及され|含まれてい"
        "|제공하지|공유하지|말하지|언급하지|포함되지",
        "情報|記憶|データ|内容|事実|詳細|好み|何も|こと|정보|기억|데이터|내용|사실|아무것도|선호도",
        "ユーザー|利用者|会話|メッセージ|個人|重要|特に|新しい|記録|記憶す|保存す|覚え|べき|す|る|てい|て"
        "|し|た|ま|は|が|を|に|の|も|で|な|へ"
        "|사용자는|사용자가|사용자|대화|대화에|메시지|개인|중요한|새로운|특별한|관련|는|은|이|가|을|를|에"
        "|의| ",
        is_spaced=False,
    ),
]

_WORD = re.compile(r"[^\W\d_]+")
_MOST_WORDS = 25

_LEADS = re.compile(r"(?:said|told|shared|provided|mentioned|stated|gave|revealed|disclosed|did|has|had)\b")
"""Matches a verb after a name: "Anna said nothing", unlike the wish "Please share nothing"."""

_OWNS = re.compile(
    r"(?:\b(?:user|person|he|she|they|nutzer|benutzer|er|sie) |^)(?:has|have|had|found|hat|hatte|fand)\b"
)
"""Marks a statement as one about a person, who may have no data or have found nothing."""

_WISH = re.compile(r"не \w+(?:ть|ти|й|йте)\b")

_FORM = re.compile(
    r"(?:the )?user (?:did|has|had|does) not (?:give|given|provide|provided|share|shared|state|stated|specify"
    r"|specified|mention|mentioned|disclose|disclosed) (?:their|his|her|any|an?) (?:own |full )?"
    r"(?:name|age|location|e?mail(?: address)?|birthday|occupation)"
)
"""Matches a statement that a form is empty, which is not worth remembering."""


def tells_nothing(text: str) -> bool:
    """Whether a folded sentence only says that somebody said nothing, or that there is nothing to say."""
    spelled = re.sub(r"n['’]t\b", " not", text)
    if _FORM.fullmatch(spelled):
        return True
    is_of_somebody = _OWNS.search(spelled) is not None
    if any(_denies_telling(spelled, each, is_of_somebody=is_of_somebody) for each in _load_patterns()):
        return _WISH.match(spelled) is None
    _, _, rest = spelled.partition(" ")
    return _LEADS.match(rest) is not None and _denies_telling(rest, _load_patterns()[0], is_of_somebody=True)


def _denies_telling(text: str, language: "_TellingPatterns", *, is_of_somebody: bool) -> bool:
    """Whether a sentence consists of words of `language` and denies that anything was said.

    is_of_somebody: whether it is about what a person has, so that it must also name the telling.
    """
    words = _WORD.findall(text) if language.is_spaced else [text]
    if not words or len(words) > _MOST_WORDS or any(map(str.isdigit, text)):
        return False
    if not all(map(language.any.fullmatch, words)):
        return False
    if language.is_spaced:
        denies, tells, is_told = (any(map(each.fullmatch, words)) for each in language.parts)
    else:
        denies, tells, is_told = (each.search(text) is not None for each in language.parts)
    return denies and is_told and (tells or not is_of_somebody)


class _TellingPatterns(NamedTuple):
    """Patterns for one language. any: matches all its words. parts: match `denying`, `telling` and `told`."""

    any: re.Pattern[str]
    parts: list[re.Pattern[str]]
    is_spaced: bool


@cache
def _load_patterns() -> list[_TellingPatterns]:
    made = []
    for words in _LANGUAGES:
        parts = [words.denying, words.telling, words.told]
        whole = "|".join([*parts, words.others])
        if not words.is_spaced:  # longest first, without backtracking
            whole = f"(?:{'|'.join(sorted(whole.split('|'), key=len, reverse=True))})++"
        made.append(_TellingPatterns(re.compile(whole), [*map(re.compile, parts)], words.is_spaced))
    return made


_LONGEST = 200
"""The most characters of a placeholder that is not part of a prompt."""

_SHORTEST_INSTRUCTION = 20
"""The fewest characters that identify a part of a prompt."""

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
    "|optional|fill (?:this |me )?in|first ?(?:name)? last ?(?:name)?|etunimi sukunimi|имя фамилия"
    "|your (?:full |first |last )?(?:city|location|country|e?mail|age|job|occupation|time ?zone|phone"
    "|address)"
    "|(?:ваш[ае]?|тво[йяеё]) (?:имя|город|возраст|адрес|телефон|текст)"
    "|[你您]的(?:名字|姓名|城市|年龄|职业|地址|电话|时区)"
    "|lorem ipsum.*|to do|todo|tbd|fixme|(?:foo|bar|baz)(?: ?(?:foo|bar|baz)){,2}|x{2,}"
    "|пример|строка|текст|содержание|содержимое|значение|воспоминание|заполнитель"
    "|示例|例子|内容|内容示例|示例内容|字符串|文本|占位符|摘要|记忆|值"
    "|esimerkki|merkkijono|teksti|sisältö|arvo|muisto|tiivistelmä|paikanvaraaja"
)
"""Matches the stand-ins for a text in an example or a schema."""

_OF_A_FORM = r"(?:name|city|location|country|place|age|job|occupation|e-?mail|birthday|gender|thing|user)"
_MARKED = rf"(?:\[{_OF_A_FORM}\]|<{_OF_A_FORM}>|\{{{{1,2}}{_OF_A_FORM}\}}{{1,2}})"
_PATTERN = re.compile(
    rf"(?:(?:the )?user(?:['’]s)?|{_MARKED})(?: \w+){{1,4}} {_MARKED}"
    "|(?:the )?user (?:likes|prefers) x(?: over y)?"
)
"""A sentence with slots: "The user's name is [NAME]"."""

_SLOTS = re.compile(
    r"(?:[^\W\d][^:：<>{}\n]{0,40}[:：] ?)?(?:<[^<>\n]+>|\{\{.*\}\}|\$\{.*\}|\{[\w .'-]+\}|%[sd])"
)
"""Any slot of a template. Text in square brackets may be a note."""

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
    # Blanks to fill in
    r"|\[(?:your|insert|enter|add|fill|put|specify|the user|user|e\.g|ваш|укажите|введите|你的|您的|请"
    r"|syötä|kirjoita)"
    r"[^\[\]\n]*\]|(?:your|insert|enter|put|type|write|add|fill in) (?:[\w']+ ){1,5}here"
    "|etc|et cetera|and so (?:on|forth)|и так далее|и т\\.? ?д|и др|等等|等|jne|ja niin edelleen|usw"
    "|und so weiter".replace(
        "UNIT", "y{2,4}|m{2}|d{2}|x{2,4}|h{2}|s{2}|г{2,4}|м{2}|д{2}|v{4}|k{2}|p{2}|j{2,4}|t{2}|a{4}|\\d{1,4}"
    )
)
"""Names, addresses, numbers and dates that only occur in examples."""

_STATE = (
    r"(?:(?:it|this|that) is |is )?(?:not (?:(?:yet|currently|explicitly) )?|un)(?:specified|available"
    r"|provided"
    "|known|applicable|mentioned|given|stated|set|found|sure|determined|disclosed|defined|shared|recorded"
    "|relevant)"
    "(?: (?:yet|here|today|so far|at this time|in (?:the|this) (?:conversation|chat|text|messages?)))?"
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
"""Matches a statement that there is nothing to say."""

_DENIAL = re.compile(
    "no|none|nope|nothing|never|no one|нет|ничего|никаких|никогда|无|無|没有|沒有|沒|没|なし|無し|없음"
    "|无内容"
    "|ei|ei ole|ei mitään|ei yhtään|ei koskaan|kein[es]?|nein|nichts|aucune?|rien|non|nessun[oa]?|niente"
    "|ninguno|ninguna|nada|nenhum|inga|inget|ingen|nej|geen|brak|немає|нема|yok|لا شيء|لا يوجد"
)
"""Matches a negative answer, which means nothing without its question."""

_LABEL = re.compile(rf"(?:(?:{_SLOT}) )?(?:{_SLOT})[\"'`]? ?[:=] ?[\"'`]?(?=\S)")
_FIELD = re.compile(r"([^\W\d][\w'’]*(?: [\w'’]+)?) ?[:：] ?(\S.*)")
"""A label of one word or two, and its value."""

_UNKNOWN = re.compile(rf"(?:the )?user['’]s {_OF_A_FORM} (?:is|was) (?:{_STATE})")
_ENDS = re.compile(r"[.;,|!?。；，、…]+ ?| [-–—/] ")
_MARKUP = re.compile(r"[`*_]+")


def is_placeholder(text: str) -> bool:
    """Whether a text has no content: an example, a template's slot, a denial, or a part of a prompt."""
    folded_text = fold_content(text)
    if len(folded_text) > _LONGEST:
        return _is_instruction(folded_text)
    bare = folded_text.strip("\"'` .。")
    if any(each.fullmatch(bare) for each in (_SLOTS, _PATTERN, _UNKNOWN)):
        return True
    field = _FIELD.fullmatch(bare)
    if field is not None and any(each.fullmatch(_strip_marks(field[2])) for each in (_NOTHING, _EXAMPLE)):
        return True
    return all(
        _is_empty_clause(part) or _TEMPLATE.fullmatch(part) or _EXAMPLE.fullmatch(part)
        for part in _split_clauses(folded_text)
    ) or _is_instruction(folded_text)


def says_nothing(text: str) -> bool:
    """Whether all clauses of a text say that there is nothing to say."""
    parts = _split_clauses(fold_content(text)) if len(text) <= _LONGEST else []
    return bool(parts) and all(map(_is_empty_clause, parts))


def is_denial(text: str) -> bool:
    """Whether a text is only a denial, such as `none`, which may still answer a question."""
    return _DENIAL.fullmatch(_strip_marks(fold_content(text))) is not None


def _is_empty_clause(part: str) -> bool:
    """Whether a clause says that there is nothing to say."""
    return any(each.fullmatch(part) for each in (_NOTHING, _DENIAL)) or tells_nothing(part)


def _split_clauses(text: str) -> list[str]:
    """Split a folded text into clauses, without marks; [] if it is an example or has only marks."""
    whole = _strip_marks(text)
    if _NOTHING.fullmatch(whole):  # n/a
        return [whole]
    if _EXAMPLE.fullmatch(text.strip("\"'`<>() .,…")):  # user@example.com
        return []
    return [bare for part in _ENDS.split(whole) if (bare := _strip_marks(part))]


def _strip_marks(text: str) -> str:
    """Strip quotes, brackets, markup and a leading label from a folded text."""
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return _LABEL.sub("", text[start:end].replace("_", " "), count=1) if start < end else ""


def _is_instruction(text: str) -> bool:
    """Whether a folded text is part of a prompt."""
    told = " ".join(_MARKUP.sub("", text).split()).strip("-.:;,\"' ")
    return len(told) >= _SHORTEST_INSTRUCTION and told in _prompt_texts()


@cache
def _prompt_texts() -> str:
    texts = (" ".join(_MARKUP.sub("", read_prompt(name).text).split()) for name in prompt_names())
    return "\n".join(map(fold_content, texts))
