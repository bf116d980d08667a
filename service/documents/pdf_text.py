"""The text of a PDF, its pages apart by form feeds, as `pdftotext` has them.

By pypdf, which comes with memlog-store[documents].
"""

from io import BytesIO

import pypdf

PAGE_END = "\f"


def text_of(data: bytes) -> str:
    """The text of a PDF.

    Raises:
        Exception: whatever pypdf comes upon in a damaged one, or one that a password guards.
    """
    pages = pypdf.PdfReader(BytesIO(data)).pages
    return PAGE_END.join(_without_page_ends(page.extract_text()) for page in pages)


def _without_page_ends(text: str) -> str:
    """`text` as JSON and SQLite can keep it, and without what would be taken for the end of its page."""
    kept = text.replace(PAGE_END, "\n").replace("\0", " ")
    return kept.encode(errors="replace").decode()
