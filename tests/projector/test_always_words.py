"""Words for health and prohibitions, in the five languages that have them."""

import pytest

from memlog.projector.text.phrases import Holds, reasons_to_always_tell_text

LINES = {
    "english": (
        """
        Anna is allergic to peanuts
        She has celiac disease
        Bob takes warfarin every morning
        lactose-intolerant since childhood
        Diagnosed with type 2 diabetes in 2019
        Her son has asthma and an inhaler
        Anna is vegan
        She is pregnant
        He is on blood thinners
        Migraines from red wine
        Penicillin gives her a rash
        Her father's epilepsy is under control
        She can't eat shellfish
        Keeps kosher
        Medication: metformin, twice a day
        """,
        """
        Never call before nine
        You must not share the address
        He must never be told
        The dog mustn't eat chocolate
        Smoking is forbidden in the flat
        Please don't use emoji
        Under no circumstances book on Saturdays
        Pushing to main is not allowed
        Deleting production data is prohibited
        Never send invoices by mail
        """,
        """
        Nevertheless the train was late
        She will never forget the concert
        Never mind
        I have never been to Rome
        She works at a bakery
        The station is near
        He chronicles local history
        The meeting is at 10
        Her favourite colour is blue
        Better late than never
        The blind is broken
        Anna has a cat
        He'll never forget it
        Buy milk on Monday
        The heart of the city
        """,
    ),
    "russian": (
        """
        У Анны аллергия на арахис
        Не переносит лактозу
        У него диабет второго типа
        Принимает лекарства от давления
        Она беременна
        Сын болеет астмой
        Пенициллин ей противопоказан
        Анна — вегетарианка
        У мамы гипертония
        Перенёс инфаркт в 2020
        Диагноз: эпилепсия
        Хроническая мигрень
        Ест только кошерное
        Пьёт таблетки утром
        У неё непереносимость глютена
        """,
        """
        Никогда не звони до девяти
        Нельзя давать собаке шоколад
        Курить в квартире запрещено
        Ни в коем случае не удалять базу
        Он не должен знать адрес
        Запрет на сладкое
        Никому нельзя говорить пароль от сейфа
        Анна никогда не ест мясо
        Не следует писать по ночам
        Недопустимо опаздывать
        """,
        """
        Я никогда не был в Риме
        Она никогда не забудет концерт
        Анна работает в пекарне
        Поезд опоздал
        Лучше поздно, чем никогда
        Любимый цвет синий
        Рак на горе свистнул
        Встреча в десять
        У неё есть кошка
        Он такой красивый, как никогда
        Купить молоко
        Переезд в мае
        Ходит в спортзал
        Пишет книгу
        Учит финский
        """,
    ),
    "finnish": (
        """
        Annalla on pähkinäallergia
        Allerginen kalalle
        Laktoosi-intolerantti
        Hänellä on tyypin 2 diabetes
        Poika sairastaa astmaa
        Äidillä on keliakia
        Hän on raskaana
        Käyttää verenpainelääkettä
        Ei siedä penisilliiniä
        Anna on vegaani
        Syö lääkkeet aamulla
        Hänellä on sydänsairaus
        Epilepsia on hallinnassa
        Krooninen migreeni
        Sai diagnoosin vuonna 2019
        """,
        """
        Älä soita ennen yhdeksää
        Ei koskaan lihaa
        Tupakointi on kielletty
        Koiralle ei saa antaa suklaata
        En koskaan syö sieniä
        Missään nimessä ei lauantaina
        Hän ei syö koskaan lihaa
        Älkää lähettäkö laskuja postissa
        Osoitetta ei saa kertoa
        Ei ikinä emojeita
        """,
        """
        Niinan talo on punainen
        En ole koskaan käynyt Roomassa
        Anna on töissä leipomossa
        Työ on raskas
        Lääkäri soitti eilen
        Älä välitä
        Juna oli myöhässä
        Lempiväri on sininen
        Kokous on kymmeneltä
        Hänellä on kissa
        Ostaa maitoa
        Muuttaa toukokuussa
        Käy salilla
        Kirjoittaa kirjaa
        He syövät leipää
        """,
    ),
    "chinese": (
        """
        安娜对花生过敏
        她乳糖不耐受
        他患有糖尿病
        儿子有哮喘
        她怀孕了
        每天吃药控制血压
        对青霉素过敏
        她吃素
        妈妈有高血压
        2019年确诊癫痫
        他有心脏病
        偏头痛很严重
        服用华法林
        安娜是素食者
        得过肝炎
        """,
        """
        九点前不要打电话
        从不吃肉
        公寓里禁止吸烟
        不得泄露地址
        千万别告诉他
        绝不订周六的票
        狗不能吃巧克力
        请勿使用表情符号
        永远不要删除数据库
        不准迟到
        """,
        """
        不要紧
        我不得不走
        她舍不得离开
        能不能帮我
        今天他不能来
        安娜在面包店工作
        别人都走了
        特别喜欢蓝色
        她永远不会忘记那场音乐会
        药店在街角
        火车晚点了
        她有一只猫
        买牛奶
        五月搬家
        会议在十点
        """,
    ),
    "german": (
        """
        Anna hat eine Nussallergie
        Er ist allergisch gegen Bienenstiche
        Laktoseintoleranz seit der Kindheit
        Diabetes Typ 2
        Der Sohn hat Asthma
        Sie ist schwanger
        Nimmt Medikamente gegen Bluthochdruck
        Verträgt keine Milch
        Penicillin löst Ausschlag aus
        Anna ist Vegetarierin
        Seit 2019 Epilepsie
        Herzinfarkt vor zwei Jahren
        Chronische Migräne
        Nimmt Blutverdünner
        Er hat Zöliakie
        """,
        """
        Nie vor neun anrufen
        Die Adresse darf nicht weitergegeben werden
        Rauchen ist in der Wohnung verboten
        Auf keinen Fall samstags buchen
        Der Hund darf keine Schokolade fressen
        Niemals die Datenbank löschen
        Er soll nicht davon erfahren
        Unter keinen Umständen per Post
        Anna isst nie Fleisch
        Emojis sind untersagt
        """,
        """
        Die Niere ist ein Organ
        Ich war noch nie in Rom
        Sie wird das Konzert nie vergessen
        Besser spät als nie
        Anna arbeitet in einer Bäckerei
        Der Zug war spät
        Lieblingsfarbe ist Blau
        Treffen um zehn
        Sie hat eine Katze
        Milch kaufen
        Umzug im Mai
        Er niest oft
        Sie lernt Finnisch
        Geht ins Fitnessstudio
        Die Tablette liegt auf dem Tisch
        """,
    ),
}
"""Of each language lines about health, prohibitions, and others. Written together with the words."""


def told(lines):
    return [line.strip() for line in lines.strip().splitlines()]


@pytest.mark.parametrize("language", LINES)
def test_health_and_prohibitions_are_told_from_ordinary_lines(language):
    health, prohibitions, others = map(told, LINES[language])
    assert [line for line in health if not reasons_to_always_tell_text(line) & Holds.HEALTH] == []
    assert [line for line in prohibitions if not reasons_to_always_tell_text(line) & Holds.OTHER] == []
    assert [line for line in others if reasons_to_always_tell_text(line)] == []
