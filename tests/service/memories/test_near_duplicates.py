"""When a newer text says what an older one says, and when it says something else, in four languages."""

from memlog.service.memory.compared_text import Text
from memlog.service.memory.duplicates import ALIKE, similarity_of_near_duplicates

SAME = {
    "da punctuation": ("Han spiser kød, men ikke fisk.", "(Han spiser kød; men ikke fisk)"),
    "ar punctuation": ("آنا تشرب الشاي، ولا تشرب القهوة", "آنا تشرب الشاي ولا تشرب القهوة."),
    "th": ("แอนนาดื่มชาทุกเช้า", "«แอนนาดื่มชาทุกเช้า»"),
    "quotes": ('Anna calls the cat "Tiger" at home', "Anna calls the cat Tiger at home!"),
    "phrase": ("Anna pays the rent of the room early", "Anna pays the rent of the room early, by card"),
    "article": ("The key opens the door of garage", "The key opens the door of the garage"),
    "ru doubled": ("Пётр хранит ключ в синей банке", "Пётр хранит ключ в синней банке"),
    "punctuation": ("Anna drinks green tea, never coffee", "Anna drinks green tea; never coffee!"),
    "case": ("Anna drinks green tea", "ANNA DRINKS GREEN TEA"),
    "typo": ("I received the parcel at the office", "I recieved the parcel at the office"),
    "two slips": ("The conference is in the main building", "The confrenece is in the main building"),
    "spelling": ("My favourite colour is blue", "My favorite color is blue"),
    "form": ("The fox jumps over the lazy dog", "The fox jumps over the lazy dogs"),
    "one more word": ("Anna drinks green tea before work", "Anna drinks hot green tea before work"),
    "no function word": (
        "User prefers bullet-point summaries",
        "User prefers concise bullet-point summaries",
    ),
    "filler lost": ("Anna really drinks green tea before work", "Anna drinks green tea before work"),
    "clauses": (
        "Before work Anna drinks green tea in the kitchen",
        "Anna drinks green tea in the kitchen before work",
    ),
    "a phrase moved": (
        "Robert walks the dog at noon and gets twelve euros",
        "At noon Robert walks the dog and gets twelve euros",
    ),
    "joined clauses": (
        "The bus leaves from the market and arrives at the clinic",
        "The bus arrives at the clinic and leaves from the market",
    ),
    "shouted": ("The keys of the cellar are with Marina", "THE KEYS OF THE CELLAR ARE WITH MARINA!!"),
    "ru subject": ("Весной Виктор переехал в новую Казань", "Весной переехал в новую Казань Виктор"),
    "ru typo": ("Анна пьёт зелёный чай по понедельникам", "Анна пьёт зелённый чай по понедельникам"),
    "ru letter": ("Анна пьёт зелёный чай", "Анна пьет зеленый чай"),
    "ru clauses": (
        "На кухне лежит ключ, в подвале стоит бойлер",
        "В подвале стоит бойлер, на кухне лежит ключ",
    ),
    "fi typo": ("Kokous pidetään kirjaston kokoushuoneessa", "Kokous pidetään kirjaston kokoushuonessa"),
    "fi one more": ("Kellarin avain on keittiön pöydällä", "Kellarin avain on kotona keittiön pöydällä"),
    "zh punctuation": ("安娜喜欢喝绿茶,不喝咖啡", "安娜喜欢喝绿茶,不喝咖啡。"),
    "zh filler": ("安娜每天早上喝绿茶", "安娜每天早上都喝绿茶"),
    "zh particle": ("他高兴的跑进了办公室的大门", "他高兴地跑进了办公室的大门"),
    "zh clauses": ("因为下雨,我们留在家里看书", "我们留在家里看书,因为下雨"),
}

