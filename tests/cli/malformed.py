"""Invocations that are malformed by construction, made at random over the real commands and options."""

import random
import string
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from memlog.cli.options.param_types import CHAT, DAY, JSON_OBJECT, PROJECT, TEXT, TIME
from tests.support.command_tree import Path
from tests.support.sample_calls import CALLED, words_of


class Malformed(NamedTuple):
    """A command line that cannot be right, and why."""

    fault: str
    args: list[str]
    stdin: bytes = b""


ODD = [
    *("nonsense", "", " ", "-", "=", "'", '"', "*", "NEAR(", "../../etc", "/dev/null", "😀", "喝茶"),
    *("\x1b[31m", "\x07", "\x7f", "\x9b", "\u202e", "\u2066", "\ufeff", "\u2028", "a\nb", "a\r\nb", "a\tb"),
    *("caf\udce9", "\udcff\udcfe", "'; DROP TABLE events", "%s%n", "{}", "x" * 20_000, "\u0301" * 100),
]
NOT_UTF8 = ["caf\udce9", "\udcff", "x\udc80y"]

_BAD: dict[Any, list[str]] = {
    CHAT: ["telegram", ":", "x:", ":1", "", *NOT_UTF8],
    TIME: ["yesterday", "", "2026-02-30", "2026-13-01", "2026-02-24T25:00:00Z", "1e9", "24", *NOT_UTF8],
    DAY: [
        "yesterday",
        "",
        "2026-02-30",
        "2026-2-3",
        "20260224",
        "2026-02-24T10:15:00Z",
        "٢٠٢٦-٠٢-٢٤",
        *NOT_UTF8,
    ],
    JSON_OBJECT: ["[]", "5", "{", "", "nul", '"x"', "[" * 5000, '{"a":NaN}', '{"a":1e999}', *NOT_UTF8],
    PROJECT: [".", "..", "...", "", "x" * 256, *NOT_UTF8],
    TEXT: NOT_UTF8,
}
NO_NUMBERS = ["many", "", "0x10", "1,5", "--", "NaN", "nan", "infinity", "9" * 30, "9" * 5000, *NOT_UTF8]


def malformed(seed: int, count: int) -> list[Malformed]:
    """`count` of them, the same for the same seed. All faults are as likely."""
    chance = random.Random(seed)
    return [_with_fault(chance, chance.choice(FAULTS)) for _ in range(count)]


def _with_fault(chance: random.Random, fault: Callable[..., Malformed | None]) -> Malformed:
    while True:
        path = chance.choice([*CALLED])
        made = fault(chance, path, CALLED[path])
        if made is not None:
            return made


# Well-formed beginnings


def _value(parameter: click.Parameter) -> str:
    *_, value = words_of(parameter)
    return value


def _options(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option)]


def _well_formed(
    chance: random.Random, path: Path, command: click.Command, without: click.Parameter | None = None
) -> list[str]:
    """A call of the command with all that it requires, but `without`; `--json` in half of them."""
    args = list(path)
    if chance.random() < 0.5 and any("--json" in option.opts for option in _options(command)):
        args.append("--json")
    for option in _options(command):
        if option.required and option is not without:
            args += [chance.choice(option.opts), _value(option)]
    for argument in command.params:
        if isinstance(argument, click.Argument) and argument.required and argument is not without:
            args.append(_value(argument))
    return args


# Faults


def _unknown_option(chance: random.Random, path: Path, command: click.Command) -> Malformed:
    odd = chance.choice([word for word in ODD if word and not word.startswith("=")])
    letters = "".join(chance.choices(string.ascii_lowercase, k=12))
    option = chance.choice([f"--{odd}", f"--{letters}", f"--{letters}={odd}", "-Z", "-é"])
    place = chance.choice([len(path), 0])
    args = _well_formed(chance, path, command)
    return Malformed("unknown option", [*args[:place], option, *args[place:]])


def _unknown_command(chance: random.Random, path: Path, command: click.Command) -> Malformed:
    word = chance.choice([word for word in ODD if not word.startswith("-")])
    return Malformed("unknown command", [*path[:-1], word, chance.choice(["--json", "--jsonl", "x"])])


