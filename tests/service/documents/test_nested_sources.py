"""A file of several sources is one hit, of the innermost folder."""

import shutil

import pytest

import memlog


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    (folder / "guide/deep").mkdir(parents=True)
    (folder / "top.md").write_text("# Coffee\n\nbrown coffee\n")
    (folder / "guide/tea.md").write_text("# Tea\n\ngreen tea\n")
    (folder / "guide/deep/rooibos.md").write_text("# Rooibos\n\nred tea\n")
    (folder / "guide/only.py").write_text("TEA = 'white tea'\n")
    return folder


def ids(store, text="tea", **options):
    return sorted(hit.id for hit in store.search(text, mode="text", **options).hits)


ALL = ["deep/rooibos.md", "guide/only.py", "guide/tea.md"]


@pytest.mark.parametrize(
    "order", [("docs", "guide", "deep"), ("deep", "guide", "docs"), ("guide", "docs", "deep")]
)
@pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
def test_a_file_of_nested_sources_is_one_hit_of_the_innermost(store, docs, order, mode):
    folders = {"docs": docs, "guide": docs / "guide", "deep": docs / "guide/deep"}
    for name in order:
        store.documents.add(folders[name], source=name)
    store.maintenance.project()
    found = {hit.id for hit in store.search("tea", mode=mode, k=20).hits}
    assert found - {"docs/top.md"} == {*ALL}
    assert ids(store, filters={"source": "docs"}) == [
        "docs/guide/deep/rooibos.md",
        "docs/guide/only.py",
        "docs/guide/tea.md",
    ]


def test_a_source_that_is_added_names_those_that_have_its_files(store, docs):
    assert store.documents.add(docs).shared == {}
    assert store.documents.add(docs / "guide/deep").shared == {"docs": 1}
    assert store.documents.add(docs / "guide", include=["*.py"]).shared == {"docs": 1}
    assert store.documents.add(docs, source="again").shared == {"deep": 1, "docs": 4, "guide": 1}
    assert ids(store) == ["again/guide/tea.md", "deep/rooibos.md", "guide/only.py"]


def test_the_notes_of_a_workspace_within_documents_are_found_once_as_memories(store, docs):
    (docs / "guide/MEMORY.md").write_text("likes oolong\n")
    store.documents.add(docs)
    assert store.workspaces.add(docs / "guide").shared == {"docs": 1}
    (hit,) = store.search("oolong", mode="text").hits
    assert (hit.kind, hit.source) == ("memory", "MEMORY.md")


def test_files_with_one_name_or_one_text_are_two(store, docs, tmp_path):
    shutil.copytree(docs / "guide", tmp_path / "docs-2/guide")
    (tmp_path / "docs-2/guide/tea.md").write_text("# Tea\n\nblack tea\n")
    store.documents.add(docs)
    assert store.documents.add(tmp_path / "docs-2").shared == {}
    assert {"docs/guide/tea.md", "docs-2/guide/tea.md"} <= {*ids(store)}


def test_a_source_that_is_removed_leaves_the_outer_one_its_hits(store, docs):
    store.documents.add(docs)
    store.documents.add(docs / "guide")
    store.documents.remove("guide")
    assert ids(store) == ["docs/guide/deep/rooibos.md", "docs/guide/only.py", "docs/guide/tea.md"]


def test_a_path_of_another_copy_of_the_store_is_another_file(store, docs, tmp_path):
    store.documents.add(docs)
    store.close()
    copy = shutil.copytree(store.path, tmp_path / "copy")
    (docs / "guide/tea.md").write_text("# Tea\n\nthe tea of another machine\n")
    with memlog.open(copy) as other:
        other.documents.add(docs / "guide")
        assert {"docs/guide/tea.md", "guide/tea.md"} <= {*ids(other)}
