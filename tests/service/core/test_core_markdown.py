"""What USER.md says: `key: value` lines, lists under headings, and what is left out."""

import tracemalloc

from memlog.service.memory.core_markdown import _content_lines, label_to_key, parse_core_memory


def user(text):
    memory, _ = parse_core_memory(text)
    return memory.user


def test_a_pair_is_a_key_and_its_value():
    for line in (
        *(
            "Name: Anna",
            "- **Name:** Anna",
            "- **Name**: Anna",
            "* Name: Anna",
            "1. Name: Anna",
            "name: Anna",
        ),
        *("**User name:** Anna", "__Name__: Anna", "User's name: Anna", "Name：Anna"),
        *("+ NAME:   Anna  ", "  - Name: Anna", "User Name: Anna"),
    ):
        assert user(line) == {"name": "Anna"}, line


def test_items_under_a_heading_are_joined():
    assert user("## Preferences\n\n- tea\n- short answers\n\n## Hobbies\n* chess\n") == {
        "preferences": "tea; short answers",
        "hobbies": "chess",
    }


def test_items_under_the_heading_of_a_documented_key_are_no_pairs():
    assert user("# Current projects #\n- Boat: paint it\n- **memlog:** docs") == {
        "current_projects": "Boat: paint it; **memlog:** docs"
    }


def test_items_under_another_heading_may_be_pairs():
    assert user("# About\n- **Name:** Anna\n- likes tea") == {"name": "Anna", "about": "likes tea"}


def test_a_label_without_a_value_is_a_heading_of_the_items_below_it():
    assert user("- **Preferences:**\n  - tea\n  - bread\n- **Location:** Helsinki") == {
        "preferences": "tea; bread",
        "location": "Helsinki",
    }
    assert user("Preferences:\n- tea\nLocation: Helsinki\n- lost") == {
        "preferences": "tea",
        "location": "Helsinki",
    }


def test_a_label_that_nobody_filled_in_says_nothing():
    assert user("- **Name:**\n- **Location:** Helsinki\nOccupation:\n") == {"location": "Helsinki"}


def test_an_item_goes_on_over_lines():
    assert user("## Preferences\n- tea,\n  green\nand hot\n- bread\n\nOccupation: baker") == {
        "preferences": "tea, green and hot; bread",
        "occupation": "baker",
    }


def test_text_under_the_heading_of_a_documented_key_is_its_value():
    assert user("## Occupation\nBaker at\nthe harbour\n\nand sailor\n## Other\nprose") == {
        "occupation": "Baker at the harbour; and sailor"
    }


def test_the_keys_of_the_agent_are_the_agents():
    memory, _ = parse_core_memory("Personality notes: calm\n## Learned rules\n- be brief\n## Name\nAnna")
    assert memory.agent == {"personality_notes": "calm", "learned_rules": "be brief"}
    assert memory.user == {"name": "Anna"}


def test_what_is_said_twice_is_joined_and_counts_once():
    assert user("Name: Anna\nName: Anna\nName: Ann") == {"name": "Anna; Ann"}


NO_KEYS = [
    *(
        "",
        "\n\n",
        "just prose",
        "- an item under no heading",
        "# Heading alone",
        "# 🎯\n- item",
    ),
    *("```\nName: Anna\n```", "~~~~\nName: Anna\n~~~\nName: B\n~~~~", "```\nnever closed\nName: Anna"),
    *(
        "| Name: | Anna |\n|---|---|",
        "<!-- Name: Anna -->",
        "<!--\nName: Anna\n",
        "---\nName: Anna\n...\n",
        "\n---\nName: Anna\n---\n",
        "---\nName: Anna\n",
        "<!-- c -->\n---\nName: Anna\n---\n",
        "Name: *(optional)*",
        "Name: First Last",
        "姓名：你的名字",
        "имя: Ваше имя",
        "\ufeff---\nName: Anna\n---\n",
        "---\n***\n===\n",
    ),
    *("https://example.org/x", "at 10:30", "Name:Anna", "Name:"),
    "This is a whole sentence with many words: it is no key",
]


def test_what_says_no_key_is_left_out():
    for text in NO_KEYS:
        assert user(text) == {}, text


def test_lines_that_are_left_out_are_counted():
    assert parse_core_memory("prose\n\n- lost\nName: Anna\n```\ncode\n```\nmore")[1] == 3


def test_line_ends_of_all_systems_are_line_ends():
    for end in ("\n", "\r\n", "\r"):
        assert user(end.join(["Name: Anna", "## Preferences", "- tea", ""])) == {
            "name": "Anna",
            "preferences": "tea",
        }


def test_a_fenced_block_ends_with_its_own_fence():
    assert user("````\n```\nName: A\n````\nName: B") == {"name": "B"}


def test_a_label_becomes_a_key():
    for label, key in (
        *[("User name", "name"), ("Current Projects", "current_projects"), ("Preference", "preferences")],
        *[("Agent personality notes", "personality_notes"), ("Full name", "full_name"), ("E-Mail", "e_mail")],
        *[
            ("Favourite colour", "favourite_colour"),
            ("姓名", "姓名"),
            ("**", ""),
            ("What's new", "whats_new"),
        ],
    ):
        assert label_to_key(label) == key, label


def test_a_long_file_is_not_split_at_once():
    """One copy of it is made, of up to 4 bytes a character, and no list of all its lines."""
    for line in ("\n", "tea\n", "\r\n"):
        lines = _content_lines(line * (4 * 1024 * 1024 // len(line)))
        tracemalloc.start()
        next(lines)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 20 * 1024 * 1024, repr(line)
