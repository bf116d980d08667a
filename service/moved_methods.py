"""Methods of `Store` under their names of the release before, when they were not in groups."""

import warnings
from collections.abc import Callable
from typing import Any

from memlog.eventlog.chat import ChatName

_GROUPS = {
    "conversations": "window session_content sessions summaries",
    "erasure": "forget scrub prove secrets",
    "maintenance": "project embed watch verify examine digest status stats quarantine explain",
}
MOVED = {name: group for group, names in _GROUPS.items() for name in names.split()}
"""The group of each method, by its name."""


def moved_method(store: object, name: str) -> Any:  # noqa: ANN401 - an attribute can be anything
    """The method of a group, with a DeprecationWarning for the caller of `store.<name>`.

    Raises:
        AttributeError: no method had this name.
    """
    if name not in MOVED:
        raise AttributeError(f"{type(store).__name__!r} object has no attribute {name!r}")
    now = f"Store.{MOVED[name]}.{name}"
    takes_two_texts = name in ("window", "session_content")
    how = ", and takes one chat, such as 'telegram:7'" if takes_two_texts else ""
    warnings.warn(f"Store.{name} is {now} now{how}", DeprecationWarning, stacklevel=3)
    method = getattr(getattr(store, MOVED[name]), name)
    return _with_two_texts(method) if takes_two_texts else method


def _with_two_texts(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method as it was: a chat may be given as its channel and its id."""

    def call(*chat: ChatName, channel: str = "", chat_id: str = "", **given: Any) -> Any:  # noqa: ANN401
        parts = [*chat, *filter(None, (channel, chat_id))]
        return method(*([tuple(parts)] if len(parts) == 2 else parts), **given)

    return call
