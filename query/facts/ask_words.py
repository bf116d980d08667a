"""The words around a topic in a question of facts, in three languages: tables, read by query/facts/asking.py.

A question is understood only where every word of it stands here, or is an ordinal, or names the topic. So a
word that may turn its meaning (not, would, least, was) stands in no table.
"""

from collections.abc import Mapping
from functools import cache

import msgspec


class Words(msgspec.Struct, frozen=True):
    """The words of one language, folded; phrases are apart by `|`.

    leads: what a question begins with, any number of them.
    listing: leads after which the whole list is wanted.
    tails: what it ends with.
    owners: say whose it is, before the topic. owners_behind: the same, behind it.
    fillers: say nothing, before the topic. every: say that the whole list is wanted.
    joints: stand between ordinals. first: say that it is the first of its list, before the favourite.
    top: stand before a number: so many from the beginning of the list.
    plural: are there in a question of several.
    idioms: whole questions of one topic, and its names, the likeliest first.
    """

    leads: str
    listing: str
    tails: str
    owners: str
    owners_behind: str
    fillers: str
    every: str
    joints: str
    first: str
    top: str
    plural: str
    idioms: Mapping[str, str]


WORDS = {
    "english": Words(
        leads="what is|what's|whats|what are|what|which is|which are|which|tell me|can you tell me"
        "|could you tell me|please|do you know|do you remember|remind me of|remind me|show|show me|name|say"
        "|give me|can you|could you|would you|will you|let me know|i want to know"
        "|i'd like to know|what about|how about|and|so|now|ok|okay|hi|hey|hello|recall",
        listing="list|list me|give me a list of|give me the list of|show me a list of|a list of|the list of"
        "|enumerate|what are|which are",
        tails="please|thanks|thank you|again|is|are",
        owners="my",
        owners_behind="of mine|that i have",
        fillers="the|of|one|ones",
        every="all",
        joints="and",
        first="most|very|top|absolute",
        top="top|first",
        plural="",
        idioms={
            "what city do i live in": "city",
            "which city do i live in": "city",
            "what city i live in": "city",
            "which city i live in": "city",
            "in what city do i live": "city",
            "in which city do i live": "city",
            "what country do i live in": "country",
            "which country do i live in": "country",
            "in what country do i live": "country",
            "in which country do i live": "country",
            "when is my birthday": "birthday",
            "when my birthday is": "birthday",
            "how old am i": "age",
            "how old i am": "age",
        },
    ),
    "russian": Words(
        leads="какой|какая|какое|какие|какого|какую|каков|какова|каково|каковы|назови|назови мне|скажи"
        "|скажи мне|подскажи|подскажи мне|напомни|напомни мне|покажи|покажи мне|выведи|пожалуйста|помнишь"
        "|ты помнишь|можешь сказать|можешь напомнить|хочу знать|знаешь|ты знаешь|а|и|ну|так|привет|что за",
        listing="перечисли|перечисли мне|можешь перечислить|список|дай список|дай мне список|покажи список"
        "|покажи мне список|выведи список|назови все|покажи все|каковы|какие",
        tails="пожалуйста|спасибо|у меня|ещё раз|еще раз",
        owners="мой|моя|моё|мое|мои|моего|моей|моему|моим|моём|моем|мою|моих|моими|у меня",
        owners_behind="у меня",
        fillers="из|по счёту|по счету|это",
        every="все|всех",
        joints="и",
        first="самый|самая|самое|самые|самого|самой|самую",
        top="топ|первые|первых",
        plural="какие каковы мои моих моими любимые любимых любимыми",
        idioms={
            "в каком городе я живу": "город|city",
            "в каком я живу городе": "город|city",
            "в какой стране я живу": "страна|country",
            "как меня зовут": "имя|name",
            "когда у меня день рождения": "день рождения|birthday",
            "когда мой день рождения": "день рождения|birthday",
            "сколько мне лет": "возраст|age",
        },
    ),
    "finnish": Words(
        leads="mikä on|mikä|mitkä ovat|mitkä|mitä ovat|kerro|kerro minulle|sano|näytä|näytä minulle|muistuta"
        "|muistatko|tiedätkö|nimeä|entä|ja|no|hei|moi|voitko kertoa|voitko sanoa|voisitko kertoa"
        "|haluan tietää|ole hyvä ja kerro|kertoisitko",
        listing="luettele|luettele minulle|voitko luetella|listaa|listaa minulle|anna lista"
        "|anna minulle lista|mitkä ovat|mitkä|mitä ovat",
        tails="kiitos|ole hyvä|on|ovat|taas",
        owners="minun|mun",
        owners_behind="",
        fillers="se",
        every="kaikki|kaikista",
        joints="ja",
        first="kaikkein",
        top="top",
        plural="",
        idioms={
            "missä kaupungissa asun": "kaupunki|city",
            "missä kaupungissa minä asun": "kaupunki|city",
            "missä maassa asun": "maa|country",
            "milloin on syntymäpäiväni": "syntymäpäivä|birthday",
            "milloin syntymäpäiväni on": "syntymäpäivä|birthday",
            "kuinka vanha olen": "ikä|age",
            "kuinka vanha minä olen": "ikä|age",
        },
    ),
}


@cache
def phrases(said: str) -> tuple[tuple[str, ...], ...]:
    """The phrases of a table as words, the longest first."""
    found = (tuple(phrase.split()) for phrase in said.split("|") if phrase)
    return tuple(sorted(found, key=len, reverse=True))
