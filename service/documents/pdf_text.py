"""Extracts the text of a PDF, with form feeds between pages like `pdftotext`.

Uses pypdf, from the `documents` extra.
"""

from io import BytesIO

import pypdf

PAGE_END = "\f"


def extract_text(data: bytes) -> str:
    """Return the text of a PDF.

    Raises:
        Exception: any pypdf error, such as for a damaged or encrypted PDF.
    """
    pages = pypdf.PdfReader(BytesIO(data)).pages
    return PAGE_END.join(_replace_unstorable_characters(page.extract_text()) for page in pages)


def _replace_unstorable_characters(text: str) -> str:
    """Replace form feeds, and all characters that JSON or SQLite cannot store."""
    kept = text.replace(PAGE_END, "\n").replace("\0", " ")
    return kept.encode(errors="replace").decode()
