"""Requests for the core memory: `store.core`."""

from typing import Annotated, Literal

from msgspec import Meta

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import BadInput
from memlog.query.request import PathField, Request
from memlog.service.requests.scope import ScopeField

Section = Literal["user", "agent"]
SectionField = Annotated[Section, "Of the user, or of the agent."]
Key = Annotated[str, "The key."]


class GetCoreMemory(Request, frozen=True):
    """Show the core memory, one section of it (user or agent), or the value of one key.

    While several people talk to the agent, the profile of each is of their chats alone.

    Raises:
        BadInput: a key is named without a section, or the conversation has another form.
    """

    section: SectionField | None = None
    key: Key | None = None
    chat: Annotated[
        ScopeField | None, "What contexts of this conversation show, with the profile of its person."
    ] = None

    def __post_init__(self) -> None:
        """Refuse a key of no section, and what names no conversation."""
        super().__post_init__()
        if self.chat is not None:
            Chat.of(self.chat)
        if self.key is not None and self.section is None:
            raise BadInput("a key is named without a section", hint="section is user or agent")


class SetCoreValue(Request, frozen=True):
    """Set a key of a section, user or agent.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """

    section: SectionField
    key: Key
    value: Annotated[str, "The value."]


class DeleteCoreValue(Request, frozen=True):
    """Remove a key of a section, user or agent.

    Raises:
        BadInput, Busy, LogError: as `Store.append`.
    """

    section: SectionField
    key: Key


class ImportCoreMemory(Request, frozen=True):
    """Append what a file has and the core memory lacks.

    A Markdown or text file, such as USER.md, has lines `key: value`, and lists under headings; keys that are
    set already keep their values, unless `force`. All values of a JSON file in the shape of
    model/core_memory.json are set. Of that file itself, changed by hand, changed values are set, and removed
    keys are deleted; then it is written anew.

    Raises:
        BadInput: the file cannot be read, or has another shape; nothing was appended.
        Busy, LogError: as `Store.append`. It is safe to try again.
    """

    path: Annotated[PathField, Meta(title="FILE"), "The file."]
    force: Annotated[bool, "The values of a Markdown file replace those that are set."] = False
