"""`.gitignore` is read as git reads it; git itself says so."""

import shutil
import subprocess
import time

import pytest

from memlog.service.documents.scan import Patterns
from memlog.service.engine import sandbox
from tests.service.documents.folders import files
from tests.support.hostile_files import SLOW_NAME, SLOW_RULES

FILES = [
    *("a.md", "b.log.md", "keep.log.md", "build/x.md", "build/keep.md", "docs/build/y.md", "docs/a.md"),
    *(
        "docs/deep/er/z.md",
        "top.md",
        "docs/top.md",
        "sp ace.md",
        "#hash.md",
        "docs/tmp/t.md",
        "docs/tmp/keep.md",
    ),
    *("vendor/lib/v.md", "vendor/own/o.md", "Upper.md"),
]
RULES = {
    "none": {},
    "a file": {".gitignore": "a.md\n"},
    "a wildcard and a negation": {".gitignore": "*.log.md\n!keep.log.md\n"},
    "a folder anywhere": {".gitignore": "build/\n"},
    "a folder cannot be entered by a negation": {".gitignore": "build/\n!build/keep.md\n"},
    "what is in a folder can": {".gitignore": "docs/tmp/*\n!docs/tmp/keep.md\n"},
    "at the root alone": {".gitignore": "/top.md\n/build\n"},
    "nested": {".gitignore": "*.md\n", "docs/.gitignore": "!*.md\ntmp/\n"},
    "nested, and nearer than negation": {".gitignore": "!a.md\n", "docs/.gitignore": "a.md\n/deep/**/z.md\n"},
    "odd lines": {".gitignore": "\n# a comment\n\\#hash.md\nsp\\ ace.md\n*.tmp   \r\nupper.md\n"},
    "double stars": {".gitignore": "**/er\nvendor/**\n!vendor/own/\n"},
    "all but one": {".gitignore": "/*\n!/docs\n/docs/*\n!/docs/deep\n"},
    "lines that are no rules": {".gitignore": "!\na.md\n///\n[\n"},
    "not UTF-8": {".gitignore": b"caf\xe9\na.md\n"},
}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "notes"
    for file in FILES:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("text")
    return folder


def write(folder, rules):
    for file, text in rules.items():
        (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())


def ignored(added):
    return sorted(skipped.file for skipped in added.skipped if skipped.reason == "ignored")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here to be asked")
def test_what_git_would_not_add_is_no_document(store, folder):
    for number, (name, rules) in enumerate(RULES.items()):
        copy = shutil.copytree(folder, folder.with_name(f"notes{number}"))
        write(copy, rules)
        subprocess.run(["git", "init", "--quiet", copy], check=True)
        listed = ["git", "-C", copy, "ls-files", "--others", "--exclude-standard", "-z"]
        told = subprocess.run(listed, check=True, capture_output=True).stdout.decode().split("\0")
        added = store.documents.add(copy)
        assert files(store, copy.name) == sorted(file for file in told if file.endswith(".md")), name
        assert added.found == added.indexed + len(added.skipped), name


def test_a_folder_that_is_left_out_counts_as_one(store, folder):
    write(folder, {".gitignore": "build/\na.md\n"})
    assert ignored(store.documents.add(folder)) == ["a.md", "build", "docs/a.md", "docs/build"]


def test_a_changed_rule_takes_documents_away_and_brings_them_back(store, folder):
    store.documents.add(folder)
    write(folder, {".gitignore": "docs\n"})
    (refreshed,) = store.documents.refresh()
    assert (refreshed.indexed, refreshed.removed) == (0, 6)
    (folder / ".gitignore").unlink()
    assert store.documents.refresh()[0].indexed == 6


def test_the_rules_of_the_repository_above_hold_too(store, folder):
    write(folder, {".gitignore": "tmp/\n/docs/top.md\n", "docs/.gitignore": "build\n"})
    (folder / ".git").mkdir()
    store.documents.add(folder / "docs")
    assert files(store, "docs") == ["a.md", "deep/er/z.md"]


