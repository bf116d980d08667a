"""A ranked list is taken out of a text where its topic and the list are both certain, and nowhere else."""

import pytest

from memlog.service.memory.facts import LONGEST, NoCertainList, parse_ranked_list, strip_markup

CERTAIN = {
    "My favourite colours are 1) Blue, 2) Green, 3) Black": "favorite_colors: Blue|Green|Black",
    "My favourite colours are 1) Blue, 2) Green, 3) Black.": "favorite_colors: Blue|Green|Black",
    "my favorite colors: 1. Blue 2. Green 3. Black": "favorite_colors: Blue|Green|Black",
    "My favourite colours in order: 1) Blue; 2) Green; and 3) Black": "favorite_colors: Blue|Green|Black",
    "My favourite colours: first Blue, second Green, third Black.": "favorite_colors: Blue|Green|Black",
    "My favourite movies are first Alien, second Heat, third Amelie": "favorite_movies: Alien|Heat|Amelie",
    "My first favourite colour is blue, the second is green and the third is black.": (
        "favorite_colors: blue|green|black"
    ),
    "My first favourite colour is blue, my second favourite colour is green.": "favorite_colors: blue|green",
    "Hi! My top 3 favourite movies are:\n1. Alien\n2. Heat\n3. Amelie\n\nThat's all.": (
        "favorite_movies: Alien|Heat|Amelie"
    ),
    "## My favourite colours\n\n1. **Blue** [1]\n2. *Green*【4†source】\n3. `Black`[^2]\n": (
        "favorite_colors: Blue|Green|Black"
    ),
    "My favourite colours are [1] 1) Blue [2, 3], 2) [Green](https://example.org/green)": (
        "favorite_colors: Blue|Green"
    ),
    "Thanks. My favourite colours are 1) Blue, 2) Green. What do you think of them?": (
        "favorite_colors: Blue|Green"
    ),
    "My favourite cities are 1) St. Petersburg, 2) Oulu": "favorite_cities: St. Petersburg|Oulu",
    "My favourite movies are 1) Se7en, 2) 12 Angry Men, 3) 2001: A Space Odyssey": (
        "favorite_movies: Se7en|12 Angry Men|2001: A Space Odyssey"
    ),
    "My favourite numbers are 1) 7, 2) 3.14": "favorite_numbers: 7|3.14",
    "My favourite cities:\n1. Oulu, Finland\n2. Dune (1984)": "favorite_cities: Oulu, Finland|Dune (1984)",
    "Мои любимые цвета: 1) синий, 2) зелёный, 3) чёрный": "favorite_colors: синий|зелёный|чёрный",
    "Мои три любимых цвета: 1) синий, 2) зелёный и 3) чёрный": "favorite_colors: синий|зелёный|чёрный",
    "Мои любимые города — 1) Петербург, 2) Казань": "любимые_города: Петербург|Казань",
    "Мои любимые цвета: первый — синий, второй — зелёный.": "favorite_colors: синий|зелёный",
    "Lempivärini ovat 1) sininen, 2) valkoinen ja 3) musta.": "favorite_colors: sininen|valkoinen|musta",
    "Lempivärini ovat: ensimmäinen sininen, toinen valkoinen": "favorite_colors: sininen|valkoinen",
    "Lempivärini:\r\n1. sininen\r\n2. valkoinen": "favorite_colors: sininen|valkoinen",
    "Minun lempiruokani: 1. hernekeitto 2. lohikeitto": "lempiruoka: hernekeitto|lohikeitto",
}

