"""The bodies of requests: bounded in size and time."""

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request as Call

from memlog.service.http.problems import Refused

_BODY = 1024 * 1024
_SECONDS = 30


async def object_of(call: Call) -> dict[str, Any]:
    """The fields in a body.

    Raises:
        Refused: it is no object of JSON.
    """
    data = await body_of(call, _BODY, ("application/json",))
    given = decoded(data) if data else {}
    if not isinstance(given, dict):
        raise Refused(422, "bad_request", "the body is no object", "send the fields of the request")
    return given


def decoded(data: bytes) -> Any:  # noqa: ANN401
    """The value of a JSON text.

    Raises:
        Refused: it is no JSON.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(422, "bad_request", f"the body is no JSON: {error}", "send JSON in UTF-8") from error


async def body_of(call: Call, most: int, types: tuple[str, ...]) -> bytes:
    """The bytes of a body.

    Raises:
        Refused: it is of another type, longer than `most`, or does not come in time.
    """
    given = call.headers.get("content-length", "")
    if given.isdecimal() and int(given) > most:
        raise Refused(413, "too_large", f"the body has more than {most:,} bytes", connection="close")
    data = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for part in call.stream():
                data += part
                if len(data) > most:
                    raise Refused(
                        413, "too_large", f"the body has more than {most:,} bytes", connection="close"
                    )
    except TimeoutError:
        raise Refused(408, "timeout", "the body did not come in time", connection="close") from None
    if data and type_of(call) not in types:
        raise Refused(415, "bad_type", f"the body is not {' or '.join(types)}", "name its content-type")
    return bytes(data)


def type_of(call: Call) -> str:
    """The media type of a body."""
    return call.headers.get("content-type", "").partition(";")[0].strip().lower()
