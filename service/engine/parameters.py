"""Parameters that some providers refuse, and the forms in which they are sent instead.

Servers of one protocol know different parameters, and refuse others by a status of 400 that names them. What
was refused is replaced or left out, sent again, and remembered of the provider and the model.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from memlog.eventlog.errors import ProviderError
from memlog.service.engine.http_client import Breaker

T = TypeVar("T")
Body = dict[str, Any]

LEFT_OUT = "none"
"""The form of a parameter that is not sent."""

_REFUSES_A_PARAMETER = (None, 400, 404, 422, 500, 501)
"""Statuses; None of an error in an answer of HTTP 200. llama.cpp and Ollama say so with 500, too; with 404
OpenRouter, which then has no server that knows the parameter."""

_QUOTED = 24
"""Letters and digits of a text that a refusal repeats if it quotes the request."""


class _Parameter(NamedTuple):
    """A parameter.

    named: how a refusal names it. forms: what is sent, the next one where one is refused. put: gives it in
    another form to a body that has the first one. unless: words of a refusal that is not of the parameter.
    """

    named: str
    forms: tuple[str, ...]
    put: Callable[[Body, str], None]
    unless: str = r"\Z.\A"


def _rename(body: Body, form: str) -> None:
    most = body.pop("max_tokens")
    if form != LEFT_OUT:
        body[form] = most


def _ask_for(body: Body, form: str) -> None:
    if form == LEFT_OUT:
        del body["response_format"]
    elif form != "json_schema":
        body["response_format"] = {"type": form}


def _put_system(body: Body, form: str) -> None:
    system, user = body["messages"]
    if form == "user":
        body["messages"] = [user | {"content": f"{system['content']}\n\n{user['content']}"}]
    else:
        body["messages"] = [system | {"role": form}, user]


def _leave_out(name: str) -> Callable[[Body, str], None]:
    def put(body: Body, form: str) -> None:
        if form == LEFT_OUT:
            body.pop(name, None)

    return put


_PARAMETERS = {
    "max_tokens": _Parameter(
        r"max_(?:completion_|output_|new_)?tokens",
        ("max_tokens", "max_completion_tokens", LEFT_OUT),
        _rename,
        # The messages are too long for the model.
        unless=r"^(?!.*max_\w*tokens\W.{0,60}(?:too large|not support|unsupported|unknown|unrecogni))"
        r".*(?:context|at least|input tokens|prompt)",
    ),
    "temperature": _Parameter("temperature", ("sent", LEFT_OUT), _leave_out("temperature")),
    "response_format": _Parameter(
        r"response.?(?:format|schema|mime)|json.?(?:schema|object|mode)|structured.?output|grammar"
        r"|guided.?(?:decoding|json)|schema produces",
        ("json_schema", "json_object", LEFT_OUT),
        _ask_for,
    ),
    "output_config": _Parameter(
        r"output.?(?:config|format)|json.?schema|structured.?output",
        ("json_schema", LEFT_OUT),
        _leave_out("output_config"),
    ),
    "system_role": _Parameter(
        r"(?:system|developer).{0,3} (?:role|message|prompt|instruction)|messages?\W{1,3}\d+\W{1,3}role"
        r"|roles?\W.{0,30}(?:system|developer)|(?:unsupported|invalid|unknown) (?:message )?role"
        r"|variant \W?(?:system|developer)"
        r"|only user.{1,8}(?:assistant|model) roles|roles must alternate",
        ("developer", "system", "user"),
        _put_system,
    ),
    "encoding_format": _Parameter(r"encoding.?format", ("float", LEFT_OUT), _leave_out("encoding_format")),
}


def send_in_known_forms(
    breaker: Breaker, body: Body, chosen: Mapping[str, str], send: Callable[[Body], T]
) -> T:
    """Send a body with its parameters in the forms that the provider takes, and return the answer.

    body: has each parameter in its first form. chosen: the parameters that it may have, and the forms to
    begin with; what the provider refused before is not tried again.

    Raises:
        ProviderError: as `send` does, for another reason than a parameter.
    """
    known = breaker.record().forms
    forms = {name: _later(name, form, known.get(name, form)) for name, form in chosen.items()}
    begun = dict(forms)
    while True:
        try:
            answer = send(_shaped(body, forms))
        except ProviderError as error:
            following = {name: _next(name, forms[name]) for name in _refused(error, body, chosen)}
            changed = {name: form for name, form in following.items() if form is not None}
            if not changed:
                raise
            forms |= changed
        else:
            if forms != begun:
                breaker.learn(forms)
            return answer


def _shaped(body: Body, forms: Mapping[str, str]) -> Body:
    shaped = dict(body)
    for name, form in forms.items():
        _PARAMETERS[name].put(shaped, form)
    return shaped


def _later(name: str, chosen: str, known: str) -> str:
    forms = _PARAMETERS[name].forms
    return max(chosen, known, key=lambda form: forms.index(form) if form in forms else -1)


def _next(name: str, form: str) -> str | None:
    forms = _PARAMETERS[name].forms
    return next(iter(forms[forms.index(form) + 1 :]), None)


def _refused(error: ProviderError, body: Body, names: Iterable[str]) -> set[str]:
    if error.status not in _REFUSES_A_PARAMETER or not error.words:
        return set()
    named = _matching(_told(error.words), error.words, names)
    return named or (set() if _quotes(error.words, body) else _matching(error.words, error.words, names))


def _matching(told: str, words: str, names: Iterable[str]) -> set[str]:
    parameters = {name: _PARAMETERS[name] for name in names}
    return {
        name
        for name, each in parameters.items()
        if re.search(each.named, told, re.IGNORECASE | re.DOTALL)
        and not re.search(each.unless, words, re.IGNORECASE | re.DOTALL)
    }


def _told(words: str) -> str:
    """Return the members of a refusal that name a parameter: `param` of OpenAI, `loc` of FastAPI."""
    told: list[str] = []
    with suppress(ValueError, RecursionError):
        answer = json.loads(words)
        error = answer.get("error") if isinstance(answer, dict) else None
        if isinstance(error, dict) and isinstance(error.get("param"), str):
            told.append(error["param"])
        waiting = [answer]
        while waiting:  # at any depth: Mistral has them in a message
            value = waiting.pop()
            if isinstance(value, dict) and isinstance(value.get("loc"), list):
                told.append(".".join(map(str, value["loc"])))
            elif isinstance(value, dict | list):
                waiting += value.values() if isinstance(value, dict) else value
    return " ".join(told)


def _quotes(words: str, body: Body) -> bool:
    """Whether a refusal repeats the request, and so names all that is in it."""
    texts = [each["content"] for each in body.get("messages", ())]
    texts += body.get("input", ()) or ()
    letters = _letters(words)
    return any(
        len(text) >= _QUOTED and text in letters for text in (_letters(each)[:_QUOTED] for each in texts)
    )


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text)
