"""Files of a stranger that hold up, or drive, whoever reads them."""

import zlib

SLOW_RULES = "*a*a*a*a*a*a*b\n"
"""Rules that a backtracking regular expression compares with `SLOW_NAME` for years."""

SLOW_NAME = "a" * 200


def html_of_many_attributes(count: int) -> bytes:
    """A page whose one element has so many attributes, which libxml2 compares with one another."""
    attributes = " ".join(f"a{number}=1" for number in range(count))
    return f"<p {attributes}>tea</p>".encode()


def html_of_many_elements(size: int) -> bytes:
    """A page of so many bytes that takes a hundred times as many in memory."""
    return b"<b>" + b"<br>" * (size // 4)


def pdf_of_shared_pages(pages: int) -> bytes:
    """A PDF of 3 kB with so many references to one page, which is large when it is inflated."""
    content = zlib.compress(b"BT /F1 12 Tf 50 700 Td " + b"(tea) Tj " * 1000 + b"ET", 9)
    return _pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[" + b"4 0 R " * pages + b"]/Count %d>>" % pages,
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(content), content),
        _PAGE,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )


def pdf_that_warns(encoding: bytes) -> bytes:
    """A PDF whose font has an encoding that no library knows, with its name in the warning."""
    name = b"".join(b"#%02x" % byte for byte in encoding)
    content = b"BT /F1 12 Tf 50 700 Td (the needle) Tj ET"
    return _pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[4 0 R]/Count 1>>",
        b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        _PAGE,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/%b>>" % name,
    )


_PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 3 0 R/Resources<</Font<</F1 5 0 R>>>>>>"


def _pdf(*objects: bytes) -> bytes:
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj%bendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end
