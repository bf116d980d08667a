"""The documents of a source as the folders and files that they were."""

from collections.abc import Iterable

import msgspec

from memlog.query.documents import Document


class DocumentFolder(msgspec.Struct, kw_only=True):
    """A folder of documents; the first of a source has the source's name.

    documents, passages, bytes: of all below it. folders, files: those that stand in it, by name.
    """

    name: str
    documents: int = 0
    passages: int = 0
    bytes: int = 0
    folders: list["DocumentFolder"] = []
    files: list["DocumentFile"] = []


class DocumentFile(msgspec.Struct, kw_only=True):
    """A document in its folder. bytes: None where the log does not say."""

    name: str
    filetype: str | None
    passages: int
    bytes: int | None


def tree(source_id: str, documents: Iterable[Document]) -> DocumentFolder:
    """The folders of a source's documents."""
    top = DocumentFolder(name=source_id)
    folders = {"": top}
    for document in sorted(documents, key=lambda each: each.file.split("/")):
        path, _, name = document.file.rpartition("/")
        file = DocumentFile(
            name=name, filetype=document.filetype, passages=document.passages, bytes=document.size
        )
        _folder_at(path, folders).files.append(file)
        for above in _paths_to(path):
            _count(folders[above], file)
    return top


def _folder_at(path: str, folders: dict[str, DocumentFolder]) -> DocumentFolder:
    """The folder of this path, made where it is not there yet, with those above it."""
    above = folders[""]
    for each in _paths_to(path)[1:]:
        if each not in folders:
            folders[each] = DocumentFolder(name=each.rpartition("/")[2])
            above.folders.append(folders[each])
        above = folders[each]
    return above


def _paths_to(path: str) -> list[str]:
    """The paths of all folders on the way: of `a/b` the empty one, `a` and `a/b`."""
    parts = path.split("/") if path else []
    return ["/".join(parts[:count]) for count in range(len(parts) + 1)]


def _count(folder: DocumentFolder, file: DocumentFile) -> None:
    folder.documents += 1
    folder.passages += file.passages
    folder.bytes += file.bytes or 0
