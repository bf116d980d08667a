"""What a text may not lose of its sources: each row is one class, and none is a list of words to look for."""

import pytest

from memlog.service.memory.losses import describe_loss

TEA = "Anna likes tea."

LOST = {
    "sentence": ("Anna is ill.", TEA, TEA),
    "name": ("Anna has a dog called Rex.", TEA, "Anna has a dog. Anna likes tea."),
    "subject": (TEA, "Boris likes tea.", TEA),
    "currency": ("The gym costs €30.", TEA, "The gym costs $30. Anna likes tea."),
    "date": ("Anna flies on 2026-03-14.", TEA, "Anna flies on 2026-03-15. Anna likes tea."),
    "unit": ("Anna weighs 70 kg.", TEA, "Anna weighs 70 lb. Anna likes tea."),
    "case of a unit": ("The plant makes 5 mW.", TEA, "The plant makes 5 MW. Anna likes tea."),
    "thousands": ("The flat costs 80k.", TEA, "The flat costs 80. Anna likes tea."),
    "sign": ("The limit is -18 degrees.", TEA, "The limit is 18 degrees. Anna likes tea."),
    "superscript": ("The hall has 5² m.", TEA, "The hall has 52 m. Anna likes tea."),
    "decimal mark": ("The fee is 12,5 %.", TEA, "The fee is 125 %. Anna likes tea."),
    "half of the day": ("The flight is at 9 am.", TEA, "The flight is at 9 pm. Anna likes tea."),
    "exchanged values": (
        "Anna takes 50 mg in the morning.",
        "Anna takes 100 mg in the evening.",
        "Anna takes 100 mg in the morning and 50 mg in the evening.",
    ),
    "values in a row": (
        "Anna takes 50 mg of aspirin.",
        "Anna takes 100 mg of iron.",
        "Anna takes 50 and 100 mg of aspirin and iron.",
    ),
    "one value for both": ("Anna has 5 dogs.", "Anna has cats.", "Anna has 5 dogs and cats."),
    "who to whom": ("Anna owes Ben money.", TEA, "Ben owes Anna money. Anna likes tea."),
    "names in lower case": ("anna owes ben money.", "anna sings.", "ben owes anna money. anna sings."),
    "whose": ("Anna's sister is ill.", TEA, "Anna is ill. Anna likes tea."),
    "subject of a part": (
        "the dog eats fish.",
        "the dog drinks milk.",
        "the dog eats fish and the cat drinks milk.",
    ),
    "what another says": ("Anna says Ben owes money.", TEA, "Anna says Ben owes money and likes tea."),
    "relative clause": (
        "Anna has a son who is ill.",
        "Anna is tall.",
        "Anna has a son who is ill and is tall.",
    ),
    "opposite": (
        "The blood type is O negative.",
        "The nurse is new.",
        "The blood type is O positive. The nurse is new.",
    ),
    "condition": ("If it rains she stays home.", TEA, "She stays home. Anna likes tea."),
    "condition added": ("She stays home.", "If it rains, she stays home.", "If it rains, she stays home."),
    "another holds it": ("Anna is ill.", "Boris doubts Anna is ill.", "Boris doubts Anna is ill."),
    "compound": ("Anna has a dog.", "Anna has a dog allergy.", "Anna has a dog allergy."),
    "qualified": ("Anna is a nurse.", "Anna is a nurse in training.", "Anna is a nurse in training."),
    "limit of both": ("Anna eats only fish.", "Anna eats meat.", "Anna eats only fish and meat."),
    "denied for both": ("Anna is not ill.", "Anna is tall.", "Anna is not ill and tall."),
    "former for both": ("Anna is a former nurse.", "Anna is a singer.", "Anna is a former nurse and singer."),
    "number word": ("Anna has a dog.", TEA, "Anna has two dogs. Anna likes tea."),
    "ordinal": ("The trip begins on the third of May.", TEA, "The trip begins in May. Anna likes tea."),
    "weekday": ("Anna swims on Monday.", TEA, "Anna swims on Friday. Anna likes tea."),
    "comparison": ("Anna is older than Ben.", TEA, "Anna is younger than Ben. Anna likes tea."),
    "tense": ("Anna stopped smoking.", TEA, "Anna is smoking. Anna likes tea."),
    "place of a comma": (
        "Казнить нельзя, помиловать.",
        "Анна любит чай.",
        "Казнить, нельзя помиловать. Анна любит чай.",
    ),
    "question": ("Is Anna ill?", TEA, "Anna is ill. Anna likes tea."),
    "order of sentences": (
        "Anna has a dog. It is ill.",
        "Anna has a cat. It is well.",
        "Anna has a dog. It is well. Anna has a cat. It is ill.",
    ),
    "order of sources": ("Anna smokes.", "Anna stopped.", "Anna stopped. Anna smokes."),
    "sign with a space": ("The limit is - 18 degrees.", TEA, "The limit is, 18 degrees. Anna likes tea."),
    "made up": (TEA, "Anna drives.", "Anna likes tea. Anna drives fast."),
    "ru number": (
        "Аренда двести евро.",
        "Аренда включает воду.",
        "Аренда триста евро. Аренда включает воду.",
    ),
    "ru who to whom": ("Анна должна Борису.", "Анна любит чай.", "Борис должен Анне. Анна любит чай."),
    "fi number": (
        "Vuokra on kaksisataa euroa.",
        "Anna pitää teestä.",
        "Vuokra on kolmesataa euroa. Anna pitää teestä.",
    ),
    "fi without": (
        "Anna juo kahvia ilman maitoa.",
        "Anna pitää teestä.",
        "Anna juo kahvia. Anna pitää teestä.",
    ),
    "zh who to whom": ("安娜欠鲍里斯钱。", "安娜喜欢茶。", "鲍里斯欠安娜钱。安娜喜欢茶。"),
    "zh number": ("房租三千元。", "房租每月付。", "房租五千元。房租每月付。"),
    "zh longer word": ("安娜吃肉。", "安娜吃肉丸。", "安娜吃肉丸。"),
    "zh denied for both": ("安娜不吃肉。", "安娜不吃鱼。", "安娜不吃肉和鱼。"),
    "ja": (
        "アンナは肉を食べません。",
        "アンナは茶が好きです。",
        "アンナは肉を食べます。アンナは茶が好きです。",
    ),
    "ko": (
        "안나는 고기를 안 먹는다.",
        "안나는 차를 좋아한다.",
        "안나는 고기를 먹는다. 안나는 차를 좋아한다.",
    ),
    "th": ("แอนนาไม่กินเนื้อ", "แอนนาชอบชา", "แอนนากินเนื้อ แอนนาชอบชา"),
    "fr": ("Anna n'a plus de chien.", "Anna aime le thé.", "Anna a plus de chien. Anna aime le thé."),
    "de denied for both": ("Anna isst kein Fleisch.", "Anna isst Fisch.", "Anna isst kein Fleisch, Fisch."),
    "it condition": ("Anna guida.", "Se piove, Anna guida.", "Se piove, Anna guida."),
}


