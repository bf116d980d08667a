"""reStructuredText and source code are cut at their sections, and each passage says in which it stands."""

import time

import pytest

from memlog.projector.passages.chunking import ChunkSizes, split_into_chunks
from memlog.projector.passages.formats import CODE_TYPES, MARKDOWN, choose_form_for_filetype
from memlog.service.documents.text_files import FILETYPES

SIZES = ChunkSizes(64, 16)
PROSE = "Tea is made of leaves and of hot water. " * 8

RST = f"""\
=====
 Tea
=====

{PROSE}

Green
=====

{PROSE}

From the hills
--------------

{PROSE}

Black
=====

.. note::

   {PROSE}
"""

PYTHON = '''\
"""Tea."""

import os

LEAVES = 3


class Pot(Vessel):
    """A pot."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.leaves = [leaf for leaf in range(size) if leaf % 2 and leaf > 3 and leaf < 100]

    @property
    async def brew(
        self,
        minutes: int,
    ) -> None:
        # class of things that are hot: this is prose
        for minute in range(minutes):
            self.wait(minute, kettle=self.kettle, water=self.water, leaves=self.leaves, size=self.size)
            self.stir(minute, kettle=self.kettle, water=self.water, leaves=self.leaves, size=self.size)

        def inner():
            return [self.pour(cup, kettle=self.kettle, water=self.water) for cup in self.cups if cup.stands]

        inner()


def drink(pot):
    return [pot.pour(cup, kettle=pot.kettle, water=pot.water, leaves=pot.leaves) for cup in pot.cups]


drink(Pot(3), kettle="kettle", water="water", leaves="leaves", cups=["one", "two", "three", "four", "five"])
'''


def sections(text, filetype):
    return [chunk.section for chunk in split_into_chunks(text, SIZES, choose_form_for_filetype(filetype))]


def distinct(values):
    return list(dict.fromkeys(values))


def test_titles_of_a_restructured_text_are_the_sections_of_its_passages():
    assert distinct(sections(RST, "rst")) == [
        "Tea",
        "Tea > Green",
        "Tea > Green > From the hills",
        "Tea > Black",
    ]


def test_a_short_restructured_text_has_its_title_as_section():
    (chunk,) = split_into_chunks("\n\n=====\n Tea\n=====\n\nGreen.\n", SIZES, choose_form_for_filetype("rst"))
    assert (chunk.section, chunk.start) == ("Tea", 0)
    assert split_into_chunks("Green.\n", SIZES, choose_form_for_filetype("rst"))[0].section is None


def test_what_is_a_title():
    for text, title in [
        ("Tea\n===\n", "Tea"),
        ("Tea\n=====\n", "Tea"),
        ("Tea time\n===\n", None),
        ("Tea\n~~~\n", "Tea"),
        ("Tea\n=-=\n", None),
        ("===\nTea\n===\n", "Tea"),
        ("===\nTea time\n===\n", None),
        ("===\nTea\n---\n", None),
        ("a\nTea\n===\n", None),
        ("----\n\nTea\n", None),
        ("  Tea\n=====\n", None),
        ("чай\n###\n", "чай"),
        ("Tea\r\n===\r\n", "Tea"),
        ("===", None),
        ("Tea\n", None),
    ]:
        assert choose_form_for_filetype("rst").title(text) == title, text


def test_a_literal_block_that_the_model_can_take_is_not_broken():
    code = "\n".join(f"    pour(cup_{number})\n" for number in range(30))
    text = f"Tea\n===\n\n{PROSE}\n\nAs so::\n\n{code}\n\n{PROSE}\n"
    (holder,) = [
        chunk
        for chunk in split_into_chunks(text, SIZES, choose_form_for_filetype("rst"))
        if "cup_7" in chunk.content
    ]
    assert code in holder.content


