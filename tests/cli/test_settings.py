"""A setting is an option's, else the environment's, else memlog.toml's, else the default."""

import inspect
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_origin

import click
import pytest
from msgspec.structs import asdict

import memlog as package
from memlog.cli.options.settings import SettingOption
from memlog.cli.options.settings_schema import _structs_of_section, all_settings
from memlog.eventlog.fields import Checked, Field, list_fields
from tests.support.command_tree import COMMANDS
from tests.support.places import ROOT

Run = Callable[..., Any]
SAID = ("append", "message", "--chat", "x:1", "--role", "user", "--content")
PAGE = ROOT / "docs/settings.md"


@pytest.fixture
def settings_file(store: Path) -> Callable[[str | bytes], Path]:
    """Writes the store's memlog.toml."""

    def write(text: str | bytes) -> Path:
        store.mkdir(exist_ok=True)
        path = store / "memlog.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


# The page


def _options_of(command: click.Command) -> Iterator[SettingOption]:
    return (option for option in command.params if isinstance(option, SettingOption))


def _table() -> str:
    options: dict[str, list[str]] = {setting.name: [] for setting in all_settings()}
    for path, command in COMMANDS.items():
        # What can be given before a group's command can be given behind it, too; the page names the first.
        for option in _options_of(command):
            if len(path) < 2:
                options[option.setting.name].append(" ".join(("memlog", *path, option.opts[0])))
    rows = [["name", "variable", "option", "default", "unit", "meaning"], ["---"] * 6]
    for each in all_settings():
        named = ", ".join(f"`{option}`" for option in options[each.name])
        rows.append(
            [f"`{each.name}`", f"`{each.variable}`", named, each.default_text, each.unit, each.meaning]
        )
    return "".join("".join(f"| {cell}".rstrip() + " " for cell in row) + "|\n" for row in rows)


