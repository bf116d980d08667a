"""The text of a PDF, its pages apart by form feeds, as `pdftotext` has them.

By pypdf, which comes with memlog-store[documents].
"""

from io import BytesIO

import pypdf

PAGE_END = "\f"


def text_of(data: bytes) -> str:
    """Return the text of a PDF.

    Raises:
        Exception: any that pypdf raises for a PDF that is damaged or has a password.
    """
    pages = pypdf.PdfReader(BytesIO(data)).pages
    return PAGE_END.join(_without_page_ends(page.extract_text()) for page in pages)


def _without_page_ends(text: str) -> str:
    """Return `text` as JSON and SQLite can keep it, without form feeds of its own."""
    kept = text.replace(PAGE_END, "\n").replace("\0", " ")
    return kept.encode(errors="replace").decode()
