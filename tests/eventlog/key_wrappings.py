"""What stands around a key in a log: other programs quote, colour and encode what they print."""

import json
import re
from collections.abc import Callable
from html import escape
from urllib.parse import quote

Wrapping = Callable[[str], str]


def _repr(text: str) -> str:
    return repr({"env": text})


WRAPPINGS: dict[str, Wrapping] = {
    "plain": lambda text: f"use {text} now",
    "assigned": lambda text: f"KEY={text}\n",
    "quoted": lambda text: f'"{text}"',
    "markdown": lambda text: f"`{text}` and\n```\n{text}\n```",
    "bold": lambda text: f"**{text}**",
    "prefix MY_": lambda text: f"MY_{text}",
    "prefix X_": lambda text: f" X_{text} ",
    "JSON after a newline": lambda text: json.dumps({"out": f"key\n{text}\n"}),
    "JSON after a tab": lambda text: json.dumps({"out": f"key\t{text}\t"}),
    "JSON in JSON": lambda text: json.dumps({"a": json.dumps({"b": f"key\n{text}\nend"})}),
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps({"a": json.dumps({"b": f"\t{text}\r\n"})})),
    "JSON in a log of repr": lambda text: json.dumps(
        {"log": _repr(json.dumps(json.dumps({"b": f"x\n{text}"})))}
    ),
    "repr": lambda text: _repr(f"key\n{text}\n"),
    "repr of repr": lambda text: _repr(_repr(f"key\t{text}\n")),
    "colour": lambda text: f"\x1b[31m{text}\x1b[0m",
    "colour in JSON": lambda text: json.dumps({"out": f"\x1b[1;31m{text}\x1b[m"}),
    "colour in JSON in JSON": lambda text: json.dumps(json.dumps({"out": f"\x1b[38;5;1m{text}\x1b[m"})),
    "colour in repr": lambda text: _repr(f"\x1b[31m{text}\x1b[0m"),
    "colour in octal": lambda text: f"\\033[31m{text}\\033[0m",
    "colour as grep writes it": lambda text: (
        f"\x1b[35mfile\x1b[m\x1b[36m:\x1b[m\x1b[01;31m\x1b[K{text}\x1b(B\x1b[m"
    ),
    "HTML": lambda text: f"<td>{escape(json.dumps({'out': text}))}</td>",
    "quoted-printable": lambda text: f"k=3D{text}",
    "URL": lambda text: f"https://example.com/?next={quote('/a?k=' + text, safe='')}",
    "URL twice": lambda text: quote(quote(f"k={text}&x=1", safe=""), safe=""),
}

SPLITTING: dict[str, Wrapping] = {
    "italic": lambda text: f"_{text}_ and __{text}__",
    "escaped in Markdown": lambda text: re.sub(r"([_*\-.#+~=|:/!\[\]])", r"\\\1", text),
    "invisible characters within": lambda text: text.replace(
        text[5:], f"\u2063{text[5:9]}\ufe0f\u200e{text[9:]}"
    ),
    "a line broken in mail": lambda text: f"{text[:7]}=\n{text[7:20]}=\r\n{text[20:]}",
    "a line broken in mail, in JSON": lambda text: json.dumps(
        {"body": f"{text[:7]}=\r\n{text[7:20]}=\n{text[20:]}"}
    ),
}
"""Texts that split a key, or that join it as if they were a part of it."""

LISTS: dict[str, Wrapping] = {
    "JSON": lambda text: json.dumps({"key": text.split("\n")}),
    "indented JSON": lambda text: json.dumps({"key": text.split("\n")}, indent=2),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text.split("\n"))),
    "repr": lambda text: repr(text.split("\n")),
    "a list in Markdown": lambda text: "\n".join(f"- {line}" for line in text.split("\n")),
    "a numbered list": lambda text: "\n".join(f"{n}. {line}" for n, line in enumerate(text.split("\n"))),
    "code in a list": lambda text: "\n".join(f"* `{line}`" for line in text.split("\n")),
    "a table": lambda text: "\n".join(f"| {n} | {line} |" for n, line in enumerate(text.split("\n"))),
    "HTML": lambda text: "<ul>" + "".join(f"<li>{line}</li>" for line in text.split("\n")) + "</ul>",
    "breaks in HTML": lambda text: "<br/>\n".join(text.split("\n")),
    "objects": lambda text: json.dumps([{"line": line} for line in text.split("\n")]),
    "YAML": lambda text: "key:\n" + "".join(f'  - "{line}"\n' for line in text.split("\n")),
}
"""A block of lines, as a list of lines."""