@pytest.mark.parametrize(("one", "other", "text"), LOST.values(), ids=LOST)
def test_a_text_that_loses_or_makes_up_something_is_refused(one: str, other: str, text: str) -> None:
    assert describe_loss((one, other), text) is not None


KEPT = {
    "one after another": (("Anna weighs 70 kg.", "Anna is 5 ft."), "Anna weighs 70 kg. Anna is 5 ft."),
    "numbers in each part": (
        ("The gym costs 30 euros.", "The gym opens at 7."),
        "The gym costs 30 euros and opens at 7.",
    ),
    "own beginnings": ((TEA, "Boris likes coffee."), "Anna likes tea, and Boris likes coffee."),
    "three": (
        (TEA, "Anna likes coffee.", "Anna likes green milk."),
        "Anna likes tea, coffee and green milk.",
    ),
    "within": (("Anna asuu Oulussa.", "Anna asuu Oulussa ja opettaa."), "Anna asuu Oulussa ja opettaa."),
    "with its name": (("Anna has a dog.", "Anna has a dog called Rex."), "Anna has a dog called Rex."),
    "width": (("Ａｎｎａ likes tea", TEA), TEA),
    "one line each": ((TEA, "Anna sings."), "- Anna likes tea\n- Anna sings"),
    "ru": (("Анна пьёт чай.", "Анна пьёт кофе."), "Анна пьёт чай и кофе."),
    "fi": (("Anna juo teetä.", "Anna juo kahvia."), "Anna juo teetä ja kahvia."),
    "zh": (("安娜住在上海。", "安娜住在上海，教书。"), "安娜住在上海，教书。"),
    "unknown language": (
        ("Anna nie je mięsa.", "Anna lubi herbatę."),
        "Anna nie je mięsa. Anna lubi herbatę.",
    ),
    "ja": (
        ("アンナは肉を食べません。", "アンナは茶が好きです。"),
        "アンナは肉を食べません。アンナは茶が好きです。",
    ),
}


@pytest.mark.parametrize(("sources", "text"), KEPT.values(), ids=KEPT)
def test_a_text_that_puts_its_sources_together_is_kept(sources: tuple[str, ...], text: str) -> None:
    assert describe_loss(sources, text) is None
