"""Words that turn what a sentence says, and words that leave it as it is, in the four languages that are
told apart best: English, Russian, Finnish, Chinese.

A word that turns a sentence (a number, a day, a negation, a limit, what makes one thing another's) tells two
memories apart, whatever else is alike. The lists are of whole words in lower case, or of beginnings that end
with `*`, for languages that change the ends of words. A word too many costs a merge that could have been; one
too few may cost a memory, so where a word may be both it stands here.
"""

import re
from functools import cache

_TURNING = """
not no none never nothing nobody nowhere neither nor cannot dont doesnt didnt isnt arent wasnt werent wont
cant couldnt wouldnt shouldnt hasnt havent hadnt without hardly barely scarcely rarely seldom unlike except
instead anymore longer stop* quit* ceas* refus* avoid* hate* dislike* fail* forgot* forget* cancel* deni*
deny* unless until till if or than but of from against versus vs former ex only almost nearly
sometimes occasionally often maybe perhaps possibly probably might all every each some most few half both
either any many more less least fewer enough before after since ago last next previous zero one two three
four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twent* thirt* fort* fift* sixt* sevent* eight* ninet* hundred* thousand* million* billion* dozen*
first second third fourth fifth sixth seventh eighth ninth tenth once twice double triple quarter monday*
tuesday* wednesday* thursday* friday* saturday* sunday* mon tue wed thu fri sat sun january february march
april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov
dec today tomorrow yesterday tonight morning* noon midday afternoon* evening* night* midnight daily weekly
monthly yearly left right up down on off out open closed old new other another

не ни нет нельзя без никогда никто ничего ничто нигде никуда едва вряд кроме вместо перестал* бросил*
прекрат* отказ* избега* ненавид* забы* отмен* если или чем но от из против бывш* только лишь почти
иногда часто редко может возможно вероятно все всё весь вся кажд* некоторы* больше меньше мало много оба обе
любо* до после пока назад прошл* следующ* предыдущ* ещё ноль нуля один одна одно одну одной одного одному
два две двух двум трёх трех три трем четыр* пять пяти пятью шест* семь семи семью восем* восьм* девят*
десят* одиннадцат* двенадцат* тринадцат* четырнадцат* пятнадцат* шестнадцат* семнадцат* восемнадцат*
девятнадцат* двадцат* тридцат* сорок* пятьдесят* шестьдесят* семьдесят* восемьдесят* девяност* сто ста
двести триста четыреста пятьсот тысяч* миллион* миллиард* перв* втор* трет* пятый пятого пятом пятому пятая
пятую седьм* дважды трижды полтора половин* четверть понедельник* вторник* среда среду среды среде четверг*
пятниц* суббот* воскресень* январ* феврал* март* апрел* май мая мае июн* июл* август* сентябр* октябр*
ноябр* декабр* сегодня завтра вчера утр* днем днём полдень полдня вечер* ночь* ночью ночи полночь ежедневно
еженедельно лев* прав* вверх вниз внутри снаружи открыт* закрыт* стар* нов* другой другая другое другие
другого другую других

ei en et emme ette eivät älä älkää ilman eikä tuskin harvoin paitsi sijaan sijasta enää lopet* lakka* luop*
kieltäy* vältt* vihaa* inho* unoht* peru* jos tai kuin mutta vastaan entinen entise* vain ainoastaan melkein
lähes joskus usein ehkä mahdollisesti luultavasti kaikki kaiken kaikkia joka jokai* jokin jotkut
useimm* molem* enemmän vähemmän vähän paljon ennen jälkeen asti saakka sitten viime ensi edelli* seuraav*
nolla yksi yhden yhtä yhde* kaksi kahden kahta kahde* kolme* neljä* viisi viiden viittä viide* kuusi kuuden
kuutta kuude* seitsem* yhdeksä* kymmen* sata sadan sataa tuhat tuhan* miljoon* ensimmäi* toinen toise*
kolma* neljä* viides viiden* puoli puolet kerran kahdesti maanantai* tiistai* keskiviikko* keskiviiko*
torstai* perjantai* lauantai* sunnuntai* tammiku* helmiku* maalisku* huhtiku* toukoku* kesäku* heinäku*
eloku* syysku* lokaku* marrasku* jouluku* tänään huomenna eilen aamu* aamui* päiväl* ilta* illa* yöllä yö
öisin keskiyö* päivittäin viikoittain vasen vasem* oikea* ylös alas sisään ulos auki kiinni vanha* uusi
uude* uutta muu muut muun

nicht kein* niemals ohne pas jamais sans sin nunca não sem inte aldrig utan niet geen nooit nie bez non
senza
"""

