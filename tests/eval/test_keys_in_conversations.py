"""Conversations and encyclopedia articles hold no keys, and `append --redact` leaves them as they are."""

import os

import msgspec
import pytest

from memlog.eventlog.secrets.detection import list_texts_within
from memlog.eventlog.secrets.keys import find_keys_in_text
from tests.eval import xquad
from tests.eval.locomo import VARIABLE, data_folder

MOST_FALSE = 1


@pytest.fixture
def data():
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not name a folder with the texts")


def keys_of(folder):
    """(kind, what stands before it) of each key in the texts of a folder's files, once for each text."""
    texts = {
        text
        for path in folder.glob("*.json")
        for text in list_texts_within([msgspec.json.decode(path.read_bytes())])
    }
    assert len(texts) > 10_000
    found = [(key.kind, text[: key.start][-40:]) for text in sorted(texts) for key in find_keys_in_text(text)]
    print(f"{folder.name}: {len(texts)} texts, {found}")
    return found


@pytest.mark.usefixtures("data")
def test_articles_in_six_languages_hold_no_key():
    assert len(keys_of(xquad.data_folder())) <= MOST_FALSE


@pytest.mark.usefixtures("data")
def test_conversations_hold_no_key_but_the_tokens_of_three_pictures():
    found = keys_of(data_folder())
    tokens = [each for each in found if each[0] == "jwt" and each[1].endswith("?token=")]
    assert len(tokens) == 3  # in the addresses of pictures, signed: keys indeed
    assert len(found) - len(tokens) <= MOST_FALSE