def _missing(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    required = [parameter for parameter in command.params if parameter.required]
    if not required:
        return None
    # An argument that is left out is the last: another would take the place of the one before.
    arguments = [each for each in required if isinstance(each, click.Argument)][-1:]
    without = chance.choice([*arguments, *(each for each in required if isinstance(each, click.Option))])
    return Malformed("missing", _well_formed(chance, path, command, without))


def _missing_value(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    taking = [name for option in _options(command) if not option.is_flag for name in option.opts]
    if not taking:
        return None
    return Malformed("missing value", [*_well_formed(chance, path, command), chance.choice(taking)])


def _bad(chance: random.Random, parameter: click.Parameter) -> str | None:
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return chance.choice([word for word in ODD if word not in kind.choices])
    if isinstance(kind, click.types._NumberRangeBase):
        outside = [str(kind.min - 1)] if kind.min is not None else []
        outside += [str(kind.max + 1)] if kind.max is not None else []
        return chance.choice([*outside, *NO_NUMBERS])
    return chance.choice(_BAD[kind]) if kind in _BAD else None


def _bad_option(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    option = chance.choice([each for each in _options(command) if not each.is_flag] or [None])  # type: ignore[list-item]
    value = None if option is None else _bad(chance, option)
    if value is None:
        return None
    name = chance.choice(option.opts)
    given = [f"{name}={value}"] if name.startswith("--") and chance.random() < 0.5 else [name, value]
    args = _well_formed(chance, path, command, without=option)
    return Malformed("bad value of an option", [*args[: len(path)], *given, *args[len(path) :]])


def _bad_argument(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    if not arguments:
        return None
    wrong = chance.randrange(len(arguments))
    values = [_value(argument) for argument in arguments[:wrong]]
    bad = _bad(chance, arguments[wrong])
    rest = [_value(argument) for argument in arguments[wrong + 1 :]]
    return None if bad is None else Malformed("bad argument", [*path, "--json", "--", *values, bad, *rest])


def _value_of_a_flag(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    flags = [
        name for option in _options(command) if option.is_flag for name in option.opts if name[:2] == "--"
    ]
    if not flags:
        return None
    flag = chance.choice(flags)
    return Malformed(
        "a flag with a value", [*_well_formed(chance, path, command), f"{flag}={chance.choice(ODD)}"]
    )


def _surplus(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    if any(argument.nargs != 1 for argument in arguments):
        return None
    values = [_value(argument) for argument in arguments]
    options = [arg for arg in _well_formed(chance, path, command)[len(path) :] if arg not in values]
    if any(option.required for option in _options(command)):
        options = []  # its required options are missing as well
    options = [arg for arg in options if arg == "--json"]
    return Malformed(
        "surplus", [*path, *options, *values, chance.choice([odd for odd in ODD if odd[:1] != "-"])]
    )


def _contradiction(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    names = {name for option in _options(command) for name in option.opts}
    formats = [["--json", "--jsonl"], ["--format", "md", "--json"], ["--jsonl", "--format=table"]]
    pairs = [
        *(formats if "--format" in names else []),
        *([["--raw", "--positions"]] if {"--raw", "--positions"} <= names else []),
        *(
            [["--chat", "x:1", "--stream", "memory"]]
            if {"log", "--chat", "--stream"} <= {*names, *path}
            else []
        ),
    ]
    if not pairs:
        return None
    args = [arg for arg in _well_formed(chance, path, command) if arg != "--json"]
    return Malformed("contradiction", [*args, *chance.choice(pairs)])


def _no_event(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    if path[:1] != ("append",) or len(path) == 1:
        return None
    bad_ids = ["", "a\nb", "\x01", "\x7f", "x" * 513, "x" * 100_000]
    bad_times = ["yesterday", "", "2026-02-30T00:00:00Z", "2026-02-24", "2026-02-24T10:15:00", "0"]
    args = _well_formed(chance, path, command)
    if path[1] == "redacted":
        args += ["--stream", "memory"]  # else it looks for its target first, and finds none
    return chance.choice(
        [
            Malformed("bad id", [*args, "--id", chance.choice(bad_ids)]),
            Malformed("bad time", [*args, "--ts", chance.choice(bad_times)]),
        ]
    )


def _odd_stdin(chance: random.Random, path: Path, command: click.Command) -> Malformed | None:
    if path[:1] != ("append",) or not any("--content" in option.opts for option in _options(command)):
        return None
    odd = chance.choice([b"caf\xe9", b"\xff\xfe", b"\xed\xa0\x80", b"x" * 1000 + b"\xc3"])
    return Malformed("odd stdin", [*_well_formed(chance, path, command), "--content", "-"], odd)


def _no_question(chance: random.Random, path: Path, command: click.Command) -> Malformed:
    # Whichever command was drawn: of so many, `query` itself comes up too seldom.
    return Malformed("no question", ["query", chance.choice(["", " ", "\t\n", "\u3000"])])


def _bad_before_the_command(chance: random.Random, path: Path, command: click.Command) -> Malformed:
    wrong = [
        *(["--project", odd] for odd in _BAD[PROJECT]),
        *(["--model"], ["--store"]),
        *([f"--{odd}"] for odd in ODD if odd not in ("", "-", "=")),
    ]
    before = chance.choice(wrong)
    after = (
        _well_formed(chance, path, command)
        if len(before) > 1 or before[0] not in ("--model", "--store")
        else []
    )
    return Malformed("bad before the command", [*before, *after])


FAULTS: list[Callable[[random.Random, Path, click.Command], Malformed | None]] = [
    _unknown_option,
    _unknown_command,
    _missing,
    _missing_value,
    _bad_option,
    _bad_argument,
    _value_of_a_flag,
    _surplus,
    _contradiction,
    _no_event,
    _odd_stdin,
    _no_question,
    _bad_before_the_command,
]