OTHER = {
    "no function word, another word": (
        "User prefers detailed explanations",
        "User prefers concise explanations",
    ),
    "no function word, a limit": (
        "User prefers detailed explanations",
        "User prefers more detailed explanations",
    ),
    "no function word, a name": (
        "User prefers detailed weekly explanations",
        "User prefers detailed weekly Tesla explanations",
    ),
    "no function word, no dictionary": (
        "kasutaja eelistab kokkuvotted punktides",
        "kasutaja eelistab kokkuvotted lihtsad punktides",
    ),
    "tense": ("The key of the cellar is kept in the tin", "The key of the cellar was kept in the tin"),
    "ru tense": ("Проект использует базу на порту 5433", "Проект использовал базу на порту 5433"),
    "ru form": ("Мы храним документы в синей папке", "Мы хранили документы в синей папке"),
    "ru one more": ("Ключ от подвала лежит в ящике стола", "Ключ от подвала лежит в ящике у стола"),
    "fi form": ("Pekka asuu talossa joen rannalla", "Pekka asui talossa joen rannalla"),
    "future": ("Anna works in the bakery by the river", "Anna will work in the bakery by the river"),
    "perfect": ("They painted the fence of the garden", "They had painted the fence of the garden"),
    "fi i": ("Me katsomme elokuvia ja syömme jäätelöä", "Me katsoimme elokuvia ja syömme jäätelöä"),
    "ru aspect": ("Анна называла его дома по имени", "Анна назвала его дома по имени"),
    "zh aspect": ("我们每天去市场买面包", "我们每天去了市场买面包"),
    "not always": ("The alarm is not set at night", "The alarm is not always set at night"),
    "zh not very": ("安娜不喜欢晚上喝咖啡", "安娜不太喜欢晚上喝咖啡"),
    "da negation": ("Han spiser kød", "Han spiser ikke kød"),
    "da doubled": ("Anna har en bil i kælderen", "Anna har en bill i kælderen"),
    "bg future": ("Анна живее в София и работи там", "Анна ще живее в София и работи там"),
    "ja": ("非常口はどこにありますか", "口はどこにありますか"),
    "order of no language": ("spiser ikke kød men fisk", "spiser kød men ikke fisk"),
    "auxiliary": ("The door to the garage opens", "The door to the garage opens will"),
    "label": ("The patient takes pill a with water", "The patient takes pill b with water"),
    "label added": ("The patient takes the pill with water", "The patient takes the pill x with water"),
    "roman": ("The book has the map in part ii of it", "The book has the map in part iii of it"),
    "demonstrative": ("The key opens this door of the house", "The key opens that door of the house"),
    "unequal": ("severity=high", "severity!=high"),
    "negated": ("if ready: stop the engine", "if !ready: stop the engine"),
    "https": ("The http port of the router is closed", "The https port of the router is closed"),
    "quoted": ('name = "value"', "name = value"),
    "call": ("run load(name) in the shell", "run load[name] in the shell"),
    "flag": ("start the tool with --verbose", "start the tool with verbose"),
    "dot": ("the file .env is in the folder", "the file env is in the folder"),
    "superscript": ("The hall of the school has 5² m", "The hall of the school has 52 m"),
    "circled": ("The code of the door is ①②", "The code of the door is 12"),
    "unit": ("The plant by the river makes 5 mW", "The plant by the river makes 5 MW"),
    "inches": ("The board is 5' long and painted", 'The board is 5" long and painted'),
    "range": ("The room is for 5–7 guests in summer", "The room is for 5, 7 guests in summer"),
    "hyphen": ("The room is for non-smoking guests", "The room is for smoking guests"),
    "greek question": ("Η πόρτα του γκαράζ είναι κλειστή", "Η πόρτα του γκαράζ είναι κλειστή;"),
    "number": ("Bob pays 300 euros a month for the room", "Bob pays 800 euros a month for the room"),
    "number word": ("The tea house opens at nine in winter", "The tea house opens at ten in winter"),
    "decimals": ("The rate is 3.5 percent for the whole loan", "The rate is 35 percent for the whole loan"),
    "sign": ("The cellar is at -5 degrees in winter", "The cellar is at 5 degrees in winter"),
    "currency": ("The room costs 300 $ a month with heating", "The room costs 300 € a month with heating"),
    "date": ("The lease ends on 2026-03-01 at the latest", "The lease ends on 2026-03-11 at the latest"),
    "day": ("The bins are emptied on Tuesday by the city", "The bins are emptied on Thursday by the city"),
    "code": ("The boiler has the number AX-1234-B on it", "The boiler has the number AX-1234-D on it"),
    "address": ("Write to anna.virta@example.org about it", "Write to anna.virtanen@example.org about it"),
    "name": ("The keys of the cellar are with Marina", "The keys of the cellar are with Martina"),
    "first name": ("Maria keeps the keys of the cellar", "Mario keeps the keys of the cellar"),
    "name added": ("The keys of the cellar are with Anna", "The keys of the cellar are with Anna, Bob"),
    "whose": ("Anna likes green tea in the morning", "Anna's mother likes green tea in the morning"),
    "negation": ("Anna drinks coffee in the evening", "Anna never drinks coffee in the evening"),
    "slip of a day": ("Anna drinks green tea every morning", "Anna drinks green tea every morniing"),
    "n't": ("The lift does stop on the third floor", "The lift doesn't stop on the third floor"),
    "dislikes": ("Anna likes tea", "Anna dislikes tea"),
    "impossible": ("It is possible to park in the yard", "It is impossible to park in the yard"),
    "stopped": (
        "Anna smokes on the balcony of the house",
        "Anna stopped smoking on the balcony of the house",
    ),
    "only": ("The card opens the door of the garage", "The card opens only the door of the garage"),
    "another word": ("There is a horse behind the red barn", "There is a house behind the red barn"),
    "roles": ("Anna owes Bob the money for the train", "Bob owes Anna the money for the train"),
    "list": ("apples 3 pears 5", "5 apples 3 pears"),
    "question": ("The door of the garage is locked", "The door of the garage is locked?"),
    "not moved": ("Anna does not like tea but coffee", "Anna does like tea but not coffee"),
    "only moved": ("Only Anna drinks green tea in the house", "Anna drinks only green tea in the house"),
    "introduced": ("Peter introduced Anna to Bob in Turku", "Peter introduced Bob to Anna in Turku"),
    "hindi vowel": ("राम की किताब मेज पर है और कलम भी", "राम का किताब मेज पर है और कलम भी"),
    "emoji": ("The visit to the dentist was 👍 this time", "The visit to the dentist was 👎 this time"),
    "ru number": ("Аренда стоит 300 евро в месяц", "Аренда стоит 800 евро в месяц"),
    "ru number word": ("Магазин открывается в девять утра", "Магазин открывается в десять утра"),
    "ru month": ("Договор кончается в июне этого года", "Договор кончается в июле этого года"),
    "ru name": ("Ключи от подвала у Марины", "Ключи от подвала у Марины и Анны"),
    "ru first name": ("Мария живёт в большом доме у реки", "Марина живёт в большом доме у реки"),
    "ru negation": ("Анна любит зелёный чай", "Анна не любит зелёный чай"),
    "ru without": ("Анна пьёт чай с сахаром", "Анна пьёт чай без сахара"),
    "fi number": ("Vuokra on 300 euroa kuukaudessa", "Vuokra on 800 euroa kuukaudessa"),
    "fi number word": ("Kauppa aukeaa kello yhdeksältä", "Kauppa aukeaa kello kahdeksalta"),
    "fi name": ("Kellarin avain on Marjalla", "Kellarin avain on Marjatalla"),
    "fi negation": ("Anna juo kahvia illalla", "Anna ei juo kahvia illalla"),
    "fi without": ("Pekka juo kahvia sokerilla aamulla", "Pekka juo kahvia sokeritta aamulla"),
    "fi -ton": ("Kaapissa on sokerinen mehu", "Kaapissa on sokeriton mehu"),
    "fi another letter": ("Kaapissa on kylmää kalaa huomiseksi", "Kaapissa on kylmää kanaa huomiseksi"),
    "ru another letter": ("Мастер сломал старый приход воды", "Мастер сломал старый проход воды"),
    "zh two words": ("我们上海的朋友来吃饭了", "我们海上的朋友来吃饭了"),
    "zh number": ("房租每月三百欧元", "房租每月八百欧元"),
    "zh name": ("李明喜欢在公园里跑步", "李明辉喜欢在公园里跑步"),
    "zh negation": ("安娜晚上喝咖啡和绿茶", "安娜晚上不喝咖啡和绿茶"),
    "zh sound": ("彼得把钥匙放在炉子后面的蓝色罐子里", "彼得把钥匙放再炉子后面的蓝色罐子里"),
    "zh whose": ("安娜喜欢在早上喝绿茶", "安娜的妈妈喜欢在早上喝绿茶"),
}


