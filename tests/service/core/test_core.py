"""The core memory as a Python program uses it: set, delete, import what a file says."""

import json
import subprocess
import sys

import pytest

import memlog
from tests.support.refusals import refused


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def view_of(store):
    return store.path / "model" / "core_memory.json"


def edit(store, **sections):
    """Changes the view by hand: an editor writes it as it likes."""
    store.core.get()
    view_of(store).write_text(json.dumps(sections))


def pairs(values):
    return {(each.section, each.key): each.value for each in values}


def events(store):
    return store.maintenance.status().events


def test_core_memory_is_set_read_and_deleted(store):
    store.core.set("user", "name", "Anna")
    store.core.set("agent", "rule", "be brief")
    assert store.core.get() == memlog.CoreMemory(user={"name": "Anna"}, agent={"rule": "be brief"})
    assert store.core.get("user", "name") == "Anna"
    assert store.core.delete("user", "name").stream == "core"
    assert store.core.get("user", "name") is None
    assert store.core.delete("user", "name") is False
    assert store.core.delete("user", "unknown") is False
    assert store.core.get().user == {}


# JSON


def test_the_values_of_a_json_file_are_set_where_they_differ_and_nothing_is_deleted(store, file):
    store.core.set("user", "name", "Anna")
    store.core.set("user", "location", "Helsinki")
    path = file("other.json", '{"user":{"name":"Anna","occupation":"baker"},"agent":{"learned_rules":"x"}}')
    done = store.core.import_file(path)
    assert pairs(done.set) == {("user", "occupation"): "baker", ("agent", "learned_rules"): "x"}
    assert pairs(done.kept) == {("user", "name"): "Anna"}
    assert (done.deleted, done.other, done.skipped) == ([], 0, 0)
    assert store.core.get().user == {"location": "Helsinki", "name": "Anna", "occupation": "baker"}


def test_the_values_of_a_json_file_win(store, file):
    store.core.set("user", "name", "Anna")
    store.core.import_file(file("other.json", '\ufeff{"user":{"name":"Bob"}}'))
    assert store.core.get().user == {"name": "Bob"}


ODD_SHAPES = [
    *("", "[]", "5", "null", "{", '{"user":[]}', '{"user":{"a":5}}', '{"user":{"a":null}}'),
    *('{"users":{}}', '{"user":{"a":{}}}', '{"user":{"":"x"}}', '{"user":{"a":"\\ud800"}}'),
    *('{"user":{"a":"1","a":"2"}}', '{"user":{},"user":{}}', "[" * 100_000, '{"user":' * 5000),
    *('{"user":{"good":"x","bad":5}}', '{"user":{"a":NaN}}', "9" * 5000, b"\xff\xfe{\x00}\x00"),
    b'{"user":{"a":"caf\xe9"}}',
]


def test_json_of_another_shape_is_refused_and_nothing_is_appended(store, file):
    for content in ODD_SHAPES:
        with refused(content[:40]) as caught:
            store.core.import_file(file("bad.json", content))
        assert caught.value.hint, content[:40]
        assert events(store) == 0, content[:40]


def test_a_file_that_says_not_what_it_is_is_refused(store, file):
    for name in ("core.toml", "core", "json", "core.md.bak"):
        with refused(name, match="the suffix is not one of JSON, Markdown or text"):
            store.core.import_file(file(name, "Name: Anna"))


def test_a_file_that_cannot_be_read_is_refused(store, tmp_path):
    for path in (tmp_path / "missing.json", tmp_path / ("x" * 5000 + ".md")):
        with pytest.raises(memlog.BadInput):
            store.core.import_file(path)
    (tmp_path / "folder.md").mkdir()
    with pytest.raises(memlog.BadInput, match="Is a directory"):
        store.core.import_file(tmp_path / "folder.md")


# The view


def test_a_change_of_the_view_by_hand_is_imported_as_what_differs(store):
    for key, value in {"name": "Anna", "location": "Helsinki", "occupation": "baker"}.items():
        store.core.set("user", key, value)
    edit(store, user={"name": "Anna", "location": "Turku"}, agent={"learned_rules": "be brief"})
    done = store.core.import_file(view_of(store))
    assert pairs(done.set) == {("user", "location"): "Turku", ("agent", "learned_rules"): "be brief"}
    assert pairs(done.deleted) == {("user", "occupation"): "baker"}
    assert pairs(done.kept) == {("user", "name"): "Anna"}
    assert store.core.get() == memlog.CoreMemory(
        user={"name": "Anna", "location": "Turku"}, agent={"learned_rules": "be brief"}
    )


def test_what_events_said_since_the_view_was_written_stays(store):
    for key in ("changed", "unchanged", "deleted"):
        store.core.set("user", key, "before")
    edit(store, user={"changed": "before", "unchanged": "before", "deleted": "before", "mine": "x"})
    store.core.set("user", "changed", "since")
    store.core.set("user", "new", "since")
    store.core.delete("user", "deleted")
    done = store.core.import_file(view_of(store))
    assert pairs(done.set) == {("user", "mine"): "x"}
    assert (done.deleted, done.other) == ([], 0)
    assert store.core.get().user == {
        **{"changed": "since", "unchanged": "before", "new": "since", "mine": "x"},
    }


