"""HTML and PDF: their text is read by libraries, and found on the line or page on which it stands."""

import pytest

import memlog
from memlog.service.documents import text_files
from memlog.service.engine.sandbox import Failed
from memlog.service.engine.sandbox_program import extract_text
from tests.service.documents.folders import reasons

PAGE = """\
<!DOCTYPE html>
<html>
<head><title>Tea &amp; more</title>
<style>p { color: green }</style><script>
let hidden = "needle";
</script></head>
<body
  class="x">
<h1>Green
   tea</h1>
<!-- a comment
of two lines --><p>It is <b>gre</b>en,&nbsp;and hot.</p><ul>
<li>leaves<li>water
</ul>
<h2
 id="a">Black tea</h2>
<p>From the valley, 5 &lt; 6
<pre>pour
  slowly</pre>
</body></html>
"""
LINES = {
    3: "# Tea & more",
    9: "# Green",
    10: "tea",
    12: "It is green, and hot.",
    13: "- leaves - water",
    16: "## Black tea",
    17: "From the valley, 5 < 6",
    18: "pour",
    19: "slowly",
}


def pdf(*pages):
    """A PDF of these pages, a line of text each."""
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    font = 3 + 2 * len(pages)
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>"]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        objects += [
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {4 + 2 * number} 0 R"
            f"/Resources<</Font<</F1 {font} 0 R>>>>>>",
            f"<</Length {len(stream)}>>stream\n{stream}\nendstream",
        ]
    objects.append("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj{each}endobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{end}".encode()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.html").write_text(PAGE)
    (folder / "pot.pdf").write_bytes(pdf("the kettle boils", "the cups are warm", "the needle drops"))
    return folder


def test_the_text_of_a_page_stands_on_its_lines():
    lines = extract_text(PAGE.encode(), "html").split("\n")
    assert {number: line for number, line in enumerate(lines, start=1) if line} == LINES


ODD_PAGES = {
    "": "",
    " \n ": "",
    "tea": "tea",
    "<p>чай 茶 🍵": "чай 茶 🍵",
    "a<br>b<td>c": "a b c",
    "<p>a<p>b": "a b",
    "<svg><title>x</title></svg>y<script>1</script>z<!-- c -->w<?php x ?>v": "yzwv",
    "<script>x": "",
    "a &unknown; &#0; &#x110000; b": "a &unknown; \ufffd \ufffd b",
    "<h3>Tea": "### Tea",
    "\r\n<p>a\r\nb\r\n": "\na\nb",
}


def test_odd_pages_have_a_text_too():
    texts = {page: extract_text(page.encode(), "html").rstrip("\n") for page in ODD_PAGES}
    assert texts == ODD_PAGES


def test_a_line_far_down_is_still_the_line():
    page = "<html><body>" + "".join(f"<p>\nline {number}\n</p>\n" for number in range(30_000))
    page += "<!-- a\ncomment -->" + "".join(f"<p>\nline {number}\n</p>\n" for number in range(100))
    lines = extract_text(page.encode(), "html").split("\n")
    source = page.split("\n")
    assert all(lines[at] == text for at, text in enumerate(source) if text.startswith("line"))


def test_a_page_without_an_end_has_one():
    for piece in "<|<!--|<a |<a href='|</|<?|&#|<div>|<p><b>|<table>".split("|"):
        if isinstance(extract_text(piece.encode() * 30_000, "html"), Failed):
            assert piece in ("<div>", "<p><b>", "<table>")


def test_a_page_that_is_nested_too_deeply_is_damaged_and_not_half_read(store, folder):
    (folder / "deep.html").write_text("<div>" * 100_000 + "needle")
    assert reasons(store.documents.add(folder)) == {"deep.html": "damaged"}


def test_a_hit_in_html_names_the_line_of_the_page_and_its_headings(store, tmp_path):
    filler = "\n".join(f"<p>Sentence {number} of tea and water and leaves." for number in range(120))
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.html").write_text(f"<h1>Tea</h1>\n{filler}\n<h2>Black</h2>\n{filler}\n<p>needle\n")
    store.documents.add(folder)
    (hit,) = store.search("needle", mode="text").hits
    assert (hit.section, hit.end_line) == ("Tea > Black", 243)


def test_a_hit_in_a_pdf_names_its_page(store, folder):
    store.documents.add(folder)
    (hit,) = store.search("needle", mode="text").hits
    assert (hit.file, hit.start_line, hit.end_line) == ("pot.pdf", 1, 3)
    assert store.documents.get("notes/pot.pdf").content.split("\f")[2] == "the needle drops"
    assert store.maintenance.verify().ok


def test_passages_of_a_long_pdf_begin_on_their_own_page(store, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    words = "leaves water kettle cup pot sugar milk lemon spoon saucer " * 8
    pages = [f"page {number} {words}" + ("needle" if number == 31 else "") for number in range(1, 41)]
    (folder / "long.pdf").write_bytes(pdf(*pages))
    store.documents.add(folder)
    (hit,) = store.search("needle", mode="text").hits
    assert hit.start_line <= 31 <= hit.end_line <= hit.start_line + 5


def test_unchanged_ones_append_nothing(store, folder):
    store.documents.add(folder)
    assert (store.documents.refresh()[0].unchanged, store.documents.refresh()[0].indexed) == (2, 0)


def test_a_damaged_pdf_is_skipped_and_named(store, folder):
    damaged = [b"", b"%PDF-1.4\n", b"no pdf", pdf("tea")[:300], b"\0" * 5000]
    for number, data in enumerate(damaged):
        (folder / f"{number}.pdf").write_bytes(data)
    added = store.documents.add(folder)
    assert added.indexed == 2
    assert reasons(added) == {f"{number}.pdf": "damaged" for number in range(len(damaged))}
    assert all(skipped.detail for skipped in added.skipped)


def test_without_the_libraries_they_are_skipped_and_what_stood_stays(store, folder, tmp_path, monkeypatch):
    store.documents.add(folder)
    (folder / "new.pdf").write_bytes(pdf("tea"))
    (folder / "tea.html").write_text("<p>changed")
    missing = tmp_path / "missing"
    missing.mkdir()
    for library in ("lxml", "pypdf"):
        (missing / f"{library}.py").write_text(f"raise ModuleNotFoundError('{library}')")

    with monkeypatch.context() as without:
        without.setenv("PYTHONPATH", str(missing))
        store.close()
        # How they looked is not known, since they were written within the last two seconds.
        (added,) = store.documents.refresh()
        assert reasons(added) == dict.fromkeys(("new.pdf", "pot.pdf", "tea.html"), "no_reader")
        assert added.removed == 0
    store.close()
    assert [hit.id for hit in store.search("valley", mode="text").hits] == ["notes/tea.html"]
    assert store.documents.refresh()[0].indexed == 2


def test_a_pdf_may_be_larger_than_a_text(store, folder, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_BYTES", 5000)
    padding = b"%" + b"x" * text_files.MAX_BYTES + b"\n"
    (folder / "pot.pdf").write_bytes(pdf("tea") + padding)
    (folder / "tea.html").write_bytes(b" " * (text_files.MAX_BYTES + 1))
    assert reasons(store.documents.add(folder)) == {"tea.html": "too_large"}


def test_a_document_of_the_log_says_what_it_says_whatever_is_installed(store):
    store.append([memlog.DocumentIndexed(source_id="s", file="x.pdf", filetype="pdf", content="a\fneedle")])
    (hit,) = store.search("needle", mode="text").hits
    assert (hit.start_line, hit.end_line) == (1, 2)
