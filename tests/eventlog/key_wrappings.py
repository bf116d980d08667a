"""What stands around a key in a log: other programs quote, colour and encode what they print."""

import json
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