def test_the_page_has_a_row_for_each_setting_and_no_other(pytestconfig: pytest.Config) -> None:
    written = PAGE.read_text()
    page = re.sub(r"(?m)(^\|.*\n)+", lambda _: _table(), written)
    if pytestconfig.getoption("update_snapshots"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page, "docs/settings.md is out of date: `make snapshots` writes it anew"


def test_no_option_reads_the_environment_by_itself() -> None:
    for command in COMMANDS.values():
        for option in command.params:
            assert option.envvar is None or isinstance(option, SettingOption), option


def test_each_default_is_that_of_the_library() -> None:
    opened = inspect.signature(package.open).parameters
    searched = inspect.signature(package.Store.search).parameters
    pruned = inspect.signature(package.Memories.prune).parameters
    contexts = inspect.signature(package.Store.context).parameters
    sizes = package.ChunkSizes()
    assert {setting.name: setting.default for setting in all_settings() if setting.may_be_in_file} == {
        "model": opened["model"].default,
        "durability": opened["durability"].default,
        "redact": opened["redact"].default,
        "lock_timeout": opened["lock_timeout"].default,
        "chunk_tokens": sizes.window,
        "chunk_overlap": sizes.overlap,
        "document_seconds": opened["document_seconds"].default,
        "timezone": None,
        "archive_threshold": pruned["threshold"].default,
        "context_scope": "auto",
        "context_health_tokens": contexts["health_tokens"].default,
        "context_preference_tokens": contexts["preference_tokens"].default,
        "context.messengers": package.People().messengers,
        "context.people": package.People().chats,
        "decay.rates": package.DecayRules().rates,
        "search.min_similarity": package.SearchRules().min_similarity,
        "serve.auto": False,
        "serve.idle_minutes": 15.0,
        "serve.follow": (),
        "search_limit": searched["k"].default,
        "search_mode": searched["mode"].default,
        "search_fusion": package.Ranking().fusion,
        "search_depth": package.Ranking().depth,
        "migrate.auto": False,
        "retrieval.mode": "enhanced",
        "memory.enabled": True,
        "embedding.enabled": True,
        "rerank.enabled": True,
        **_provider("embedding", package.EmbeddingProvider()),
        "extraction.enabled": True,
        **{f"jobs.{name}": getattr(package.JobRules(), name) for name in ("daily", "weekly")},
        **{f"extraction.{name}": value for name, value in asdict(package.ExtractionRules()).items()},
        **_provider("language_model", package.LanguageModelProvider(base_url="http://127.0.0.1"))
        | {"language_model.base_url": None},
        **_provider("rerank", package.RerankProvider(base_url="http://127.0.0.1"))
        | {"rerank.base_url": None},
    }


def _provider(section: str, provider: Any) -> dict[str, Any]:
    fields = {name: getattr(provider, name) for name in provider.__struct_fields__} | {"api_key_file": None}
    return {f"{section}.{name}": value for name, value in fields.items()}


def _wrong_values(field: Field) -> Iterator[Any]:
    """Values that are not of a setting's type, beyond a bound, or none of its choices."""
    yield from (object(), b"x")
    if field.kind in (int, float):
        yield from (field.least - 1, field.most + 1, math.nan, "1", True)  # type: ignore[operator]
    elif field.kind is bool or field.is_list:
        yield "yes"
    elif get_origin(field.kind) is Literal:
        yield "magic"


@pytest.mark.parametrize(
    "kind", [kind for _, kind in _structs_of_section(None)], ids=lambda kind: kind.__name__
)
def test_each_setting_is_checked_in_python_too_and_named(kind: type[Checked]) -> None:
    for field in list_fields(kind):
        for value in _wrong_values(field):
            with pytest.raises(package.BadInput, match=field.name) as refused:
                kind(**{field.name: value})
            assert refused.value.hint, (field.name, value)


# The order


def _origin(memlog: Run, *args: str, name: str, **options: Any) -> tuple[Any, str]:
    done = memlog(*args, "config", name, "--json", **options)
    return done.json["value"], done.json["origin"]


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    """The user's own file, whose folder exists."""
    path = tmp_path / ".config/memlog/config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_an_option_goes_before_the_environment_before_the_files_before_the_default(
    memlog: Run, settings_file: Run, store: Path, user_file: Path
) -> None:
    assert _origin(memlog, name="model") == (None, "default")
    user_file.write_text('model = "own"')
    assert _origin(memlog, name="model") == (str(user_file.parent / "own"), "config.toml")
    settings_file('model = "mine"')
    assert _origin(memlog, name="model") == (str(store / "mine"), "memlog.toml")
    env = {"MEMLOG_MODEL": "theirs"}
    assert _origin(memlog, name="model", env=env) == ("theirs", "environment")
    assert _origin(memlog, "--model", "given", name="model", env=env) == ("given", "option")


