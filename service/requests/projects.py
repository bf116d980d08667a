"""Requests for projects: `Projects`."""

from typing import Annotated

from memlog.eventlog.limits import LOCK_TIMEOUT
from memlog.query.request import Request
from memlog.service.requests.scope import Tried


class ListProjects(Request, frozen=True):
    """List the projects by name, with size and last append.

    The size is that of the log; no read model is opened. What a removal that was killed has left is listed,
    too.

    Raises:
        LogError: a folder cannot be read.
    """


class _OfProject(Request, frozen=True):
    name: Annotated[str, "The project."]


class GetProject(_OfProject, frozen=True):
    """Show a project.

    Raises:
        BadInput: it is no name. LogError: its folder cannot be read.
    """


class RemoveProject(Tried, frozen=True):
    """Remove a project and its store for ever.

    Everything in the store's folder is deleted: log, read model, cache, settings. Only an earlier copy brings
    it back. The folder is renamed at once, then emptied: killed at any moment, the whole store remains, or
    the list shows what is left, and the next removal finishes it. Who has the store open goes on with an
    empty one. A link, or a folder that is no store, stays as it is.

    Raises:
        BadInput: the name is invalid; or the folder is a link, or not a store.
        NotFound: no project has this name.
        Busy: another process held a lock of the store for too long.
        LogError: it cannot be removed, or not all of it.
    """

    name: Annotated[str, "The project."]
    lock_timeout: Annotated[float, LOCK_TIMEOUT.meta, "Seconds to wait for those who use the store."] = (
        LOCK_TIMEOUT.default
    )
