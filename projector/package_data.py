"""The files that memlog ships with."""

from pkgutil import get_data


def shipped(name: str) -> str:
    """The text of the file `name` beside this module, wherever the package stands.

    By pkgutil, since importlib.resources takes each command some milliseconds more to import.

    Raises:
        OSError: the installation lacks it.
    """
    data = get_data("memlog.projector", name)
    assert data is not None, "every loader of a file system has get_data"
    return data.decode()
