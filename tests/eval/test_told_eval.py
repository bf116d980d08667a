"""The evaluation of what contexts tell: it counts as it says, and sees a bad figure."""

from tests.eval.told import LEAST, Count, Prompt, Told, failures, read_stores

PROMPT = Prompt(id="p", text="When is standup?", type="literal", must=["a", "b", "c"], may=["d"])
NOTHING = Prompt(id="q", text="hello", type="smalltalk", must=[])


def counted(*given: tuple[Prompt, list[str], list[str]]) -> Count:
    count = Count()
    for prompt, turn, always in given:
        count.add(prompt, turn, always, {"c"})
    return count


def test_core_memory_counts_for_nothing_and_what_always_holds_for_recall_alone():
    count = counted((PROMPT, ["a", "d", "x", "y"], ["b"]))
    assert (count.share("got", "must"), count.share("good", "lines")) == (1.0, 0.5)
    assert counted((PROMPT, [], [])).share("good", "lines") is None


def test_a_prompt_without_an_answer_is_silent_where_nothing_is_given_for_it():
    count = counted((NOTHING, [], ["b"]), (NOTHING, ["a"], []))
    assert (count.share("silent", "none"), count.share("lines", "prompts")) == (0.5, 0.5)


def test_each_figure_that_is_too_low_is_named():
    good = counted((PROMPT, ["a", "b"], []))
    quiet = counted((NOTHING, [], []))
    figures = dict.fromkeys(LEAST["bundled"], good) | {"smalltalk": quiet}
    assert failures({4000: figures, 200: figures}, "bundled") == []
    bad = counted((PROMPT, ["x"] * 9, []))
    loud = counted((NOTHING, ["a"], []))
    found = failures(
        {4000: dict.fromkeys(LEAST["bundled"], bad) | {"smalltalk": loud}, 200: {"all": bad}}, "bundled"
    )
    words = [*LEAST["bundled"], "200 tokens", "precision", "small talk", "lines a prompt"]
    assert [word for word, line in zip(words, found, strict=True) if word not in line] == []


def test_each_store_names_what_it_has_and_a_context_gives_names_of_it(tmp_path):
    stores = read_stores()
    for each in stores:
        names = {entry.id for entry in each.entries}
        assert len(names) == len(each.entries)
        assert {name for prompt in each.prompts for name in (*prompt.must, *prompt.may)} <= names
    first = stores[0]
    some = Told(first.id, [*{entry.kind: entry for entry in first.entries}.values()], [])
    store, names = some.fill(tmp_path / "store")
    with store:
        memory = next(entry for entry in some.entries if entry.kind == "memory")
        given = store.context(memory.text, record=False)
        assert {names.get(entry.id, entry.id) for entry in given.entries} <= {
            entry.id for entry in some.entries
        }
