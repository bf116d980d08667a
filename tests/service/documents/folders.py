"""Folders of files, and what a store says of them."""

from pathlib import Path

from memlog import IndexingReport, Store


def made(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write files below a folder, and return it."""
    for file, content in files.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def files(store: Store, source: str = "notes") -> list[str]:
    """Return the names of the documents of a source."""
    return [document.file for document in store.documents.list(source)]


def found(store: Store, text: str) -> list[str]:
    """Return the ids of the hits of words."""
    return [hit.id for hit in store.search(text, mode="text").hits]


def reasons(added: IndexingReport) -> dict[str, str]:
    """Return why files were skipped, by name."""
    return {skipped.file: skipped.reason for skipped in added.skipped}