def test_a_table_is_not_broken():
    table = "\n".join("+-----+-----+\n| tea | cup |" for _ in range(20)) + "\n+-----+-----+\n"
    text = f"{PROSE}\n\n{table}\n{PROSE}\n"
    assert any(
        table in chunk.content for chunk in split_into_chunks(text, SIZES, choose_form_for_filetype("rst"))
    )


def test_definitions_are_the_sections_of_source_code():
    found = distinct(sections(PYTHON, "python"))
    for section in ("Pot > __init__", "Pot > brew", "drink"):
        assert section in found
    assert "of" not in str(found)


def test_code_below_a_definition_has_its_line_in_front():
    body = "\n\n".join(f"    leaves.append({number}, kettle=kettle, water=water)" for number in range(40))
    text = f"def brew(leaves, kettle, water):\n{body}\n"
    found = split_into_chunks(text, SIZES, choose_form_for_filetype("python"))
    assert len(found) > 3
    assert all(chunk.content.startswith("def brew(leaves") for chunk in found)
    assert {chunk.section for chunk in found} == {"brew"}


def test_code_is_cut_at_line_ends():
    for chunk in split_into_chunks(PYTHON, SIZES, choose_form_for_filetype("python")):
        assert chunk.start == 0 or PYTHON[chunk.start - 1] == "\n"
        assert chunk.end == len(PYTHON) or PYTHON[chunk.end - 1] == "\n"


def test_what_is_a_definition():
    for line, name in [
        ("def brew(self):", "brew"),
        ("    async def brew(", "brew"),
        ("class Pot:", "Pot"),
        ("class Pot(Vessel):", "Pot"),
        ("export default class Pot extends Vessel {", "Pot"),
        ("export function* brew(x) {", "brew"),
        ("func (p *Pot) Brew(minutes int) error {", "Brew"),
        ("type Pot struct {", "Pot"),
        ("pub(crate) async fn brew<T>(x: T) -> T {", "brew"),
        ("impl<T> Brew for Pot<T> {", "Brew"),
        ("public static final class Pot {", "Pot"),
        ("interface Brews<T> {", "Brews"),
        ("defmodule Tea.Pot do", "Tea.Pot"),
        ("module Tea", "Tea"),
        ("fun brew(x: Int) = 3", "brew"),
        ("class of things that are hot", None),
        ("# def brew(self):", None),
        ("definition(x)", None),
        ("type: object", None),
        ("x = class_of(pot)", None),
    ]:
        text = f"{line}\n" + "    pour(tea, cup, kettle, water, leaves)\n\n" * 40
        assert sections(text, "rust")[0] == name, line


def test_passages_hold_all_of_a_text_whatever_its_form():
    for filetype in ["rst", "python", "markdown", "text", None]:
        for text in (RST, PYTHON, "===\n---\n===\n\n" * 50, "::\n\n  x\n" * 80, "\n\n}\n" * 200, "x " * 3000):
            end = joined = 0
            for chunk in split_into_chunks(text, SIZES, choose_form_for_filetype(filetype)):
                assert text[end : chunk.start].strip() == "", filetype
                end = max(end, chunk.end)
                joined += 1
            assert text[end:].strip() == "", filetype
            assert joined, filetype


@pytest.mark.deep
def test_no_text_takes_for_ever():
    for piece in "=\n,a::,def ,:: ,((((,<<<<,pub(,| ,  x\n,a\n==\n,}".split(","):
        for filetype in ("rst", "python"):
            began = time.process_time()
            list(choose_form_for_filetype(filetype).blocks(piece * 20_000))
            assert time.process_time() - began < 5, (filetype, piece)


def test_every_type_that_is_read_unasked_has_a_form():
    prose = {"markdown", "text", "asciidoc", "org", "tex", "html"}
    assert set(CODE_TYPES) | prose | {"rst", "pdf"} == set(FILETYPES)
    assert all(choose_form_for_filetype(name) == MARKDOWN for name in prose)
    assert choose_form_for_filetype("anything else") == choose_form_for_filetype(None) == MARKDOWN