def test_the_users_own_file_is_in_the_folder_for_configuration_and_checked(
    memlog: Run, user_file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other/memlog/config.toml"
    other.parent.mkdir(parents=True)
    other.write_text("search_limit = 3")
    env = {"XDG_CONFIG_HOME": str(tmp_path / "other")}
    assert _origin(memlog, name="search_limit", env=env) == (3, "config.toml")
    user_file.write_text("search_limits = 3")
    done = memlog("query", "tea", "--json", env={"XDG_CONFIG_HOME": "relative"})
    assert (done.code, done.error["hint"]) == (65, "did you mean search_limit?")
    assert done.error["message"].startswith(f"{user_file}: ")


@pytest.mark.parametrize("foreign", ["base_url", "proxy"])
def test_the_users_own_key_is_not_sent_where_a_store_says(
    memlog: Run, settings_file: Run, user_file: Path, foreign: str
) -> None:
    user_file.write_text(
        '[language_model]\nbase_url = "http://127.0.0.1:1"\nproxy = "http://127.0.0.1:2"\napi_key = "${KEY}"'
    )
    assert memlog("config").code == 0
    settings_file(f'[language_model]\n{foreign} = "http://127.0.0.1:3"')
    done = memlog("config", "--json")
    assert (done.code, foreign in done.error["message"], foreign in done.error["hint"]) == (65, True, True)
    settings_file("")
    assert memlog("config").code == 0


def test_an_empty_variable_and_an_empty_text_are_none(memlog: Run, settings_file: Run) -> None:
    settings_file('search_mode = "text"\nmodel = ""')
    assert _origin(memlog, name="search_mode", env={"MEMLOG_SEARCH_MODE": ""}) == ("text", "memlog.toml")
    assert _origin(memlog, name="model") == (None, "default")


def _hits(memlog: Run, *args: str, **options: Any) -> Any:
    return memlog("query", "tea", *args, "--json", **options).json


def test_search_limit_and_search_mode_act_on_a_query(memlog: Run, settings_file: Run) -> None:
    settings_file('search_limit = 2\nsearch_mode = "text"')
    memlog(
        "append", input=b"".join(b'{"type":"memory_saved","content":"tea %d"}\n' % each for each in range(5))
    )
    found = _hits(memlog)
    assert (len(found["hits"]), found["mode"]) == (2, "text")
    assert len(_hits(memlog, env={"MEMLOG_SEARCH_LIMIT": "3"})["hits"]) == 3
    assert len(_hits(memlog, "-k", "4", env={"MEMLOG_SEARCH_LIMIT": "3"})["hits"]) == 4


def test_similarity_threshold_leaves_out_what_is_less_similar(
    memlog: Run, settings_file: Run, store: Path
) -> None:
    for text in ("A kettle is on the stove", "Interest rates rose again, said tea"):
        memlog("memory", "save", "--no-dedup", "--content", text)
    memlog("project")
    context = memlog("context", "tea", "--no-record").out

    def found(*args: str) -> list[str]:
        return [each["snippet"][:8] for each in _hits(memlog, *args)["hits"]]

    assert sorted(found()) == ["A kettle", "Interest"]
    settings_file("[search]\nmin_similarity = 0.9")
    assert found() == []
    assert found("--mode", "vector") == []
    assert sorted(found("--min-similarity", "0.1")) == ["A kettle", "Interest"]
    assert memlog("context", "tea", "--no-record").out == context
    for rules, count in ((package.SearchRules(min_similarity=0.9), 0), (None, 2)):
        with package.open(store, search=rules) as opened:
            assert len(opened.search("tea").hits) == len(opened.tools.memory_search("tea").results) == count


def test_search_depth_acts_on_a_query(memlog: Run) -> None:
    """A memory that only words find takes part in a fused list only within the depth."""
    lines = [b'{"type":"memory_saved","content":"tea %s"}\n' % (b"tea " * each) for each in range(30)]
    memlog("append", input=b"".join(lines))
    memlog("project")
    sides = [
        _hits(memlog, "-k", "1", env={"MEMLOG_SEARCH_DEPTH": depth})["hits"][0]["score"]
        for depth in ("1", "50")
    ]
    assert sides[0] < sides[1]


def test_messengers_and_people_act_on_a_context(memlog: Run, settings_file: Run) -> None:
    for chat in ("telegram:1", "signal:2"):
        memlog("append", "message", "--chat", chat, "--role", "user", "--content", f"The code is {chat}")

    def told(**env: str) -> list[bool]:
        given = memlog("context", "code", "--chat", "signal:2", "--no-record", env=env).out
        return [b"is telegram:1" in given, b"is signal:2" in given]

    assert told() == [False, True]
    assert told(MEMLOG_CONTEXT_MESSENGERS="irc,telegram") == [True, True]
    settings_file('[context.people]\nanna = ["telegram:1", "signal:2"]')
    assert told() == [True, True]
    assert told(MEMLOG_CONTEXT_PEOPLE='{"anna": ["signal:2"]}') == [False, True]
    assert memlog("config", "context.people").out == b'{"anna":["telegram:1","signal:2"]}\n'
    assert memlog("config", "context.messengers").out.startswith(b"telegram, whatsapp, ")


def test_a_relative_folder_of_prompts_starts_at_its_file(memlog: Run, settings_file: Run) -> None:
    path = settings_file('[extraction]\nprompts_dir = "prompts"')
    (path.parent / "prompts").mkdir()
    (path.parent / "prompts/merge-2.md").write_text("Merge only tea.\n")
    assert b"Merge only tea." in memlog("prompts", "show", "merge-2").out


def test_an_edited_prompt_is_the_stores_own(memlog: Run, settings_file: Run) -> None:
    path = settings_file('# mine\n[extraction]\nchannels = ["codex"]\n')
    edited = memlog("prompts", "edit", "merge-2").json
    file = path.parent / "prompts/merge-2.md"
    assert edited == {"file": str(file), "prompt": memlog("prompts", "show", "merge-2", "--json").json["id"]}
    assert path.read_text() == '# mine\n[extraction]\nchannels = ["codex"]\nprompts_dir = "prompts"\n'
    file.write_text("Merge only tea.\n")
    assert memlog("prompts", "edit", "merge-2").json != edited
    assert file.read_text() == "Merge only tea.\n"
    assert memlog("prompts", "edit", "merge").code == 2


def test_durability_acts_on_an_append(memlog: Run, settings_file: Run) -> None:
    settings_file('durability = "os"')
    for args, expected in (((), "os"), (("--durability", "fsync"), "fsync")):
        assert memlog(*SAID, "tea", *args).json["durability"] == expected
        (answer,) = memlog("append", *args, input=b'{"type":"memory_saved","content":"tea"}').lines
        assert answer["durability"] == expected
    assert memlog("core", "set", "user", "name", "Ann").json["durability"] == "os"


def test_durability_before_the_type_is_overridden_by_that_behind_it(memlog: Run) -> None:
    before = memlog("append", "--durability", "os", *SAID[1:], "tea")
    assert before.json["durability"] == "os"
    both = memlog("append", "--durability", "os", *SAID[1:], "tea", "--durability", "fsync")
    assert both.json["durability"] == "fsync"


def test_other_chunk_sizes_make_another_read_model_and_status_says_so(
    memlog: Run, settings_file: Run
) -> None:
    memlog(*SAID, "One sentence about tea. " * 100)
    memlog("project", "--no-embed")
    before = memlog("status", "--json").json
    settings_file("chunk_tokens = 64\nchunk_overlap = 0")
    done = memlog("status", "--json")
    assert b"built with other chunk sizes" in done.err
    assert done.json["projection_id"] != before["projection_id"]
    assert done.json["generation"] != before["generation"]
    assert done.json["vectors_pending"] > before["vectors_pending"]
    again = memlog("status", "--json")
    assert (again.err, again.json["generation"]) == (b"", done.json["generation"])


# What is refused


UNUSABLE: list[tuple[str | bytes, str, str]] = [
    ("search_limits = 5", "there is no setting 'search_limits'", "search_limit"),
    ("chunk_tokn = 5", "there is no setting 'chunk_tokn'", "chunk_tokens"),
    ("[search]\nlimit = 5", "there is no setting 'search.limit'", "search_limit"),
    ('store = "x"', "'store' cannot be set here", "MEMLOG_STORE"),
    ('project = "x"', "'project' cannot be set here", "MEMLOG_PROJECT"),
    ('search_limit = "5"', "search_limit: '5' is not a whole number", "hits"),
    ("search_limit = true", "search_limit: True is not a whole number", "hits"),
    ("search_limit = 5.0", "search_limit: 5.0 is not a whole number", "hits"),
    ("search_limit = 0", "search_limit: 0 is not a whole number from 1 to 1000", "hits"),
    ("search_limit = [1]", "search_limit: [1] is not a whole number", "hits"),
    ("search_mode = 1", "search_mode: 1 is not one of 'hybrid', 'text', 'vector'", "words"),
    ('search_mode = "magic"', "search_mode: 'magic' is not one of 'hybrid', 'text', 'vector'", "words"),
    ("model = 2026-02-24", "is not a folder in quotes", "model.onnx"),
    ("lock_timeout = -1", "lock_timeout: -1 is not a number from 0 to 3600", "wait"),
    ("lock_timeout = inf", "lock_timeout: inf is not a number from 0 to 3600", "wait"),
    ("lock_timeout = nan", "lock_timeout: nan is not a number from 0 to 3600", "wait"),
    ('lock_timeout = "1"', "lock_timeout: '1' is not a number", "wait"),
    ("chunk_tokens = 511", "chunk_tokens: 511 is not a whole number from 64 to 510", "size"),
    ('[context]\nmessengers = "telegram"', "context.messengers: 'telegram' is not a list", "anybody"),
    ('[context]\nmessengers = [""]', "context.messengers: [''] is not a list", "anybody"),
    ('[context]\nmessengers = ["telegram:1"]', "['telegram:1'] is not a list of channels", "anybody"),
    ('[context]\npeople = ["x:1"]', "context.people: ['x:1'] is not a table", "anna = ["),
    ('[context.people]\nanna = "x:1"', "context.people: {'anna': 'x:1'} is not a table", "anna = ["),
    ('[context.people]\nanna = ["x"]', "context.people: chat is 'x'", "anna = ["),
    ('[context.people]\na = ["x:1"]\nb = ["x:1"]', "context.people: x:1 belongs to a and b", "anna = ["),
    ("[decay]\nrates = 0.5", "decay.rates: 0.5 is not a table of numbers", "context = 0.8"),
    ("[decay.rates]\ncontex = 0.5", "decay.rates: category is 'contex', not one of", "context = 0.8"),
    ("[decay.rates]\ncontext = 1.5", "decay.rates: the rate of context is 1.5", "context = 0.8"),
    ("[language_model]\ntemperature = 3", "temperature: 3 is not a number, or none", "from 0 to 2"),
    ("search_limit = 1\nsearch_limit = 2\n", "(at line 2", "toml.io"),
    ("\nsearch_limit = \n", "(at line 2", "toml.io"),
    (b'search_mode = "text"\nmodel = "\xff"', "not UTF-8 (at line 2)", "UTF-8"),
    ("x = " + "[" * 100_000, "", ""),
    ("x = " + "1" * 10_000, "", ""),
]


def test_a_settings_file_that_cannot_be_used_is_refused_with_its_place(
    memlog_here: Run, settings_file: Run
) -> None:
    for text, said, hinted in UNUSABLE:
        path = settings_file(text)
        done = memlog_here("config", "--json")
        assert (done.code, done.error["code"]) == (65, "bad_input"), text[:80]
        assert done.error["message"].startswith(f"{path}: "), text[:80]
        assert said in done.error["message"], text[:80]
        assert hinted in done.error["hint"], text[:80]
        assert done.error["hint"], text[:80]


def test_every_command_refuses_it_before_it_does_anything(
    memlog: Run, settings_file: Run, store: Path
) -> None:
    settings_file("nonsense = 1")
    for args in ((*SAID, "tea"), ("query", "tea"), ("status",), ("project",), ("verify",)):
        assert memlog(*args).code == 65, args
        assert [path.name for path in store.iterdir()] == ["memlog.toml"], args


def test_help_needs_no_settings(memlog: Run, settings_file: Run) -> None:
    settings_file("nonsense = 1")
    assert memlog("query", "--help").code == 0


def test_a_settings_file_that_is_no_file_is_refused(memlog: Run, store: Path) -> None:
    (store / "memlog.toml").mkdir(parents=True)
    assert (memlog("config").code, memlog(*SAID, "tea").code) == (65, 65)


def test_an_overlap_as_large_as_the_passage_is_refused(memlog: Run) -> None:
    env = {"MEMLOG_CHUNK_TOKENS": "100", "MEMLOG_CHUNK_OVERLAP": "100"}
    done = memlog("query", "tea", "--json", env=env)
    assert (done.code, done.error["code"]) == (65, "bad_input")
    assert done.error["message"] == "passages of 100 tokens cannot overlap by 100"


def test_a_variable_that_cannot_be_used_is_refused_by_its_name(memlog_here: Run) -> None:
    for variable, value in (
        ("MEMLOG_SEARCH_LIMIT", "many"),
        ("MEMLOG_SEARCH_LIMIT", "0"),
        ("MEMLOG_SEARCH_MODE", "magic"),
        ("MEMLOG_LOCK_TIMEOUT", "nan"),
        ("MEMLOG_CHUNK_TOKENS", "1e9"),
        ("MEMLOG_DURABILITY", "none"),
    ):
        done = memlog_here("config", "--json", env={variable: value})
        assert (done.code, done.error["code"]) == (65, "bad_input"), variable
        assert done.error["message"].startswith(f"{variable}: "), variable
        assert value in done.error["message"], variable


def test_a_variable_says_yes_and_no_in_every_usual_way(memlog_here: Run) -> None:
    for text, value in {"yes": True, "1": True, "false": False, "Off": False}.items():
        found = _origin(memlog_here, name="redact", env={"MEMLOG_REDACT": text})
        assert found == (value, "environment"), text


def test_a_variable_that_is_almost_a_setting_is_told_and_does_nothing(memlog: Run) -> None:
    done = memlog("config", "search_limit", env={"MEMLOG_SEARCH_LIMITS": "3"})
    assert (done.code, done.out) == (0, b"10\n")
    assert done.err == b"memlog: MEMLOG_SEARCH_LIMITS is not a setting; did you mean MEMLOG_SEARCH_LIMIT?\n"


def test_other_variables_are_left_alone(memlog: Run) -> None:
    others = ("MEMLOG_DEBUG", "MEMLOG_EVAL_DATA", "MEMLOG_AGENT_NAME", "MEMLOG_")
    assert memlog("config", env=dict.fromkeys(others, "1")).err == b""


# Start-up


def _modules_of_an_append(environment: dict[str, str]) -> set[str]:
    code = (
        "import sys; sys.argv = ['memlog', 'append', 'session_break', '--chat', 'x:1']\n"
        "import memlog.cli.process.main\n"
        "try: memlog.cli.process.main.main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_an_append_imports_a_toml_parser_only_where_there_is_a_file_for_it(
    environment: dict[str, str], settings_file: Run
) -> None:
    without = _modules_of_an_append(environment)
    assert "memlog.cli.options.settings" in without
    assert not {"tomllib", "platformdirs"} & without
    settings_file('durability = "os"')
    assert "tomllib" in _modules_of_an_append(environment)


def test_the_meanings_are_sentences() -> None:
    for setting in all_settings():
        assert re.fullmatch(r"[A-Z].*\.", setting.meaning), setting.name


# What a setting can change


def _another_value(setting: Any, folder: Path) -> str:
    """One that is not the default."""
    if isinstance(setting.type, click.Choice):
        return next(str(choice) for choice in setting.type.choices if choice != setting.default)
    if setting.name.endswith(("base_url", "proxy")):
        return "http://127.0.0.1:9"
    if setting.name == "retrieval.mode":
        return "classic"
    if setting.name == "timezone":
        return "Asia/Tokyo"
    if setting.name.startswith("jobs."):
        return "off"
    if isinstance(setting.default, bool):
        return str(not setting.default).lower()
    if isinstance(setting.type, click.IntRange | click.FloatRange):
        return str(setting.type.max)
    if setting.name.endswith("temperature"):
        return "1"
    if setting.name == "extraction.channels":
        return "chatdo"
    if setting.name == "decay.rates":
        return '{"context": 0.5}'
    if setting.name.startswith("context."):
        return '{"anna": ["x:1"]}' if setting.name == "context.people" else "telegram"
    if setting.default is None or isinstance(setting.default, str):
        return str(folder)
    return str(type(setting.default)(setting.default + 1))


def test_all_settings_but_the_chunk_sizes_act_on_the_call_alone(memlog: Run, tmp_path: Path) -> None:
    memlog(*SAID, "tea")
    memlog("project", "--no-embed")
    before, rows = memlog("status", "--json").json, memlog("digest", "--json").json
    # A setting of the server would start one.
    apart = "chunk_", "serve."
    others = [each for each in all_settings() if each.may_be_in_file and not each.name.startswith(apart)]
    env = {each.variable: _another_value(each, tmp_path) for each in others}
    after = memlog("status", "--json", env=env)
    assert after.code == 0, after.err
    for name in ("projection_id", "generation"):
        assert after.json[name] == before[name]
    assert memlog("digest", "--json", env=env).json == rows
