"""What the read model makes of errors while it is read."""

import pytest

import memlog


def test_an_error_of_a_program_passes_and_no_file_is_checked_for_it(tmp_path):
    statements = []

    def ask(db):
        db.set_trace_callback(statements.append)
        db.execute("SELECT count(*) FROM events").fetchone()
        raise TypeError("a fault of the program")

    with memlog.open(tmp_path / "store") as store:
        store.append(memlog.Message(channel="web", chat_id="1", role="user", content="I like tea"))
        with pytest.raises(TypeError, match="a fault of the program"):
            store._engine.read_model.query_up_to_date(ask)
        assert statements
        assert not [sql for sql in statements if "check" in sql]
        assert [hit.content for hit in store.search("tea", mode="text").hits] == ["I like tea"]