def test_almost_the_same_words_say_the_same():
    for name, (older, newer) in SAME.items():
        found = similarity_of_near_duplicates(Text(older), Text(newer))
        assert found is not None, name
        assert ALIKE < found <= 1, name


def test_what_turns_a_sentence_makes_it_another():
    for name, (older, newer) in OTHER.items():
        assert similarity_of_near_duplicates(Text(older), Text(newer)) is None, name
        assert similarity_of_near_duplicates(Text(newer), Text(older)) is None, name


def test_a_text_that_says_less_does_not_take_the_place_of_one_that_says_more():
    less, more = Text("Anna drinks green tea before work"), Text("Anna drinks hot green tea before work")
    assert similarity_of_near_duplicates(less, more) is not None
    assert similarity_of_near_duplicates(more, less) is None


def test_a_text_is_wholly_like_itself():
    for text in [*(pair[0] for pair in SAME.values()), "", "?", "a", "茶" * 50]:
        assert similarity_of_near_duplicates(Text(text), Text(text)) == 1, text


def test_texts_of_the_same_words_are_not_alike_below_the_limit():
    assert similarity_of_near_duplicates(Text("tea"), Text("tea house by the river")) is None


def test_a_text_may_have_one_word_more_and_not_two():
    words = "The key of the cellar is kept by the neighbour in the tin behind the stove"
    assert similarity_of_near_duplicates(Text(words), Text(words.replace("tin", "blue tin"))) is not None
    assert similarity_of_near_duplicates(Text(words), Text(words.replace("tin", "little blue tin"))) is None


def test_the_language_of_a_text_is_known_for_certain_or_not_at_all():
    known = {
        "The keys of the cellar are with Marina": "english",
        "Анна пьёт чай по утрам": "russian",
        "Avain on keittiön pöydällä, mutta ovi on kiinni": "finnish",
        "安娜每天早上喝绿茶": "chinese",
    }
    unknown = """Han spiser kød|Han äter inte kött|Hij eet geen vlees|Si Anna ay kumakain ng karne sa bahay
    |severity=high|pill a|Anna живе у Львові|Анна живее в София|Он једе месо
    |彼は毎日肉を食べる|나는 고기를 먹는다|Ал эт жебейт|Anna ei söö liha, kuid joob piima|"""
    assert {text: Text(text).language for text in known} == known
    assert {text for text in unknown.split("|") if Text(text).language} == set()