_FILLING = """
a an the that this these those very really quite rather so just also too even still now then well indeed
actually basically simply generally usually please again here there there's own lot truly definitely
certainly очень действительно довольно так просто также тоже даже теперь сейчас ну вот же ведь уже обычно
пожалуйста снова опять здесь тут там именно конечно вообще этот эта это эти hyvin todella tosi melko aivan
ihan niin myös vielä nyt no jo yleensä taas täällä siellä tämä se nämä ne kyllä oikein erittäin toki
tietysti
"""

_FILLING_CHINESE = re.compile(
    "(?:非常|特别|总是|一直|真的|其实|实际上|确实|十分|相当|通常|一般|平时|现在|目前|已经|这里|那里|当然|很|太|也|还|都|就|才"
    "|了|过|着|呢|吧|啊|呀|哦|嘛|的|地|得|这|那|个|请|又)*"
)

_OF_ONE_SOUND = (
    "的地得",
    "做作",
    "像象",
    "账帐",
    "坐座",
    "在再",
    "以已",
    "带戴",
    "园圆",
    "须需",
    "反返",
    "采彩",
    "辨辩",
    "到道",
)
"""Chinese characters that are written for one another, since they are typed alike."""

_JOINTS = frozenset("and и ja sekä und et y e".split())

_IRREGULAR = """
is are was were be been; has have had; does do did done; goes go went gone; comes come came; gets get got
gotten; gives give gave given; takes take took taken; makes make made; keeps keep kept; leaves leave left;
says say said; tells tell told; knows know knew known; thinks think thought; finds find found; sees see
saw seen; brings bring brought; buys buy bought; pays pay paid; sells sell sold; sends send sent; spends
spend spent; writes write wrote written; reads read; speaks speak spoke spoken; runs run ran; begins begin
began begun; drinks drink drank drunk; eats eat ate eaten; sleeps sleep slept; drives drive drove driven;
rides ride rode; flies fly flew flown; grows grow grew grown; holds hold held; stands stand stood; sits
sit sat; lies lie lay; meets meet met; loses lose lost; wins win won; builds build built; breaks break
broke broken; teaches teach taught; wears wear wore worn; feels feel felt; hears hear heard; falls fall
fell fallen; chooses choose chose chosen
"""

_RUSSIAN_VERB = re.compile("(?P<stem>[а-я]{3,}?)(?:[оеыи]ва|[ауюяие])?(?:л[аои]?|ть|[еиуюая]т)(?:ся|сь)?")
_FINNISH_VERB = re.compile("(?P<stem>[a-zäö]{3,}?)(?:t?tiin|[td](?:aan|ään)|aa|ää|oi|si)")
"""Tenses that Snowball's stems tell apart: использует, использовал; maksetaan, maksettiin; maksaa, maksoi."""

_WITHOUT = re.compile(r".+(?:n't|matta|mättä|t[oö]n|tt[oö]m\w{1,20}|less)")
"""What is not, by the end of a word: isn't, juomatta, sokeriton, sugarless."""


def turns(word: str) -> bool:
    """Whether `word`, in lower case, turns what a sentence says."""
    words, begins = _turning()
    return word in words or word.startswith(begins) or _WITHOUT.fullmatch(word) is not None


def fills(word: str) -> bool:
    """Whether `word`, or a run of Chinese characters, leaves what a sentence says as it is."""
    return word in _filling() or _FILLING_CHINESE.fullmatch(word) is not None


def joins(word: str) -> bool:
    """Whether what stands on both sides of `word` may be exchanged."""
    return word in _JOINTS


def verb_stem(word: str) -> str | None:
    """What the tenses of a verb have in common beyond the stem of a language; None for most words."""
    if word in _irregular():
        return _irregular()[word]
    found = _RUSSIAN_VERB.fullmatch(word) or _FINNISH_VERB.fullmatch(word)
    return found["stem"] if found else None


def sound_alike(one: str, other: str) -> bool:
    """Whether two Chinese characters are often typed for one another."""
    return any(one in alike and other in alike for alike in _OF_ONE_SOUND)


@cache
def _turning() -> tuple[frozenset[str], tuple[str, ...]]:
    listed = _TURNING.replace("ё", "е").split()
    begins = tuple(word[:-1] for word in listed if word.endswith("*"))
    return frozenset(word for word in listed if not word.endswith("*")), begins


@cache
def _irregular() -> dict[str, str]:
    verbs = [verb.split() for verb in _IRREGULAR.split(";")]
    return {form: verb[0] for verb in verbs for form in verb}


@cache
def _filling() -> frozenset[str]:
    return frozenset(_FILLING.replace("ё", "е").split())
