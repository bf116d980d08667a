"""Recognises a sentence that says only that nothing was told: "The user said nothing of note.".

It consists of words of a closed set alone, in whatever order its language puts them: who might have told,
that they have not, and the generic nouns for what is told. With any other word, it says something.
"""

import re
from functools import cache
from typing import NamedTuple


class _TellingWords(NamedTuple):
    """Words of one language, each an expression for its forms.

    denying: words that deny. telling: verbs of telling and containing. told: nouns and pronouns for anything
    that can be told. asked: nouns for what a person has: "no phone" says something, "gave no phone" does not.
    others: who might have told, and words without a meaning of their own.
    is_spaced: whether spaces part its words.
    """

    denying: str
    telling: str
    told: str
    asked: str
    others: str
    is_spaced: bool = True


_LANGUAGES = [
    _TellingWords(
        "no|not|nothing|none|nobody|without|neither|nor",
        "said|says?|told|tells?|shared?|provided?|mention(?:ed)?|stated?|gave|given?|disclosed?"
        "|reveal(?:ed)?"
        "|express(?:ed)?|indicated?|report(?:ed)?|contain(?:s|ed)?|included?|includes|found|identified"
        "|extracted"
        "|recorded|specif(?:y|ied)|discuss(?:ed)?|offer(?:ed)?|convey(?:ed)?|communicated?|happen(?:s|ed)?"
        "|noted",
        "nothing|none|anything|something|memory|memories|facts?|information|info|data|details?|content"
        "|summary"
        "|preferences?|insights?|entry|entries|events?|values?|examples?|profile|changes?|updates?|answer"
        "|response"
        "|things?|knowledge|statements?|takeaways?|items?|note|noteworthy|memorable|substance|topics?",
        "names?|age|location|city|job|occupation|birthday|e?mail|phone|number|address|home|family|work"
        "|opinions?"
        "|plans?|feelings?|hobbies|background|identity|life|goals?",
        "the|an?|one|this|that|these|those|it|its|there|here|any|all|other|else|more|much|yet|so|far|today"
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
        "|предпочтени\\w+|изменени\\w+|событи\\w+|содержани\\w+|нибудь|либо",
        "им(?:я|ени)|возраст\\w*|город\\w*|работ\\w+|семь\\w+|адрес\\w*|телефон\\w*|жизн\\w+|план\\w*"
        "|интерес\\w*"
        "|мнени\\w+",
        "пользовател\\w+|собеседник\\w*|человек\\w*|он|она|они|ассистент\\w*|разговор\\w*|диалог\\w*"
        "|бесед\\w+"
        "|чат\\w*|сообщени\\w+|перепис\\w+|текст\\w*|сесси\\w+|ден\\w+|дневник\\w*|сегодня|в|во|из|о|об"
        "|обо|себе|нем|нём"
        "|ней|сво\\w+|для|и|или|а|про|за|на|по|этот|это\\w*|был\\w*|есть|пока|ещё|еще|важн\\w+|нов\\w+"
        "|личн\\w+"
        "|конкретн\\w+|существенн\\w+|значим\\w+|значительн\\w+|полезн\\w+|особенн\\w+|интересн\\w+"
        "|примечательн\\w+"
        "|так\\w+|люб\\w+|друг\\w+|явн\\w+|(?:за)?помн\\w+|запомин\\w+|сохран\\w+|добав\\w+|достойн\\w+"
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
        "nime\\w+|ikä\\w+|kaupun\\w+|työ\\w+|osoite\\w*|osoitet\\w+|puhelin\\w*|perhe\\w+",
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
        "|geäußert|gefunden|passiert|geschehen|sagte|nannte|erwähnte|teilte|gab|machte",
        "nichts|informationen|information|angaben?|daten|fakten|details?|erinnerung(?:en)?|vorlieben"
        "|präferenzen"
        "|erkenntnisse?|inhalte?|aussagen|einzelheiten|neues|wichtiges|relevantes|besonderes"
        "|erwähnenswertes",
        "name\\w*|alter|wohnort|adresse|beruf|telefonnummer|familie",
        "der|die|das|dem|den|des|ein\\w*|dies\\w*|es|er|sie|gibt|gab|hat|haben|hatte|wurden?|worden|ist"
        "|sind|war\\w*"
        "|in|im|aus|von|vom|zu|zum|zur|über|für|sich|mit|und|oder|nutzer\\w*|benutzer\\w*|person"
        "|gespräch\\w*|chat"
        "|unterhaltung|konversation|nachricht(?:en)?|text|sitzung|tag|persönlich\\w*|wichtig\\w*|neue?\\w*"
        "|relevant\\w*"
        "|weiter\\w*|besonder\\w*|konkret\\w*|vorhanden|verfügbar|bekannt|merken|speichern|was|mit|heute",
    ),
    _TellingWords(
        "aucune?s?|rien|pas|sans|ne|n|ni",
        "dit|fourni\\w*|partagé\\w*|mentionn\\w+|donn(?:é|e)\\w*|révél\\w+|indiqu\\w+|contien\\w+"
        "|communiqu\\w+"
        "|exprim\\w+|précis\\w+|trouv\\w+|comport\\w+",
        "rien|informations?|données?|faits?|souvenirs?|détails?|préférences?|contenus?|éléments?"
        "|renseignements?"
        "|événements?|mémoires?",
        "noms?|âge|ville|adresse|métier|téléphone|famille",
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
        "nombre|nome|edad|idade|età|ciudad|cidade|città|dirección|trabajo|lavoro|familia|famiglia",
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
        "namn|ålder|naam|leeftijd|imi\\w+",
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
        "姓名|名字|年龄|城市|职业|地址|电话|家庭|工作",
        "用户|用戶|使用者|对方|他|她|本次|这次|此次|这段|该|此|这|对话|對話|会话|聊天|谈话|消息|文本|日记"
        "|今天|今日|目前|当前|里|中|内|都"
        "|也|任何|一些|其他|其它|相关|相關|可用|新|重要|个人|個人|具体|有用|有价值|特别|需要|需|值得|值|可"
        "|可以|能|记住|記住|记|存储|保存"
        "|提取|添加|总结|的|地|得|了|过|关于|自己|有|是|所|和|或|与|到|在|被|尚|还|暂时|暂|明确|以|供|等"
        "|什么都|什么也|对",
        is_spaced=False,
    ),
    _TellingWords(
        "ない|なかった|なし|無し|無い|ません|ませんでした|없음|없다|없습니다|않았다|않음|않았습니다",
        "述べ|話し|言い|言わ|提供され|提供し|共有し|共有され|含まれ|含ま|言及し|言及され|含まれてい"
        "|제공하지|공유하지|말하지|언급하지|포함되지",
        "情報|記憶|データ|内容|事実|詳細|好み|何も|こと|정보|기억|데이터|내용|사실|아무것도|선호도",
        "名前|年齢|이름|나이",
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
"""What follows a name: "Anna said nothing", where "Please share nothing" is a wish."""


def tells_nothing(said: str) -> bool:
    """Whether a folded sentence only says that nothing was told, or that there is nothing to tell."""
    spelled = re.sub(r"n['’]t\b", " not", said)
    languages = _languages()
    if any(_denies_telling(spelled, language) for language in languages):
        return True
    _, _, rest = spelled.partition(" ")
    return _LEADS.match(rest) is not None and _denies_telling(rest, languages[0], is_of_somebody=True)


def _denies_telling(said: str, language: "_TellingPatterns", *, is_of_somebody: bool = False) -> bool:
    """Whether a sentence consists of the words of a language, and denies a telling.

    is_of_somebody: whether it is about a person with a name, who may have no data.
    """
    words = _WORD.findall(said) if language.is_spaced else [said]
    if not words or len(words) > _MOST_WORDS or any(map(str.isdigit, said)):
        return False
    if not all(map(language.any.fullmatch, words)):
        return False
    if language.is_spaced:
        denies, tells, is_told, is_asked = (any(map(each.fullmatch, words)) for each in language.parts)
    else:
        denies, tells, is_told, is_asked = (each.search(said) is not None for each in language.parts)
    return denies and (tells or (is_told and not is_asked and not is_of_somebody))


class _TellingPatterns(NamedTuple):
    """Patterns of one language: of all its words, and of those that deny, tell, are told and are asked."""

    any: re.Pattern[str]
    parts: list[re.Pattern[str]]
    is_spaced: bool


@cache
def _languages() -> list[_TellingPatterns]:
    made = []
    for words in _LANGUAGES:
        parts = [words.denying, words.telling, words.told, words.asked]
        whole = "|".join([*parts, words.others])
        if not words.is_spaced:  # the longest first, and none is tried twice
            whole = f"(?:{'|'.join(sorted(whole.split('|'), key=len, reverse=True))})++"
        made.append(_TellingPatterns(re.compile(whole), [*map(re.compile, parts)], words.is_spaced))
    return made