def test_rules_above_do_not_hold_for_a_folder_that_they_leave_out_itself_and_is_named(store, folder):
    write(folder, {".gitignore": "docs/\n"})
    (folder / ".git").mkdir()
    assert store.documents.add(folder / "docs").indexed == 6


def test_rules_above_what_is_no_repository_do_not_hold(store, folder):
    write(folder, {".gitignore": "*\n"})
    assert store.documents.add(folder / "docs").indexed == 6


def test_what_is_named_without_a_wildcard_is_read_though_it_is_ignored_or_hidden(store, folder):
    write(folder, {".gitignore": "build/\na.md\n", ".env.md": "x"})
    store.documents.add(folder, include=["**/*.md", "build", ".env.md"])
    assert {"build/x.md", "build/keep.md", ".env.md"} <= set(files(store))
    assert not {"a.md", "docs/build/y.md"} & set(files(store))
    store.documents.add(folder / "a.md", source="one")
    assert files(store, "one") == ["a.md"]
    assert [each.indexed for each in store.documents.refresh()] == [0, 0]


def test_patterns_do_not_bring_back_what_is_ignored(store, folder):
    write(folder, {".gitignore": "build/\n"})
    store.documents.add(folder, include=["**/x.md", "**/y.md"])
    assert files(store) == []


def test_a_gitignore_that_is_no_file_says_nothing(store, folder, tmp_path):
    (tmp_path / "all").write_text("*\n")
    (folder / ".gitignore").symlink_to(tmp_path / "all")
    (folder / "docs/.gitignore").mkdir()
    assert store.documents.add(folder).indexed == len(FILES)


def limits(added):
    return {skipped.file: skipped.detail for skipped in added.skipped if skipped.reason == "limit"}


def test_rules_that_take_for_ever_are_named_and_not_followed_and_all_others_are(store, folder, monkeypatch):
    write(folder, {".gitignore": "a.md\n", "docs/.gitignore": SLOW_RULES, f"docs/{SLOW_NAME}": "x"})
    monkeypatch.setattr(sandbox, "_RULES_SECONDS", 1)
    matched, real = [], sandbox.BoundedProcess.ask

    def ask(self, request, kind):
        matched.append(getattr(request, "rules", b""))
        return real(self, request, kind)

    monkeypatch.setattr(sandbox.BoundedProcess, "ask", ask)
    added = store.documents.add(folder)
    assert limits(added) == {"docs/.gitignore": "its rules are not applied: it takes more than 1 seconds"}
    assert {"a.md", "docs/a.md"} <= set(ignored(added))
    assert {"docs/top.md", "top.md"} <= set(files(store))
    assert limits(store.documents.refresh()[0]) == limits(added)
    assert matched.count(SLOW_RULES.encode()) == 1
    assert matched.count(b"a.md\n") > 1


def test_rules_that_are_too_long_to_be_followed_stop_nothing(store, folder, monkeypatch):
    monkeypatch.setattr(sandbox, "_RULES_SECONDS", 1)
    write(folder, {"docs/.gitignore": "a/**/" * 50_000})
    store.documents.add(folder)
    assert "docs/top.md" in files(store)


def test_no_pattern_of_an_option_takes_for_ever():
    for part in ("*a" * 60, "?*" * 60, "[a]*" * 60, "**/" * 1000, "**/*/" * 500):
        patterns = Patterns((f"{part}b",), (f"{part}b",))
        for path in (SLOW_NAME + ".md", "/".join(["a" * 60] * 30)):
            assert not patterns.includes(path)
            patterns.may_include_below(path)


@pytest.mark.deep
def test_ten_thousand_names_are_looked_up_and_not_compared():
    names = tuple(f"{number}.md" for number in range(10_000))
    patterns = Patterns(names, names[::2])
    began = time.process_time()
    assert sum(patterns.includes(name) for name in names) == 5000
    assert time.process_time() - began < 2