DOUBTFUL = {
    "no topic": [
        *(
            "",
            "x",
            "1) Blue 2) Green",
            "I like 1) Blue, 2) Green",
            "What are my favourite colours? 1) Blue, 2) Green",
        ),
        *("My least favourite colours are 1) Blue, 2) Green", "Мои нелюбимые цвета: 1) синий, 2) зелёный"),
    ],
    "of somebody else": [
        *("Anna's favourite colours are 1) Blue, 2) Green", "Your favourite colours are 1) Blue, 2) Green"),
        *(
            'Anna said: "My favourite colours are 1) Blue, 2) Green"',
            "> My favourite colours are 1) Blue, 2) Green",
        ),
        *(
            "My wife's favourite colours are 1) Blue, 2) Green",
            "Anna:\nMy favourite colours are 1) Blue, 2) Green",
        ),
        *("Твои любимые цвета: 1) синий, 2) зелёный", "Lempivärisi ovat 1) sininen, 2) valkoinen"),
        *(
            "Annan lempivärit ovat 1) sininen, 2) valkoinen",
            "Translate: My favourite colours are 1) Blue, 2) Green",
        ),
    ],
    "not meant": [
        *("My favourite colours are not 1) Blue, 2) Green", "My favourite colours aren't 1) Blue, 2) Green"),
        *("My favourite colours were 1) Blue, 2) Green", "My favourite colours used to be 1) Blue, 2) Green"),
        *(
            "My favourite colours would be 1) Blue, 2) Green",
            "Imagine this. My favourite colours are 1) Blue, 2) Green",
        ),
        *(
            "If I were you: My favourite colours are 1) Blue, 2) Green",
            "My favourite colours include 1) Blue, 2) Green",
        ),
        *(
            "My favourite colours are 1) Blue, 2) Green. Just kidding!",
            "My favourite colours are 1) Blue, 2) Green? No",
        ),
        *(
            "My favourite colours are 1) Blue, 2) Green, just kidding",
            "My favourite colours are 1) Blue or Green, 2) Red",
        ),
        *(
            "My favourite colours are 1) Blue, 2) Green. Actually, swap them.",
            "My favourite colours, if any, are 1) Blue",
        ),
    ],
    "no ranks": [
        *("My favourite colours are Blue, Green and Black", "My favourite colours:\n- Blue\n- Green"),
        *(
            "My favourite colours are 1) Blue",
            "My favourite colours are",
            "My favourite colours are 1) Blue, 2) ",
        ),
        *("My favourite colours are 1) Blue, 1) Green", "My favourite colours are 1) Blue, 3) Green"),
        *("My favourite colours are 2) Blue, 1) Green", "My favourite colours are 0) Blue, 1) Green"),
        *("My favourite colours are 1) Blue, 2) blue", "My top 3 favourite colours are 1) Blue, 2) Green"),
    ],
    "no certain end": [
        *(
            "My favourite colours are 1) Blue. I love it. 2) Green",
            "My favourite colours:\n1. Blue\n2. Green\nand red",
        ),
        *(
            "My favourite colours:\n1. Blue\n   very\n2. Green",
            "My favourite colours are 1) Blue, 2) Dr. who knows",
        ),
        *(
            "My favourite colours are 1) Blue, 2) Green etc",
            f"My favourite colours are 1) Blue, 2) {'x' * 101}",
        ),
        *("My favourite colours are 1) Bl\x00ue, 2) Green", "My favourite colours are 1) (Blue, 2) Green"),
    ],
    "another topic": [
        *(
            "My favourite things about Rome are 1) food, 2) art",
            "My favourite colours of all are 1) Blue, 2) Green",
        ),
        "My favourite colours are 1) Blue, 2) Green. My favourite movies are 1) Alien, 2) Heat.",
        f"My favourite {'x' * 200} are 1) Blue, 2) Green",
        f"Lempi{'x' * 200}ni ovat 1) sininen, 2) valkoinen",
        "Мои два любимых города: 1) Тула, 2) Псков",
        "```\nMy favourite colours are 1) Blue, 2) Green\n```",
        "My favourite colours are 1) Blue, 2) Green. " + "x" * LONGEST,
    ],
}


def test_a_list_that_is_certain_is_found():
    for text, expected in CERTAIN.items():
        key, values = parse_ranked_list(text)
        assert f"{key}: {'|'.join(values)}" == expected, text


def test_a_list_that_is_doubtful_is_none():
    for text in [text for texts in DOUBTFUL.values() for text in texts]:
        with pytest.raises(NoCertainList, match=r"\w"):
            pytest.fail(f"{text[:70]}: {parse_ranked_list(text)}")


def test_what_was_found_is_stored_whole_and_read_again(store):
    store.facts.set("favourite teas", "earl grey", "rooibos", "assam", chat="x:1")
    done = store.facts.extract(
        "My favourite teas are 1) Sencha, 2) Oolong.", chat="x:1", source_message_id="m1"
    )
    assert (done.stored, done.topic_key, done.values, done.why) == (
        True,
        "favorite_teas",
        ["Sencha", "Oolong"],
        None,
    )
    found = store.facts.ask("what is my second favourite tea?", chat="x:1")
    assert (found.answer, found.facts[0].source_message_id) == ("Oolong", "m1")
    assert done.position is not None
    assert found.facts[0].event_id == done.position.id
    assert not store.facts.ask("what is my third favourite tea?", chat="x:1").found


def test_nothing_doubtful_is_stored_and_a_dry_run_stores_nothing(store):
    doubtful = store.facts.extract("My favourite teas are Sencha and Oolong")
    assert (doubtful.stored, doubtful.position, doubtful.why) == (
        False,
        None,
        "no list with ranks follows the topic",
    )
    tried = store.facts.extract("My favourite teas are 1) Sencha, 2) Oolong", dry_run=True)
    assert (tried.stored, tried.topic_key, tried.position) == (False, "favorite_teas", None)
    assert not (store.path / "log").exists()


def test_what_is_no_part_of_a_text_is_taken_away():
    assert strip_markup("## A *b*[1] __c__ [d](e)【4†f】 `g`[^2] snake_case\n") == "A b c d g snake_case\n"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[M1] My favorite colors are 1) Blue, 2) Green",
            "[M1] [M2, M3] My favorite colors: 1. Blue 2. Green",
        ),
        *(
            "Hi! [M1] My favorite colors are 1) Blue, 2) Green",
            "## [M1] My favorite colors\n1. Blue\n2. Green",
        ),
        "My favorite colors [M1] are: [M2]\n[M3] 1. Blue [M4]\n2. [M5] Green",
    ],
)
def test_extract_ranked_facts_removes_junk_tokens_wherever_they_stand(text):
    assert parse_ranked_list(text) == ("favorite_colors", ["Blue", "Green"])