def test_after_its_import_the_view_is_written_anew_and_is_no_longer_changed(store):
    told = []
    store.core.set("user", "name", "Anna")
    edit(store, user={"name": "Bob"})
    store.core.set("user", "new", "since")
    with memlog.open(store.path, notify=told.append) as other:
        other.core.import_file(view_of(store))
        assert json.loads(view_of(store).read_text()) == {
            "user": {"name": "Bob", "new": "since"},
            "agent": {},
        }
        before = events(other)
        again = other.core.import_file(view_of(store))
        assert (again.set, again.deleted, events(other)) == ([], [], before)
        other.core.set("user", "name", "Carl")
        other.core.get()
        assert json.loads(view_of(store).read_text())["user"]["name"] == "Carl"
    assert told == []


def test_a_bad_change_by_hand_is_refused_and_stays(store):
    store.core.set("user", "name", "Anna")
    store.core.get()
    view_of(store).write_text('{"user":{"name":"Bob"')
    with pytest.raises(memlog.BadInput, match="not JSON: "):
        store.core.import_file(view_of(store))
    store.core.get()
    assert view_of(store).read_text() == '{"user":{"name":"Bob"'
    assert store.core.get().user == {"name": "Anna"}


def test_a_copy_of_the_changed_view_deletes_nothing(store, file):
    store.core.set("user", "name", "Anna")
    store.core.set("user", "location", "Helsinki")
    done = store.core.import_file(file("core_memory.json", '{"user":{"name":"Bob"},"agent":{}}'))
    assert pairs(done.set) == {("user", "name"): "Bob"}
    assert store.core.get().user == {"name": "Bob", "location": "Helsinki"}


def test_where_it_is_unknown_what_the_view_was_nothing_is_deleted(store):
    store.core.set("user", "name", "Anna")
    edit(store, user={"location": "Turku"})
    (store.path / "model" / ".core_memory.json").unlink()
    done = store.core.import_file(view_of(store))
    assert (pairs(done.set), done.deleted) == ({("user", "location"): "Turku"}, [])
    assert store.core.get().user == {"name": "Anna", "location": "Turku"}


def test_an_import_that_was_killed_after_its_append_can_be_repeated(store):
    store.core.set("user", "name", "Anna")
    store.core.set("user", "location", "Helsinki")
    edit(store, user={"name": "Bob"}, agent={})
    # What the import appends, without what comes behind it.
    store.core.set("user", "name", "Bob")
    store.core.delete("user", "location")
    done = store.core.import_file(view_of(store))
    assert (done.set, done.deleted) == ([], [])
    store.core.set("user", "name", "Carl")
    assert store.core.get().user == {"name": "Carl"}
    assert json.loads(view_of(store).read_text())["user"] == {"name": "Carl"}


IMPORT = "import memlog, sys; memlog.open(sys.argv[1], notify=print).core.import_file(sys.argv[2])"


def test_two_processes_that_import_one_change_give_what_one_gives(store):
    for turn in range(4):
        value = f"turn {turn}"
        store.core.set("user", "removed", value)
        standing = store.core.get().user
        edit(store, user={key: standing[key] for key in standing if key != "removed"} | {"name": value})
        store.core.set("user", f"since {turn}", value)
        command = [sys.executable, "-c", IMPORT, str(store.path), str(view_of(store))]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in "ab"]
        assert [each.communicate()[0] for each in both] == [b"", b""]
        expected = {"name": value} | {f"since {number}": f"turn {number}" for number in range(turn + 1)}
        assert store.core.get().user == expected
        assert json.loads(view_of(store).read_text())["user"] == expected


# Markdown


def test_a_second_import_appends_nothing(store, file):
    path = file("USER.md", "Name: Anna\n## Preferences\n- tea\n- short answers\n")
    done = store.core.import_file(path)
    assert pairs(done.set) == {("user", "name"): "Anna", ("user", "preferences"): "tea; short answers"}
    again = store.core.import_file(path)
    assert (again.set, again.deleted, again.other) == ([], [], 0)
    assert events(store) == 2


def test_what_is_set_already_stays_unless_forced(store, file):
    path = file("USER.md", "Name: Anna\nLocation: Helsinki\n")
    store.core.set("user", "name", "Bob")
    done = store.core.import_file(path)
    assert (pairs(done.set), pairs(done.kept), done.other) == (
        {("user", "location"): "Helsinki"},
        {("user", "name"): "Bob"},
        1,
    )
    forced = store.core.import_file(path, force=True)
    assert (pairs(forced.set), forced.other) == ({("user", "name"): "Anna"}, 0)
    assert store.core.import_file(path, force=True).set == []


def test_a_deleted_key_comes_back_with_the_next_import(store, file):
    path = file("USER.md", "Name: Anna\n")
    store.core.import_file(path)
    store.core.delete("user", "name")
    store.core.import_file(path)
    assert store.core.get().user == {"name": "Anna"}


def test_markdown_that_is_not_utf8_is_refused(store, file):
    with pytest.raises(memlog.BadInput, match="not UTF-8: byte 9"):
        store.core.import_file(file("USER.md", b"Name: caf\xe9"))
    with pytest.raises(memlog.BadInput, match="not UTF-8"):
        store.core.import_file(file("USER.txt", "Name: Anna".encode("utf-16")))
    assert events(store) == 0


def test_a_file_of_more_than_16_mib_is_refused(store, file):
    with pytest.raises(memlog.BadInput, match="larger than 16 MiB"):
        store.core.import_file(file("USER.md", b"x" * (16 * 1024 * 1024 + 1)))


def test_a_text_file_says_what_a_markdown_file_does(store, file):
    store.core.import_file(file("me.TXT", "Name: Anna"))
    assert store.core.get().user == {"name": "Anna"}
