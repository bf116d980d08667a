"""Names a folder's project after its git remote, else its checkout, else the folder itself."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from memlog.eventlog.codec.hashing import short_sha256
from memlog.eventlog.errors import BadInput
from memlog.eventlog.files import disk
from memlog.eventlog.log.streams import escape_invalid_utf8, project_folder

_SECONDS = 10
"""The timeout of a git call, in seconds."""

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.IGNORECASE)
_SCP = re.compile(r"(?:[^/]*@)?(\[[^\]/]+\]|[^/:@]+):(.*)")
_OTHER_PROGRAM = re.compile(r"[a-z0-9+.-]+::", re.IGNORECASE)
"""Matches the beginning of a remote that git passes to another program, such as `ext::ssh …`."""

_REMOTES = ("config", "--local", "-z", "--get-regexp", r"^remote\..*\.url$")

_LONGEST = 255
_DIGITS = 16
"""The number of hex digits of the hash that replaces the end of a long name."""


class Checkouts:
    """Names the project of each folder. Asks git only once for each folder's paths and remotes.

    home: the person's home folder. A checkout of it, such as one for dotfiles, counts only for sessions in
        `home` itself: it is not the project of all folders below.
    notes: why projects are named after folders rather than by git.
    """

    def __init__(self, home: Path | None = None) -> None:
        self._home = None if home is None else os.path.realpath(home)
        self._git = shutil.which("git")
        self._found: dict[str, tuple[str | None, str | None]] = {}
        self.notes: list[str] = []

    def project_of(self, folder: str | None, remote: str | None = None) -> str | None:
        """Return a session's project; None if neither its folder nor its remote is known.

        folder: where the session first worked. remote: the remote that the session names, used if the folder
            is gone or has no remote.
        """
        told = normalise_remote(remote or "")
        if folder is None or not folder.startswith("/") or "\0" in folder:
            return None if told is None else shorten_project_name(told)
        path = Path(os.path.realpath(folder))
        left = next(each for each in (path, *path.parents) if _is_folder(each))
        is_gone = left != path
        named, checkout = (told, None) if is_gone and told else self._ask_git(str(left), str(path))
        return shorten_project_name(named or told or checkout or escape_invalid_utf8(path))

    def _ask_git(self, folder: str, asked: str) -> tuple[str | None, str | None]:
        """Return the remote and the main checkout of an existing folder; None for each that is missing.

        asked: the folder that the session names.
        """
        if folder not in self._found:
            self._found[folder] = self._find_remote_and_checkout(folder)
        remote, checkout = self._found[folder]
        is_of_all = checkout in ("/", self._home) and asked != checkout
        return (None, None) if is_of_all else (remote, checkout)

    def _find_remote_and_checkout(self, folder: str) -> tuple[str | None, str | None]:
        common = self._run_git(folder, "rev-parse", "--git-common-dir")
        if not common:
            return None, None
        shared = Path(os.path.realpath(Path(folder, os.fsdecode(common).removesuffix("\n"))))
        checkout = shared.parent if shared.name == ".git" else shared
        urls: dict[str, str] = {}
        for entry in self._run_git(folder, *_REMOTES).decode(errors="replace").split("\0"):
            key, _, url = entry.partition("\n")
            urls.setdefault(key.removeprefix("remote.").removesuffix(".url"), url)
        names = sorted(urls, key=lambda name: (name != "origin", name))
        remotes = (normalise_remote(resolve_remote(urls[name], checkout)) for name in names)
        remote = next(filter(None, remotes), None)
        return remote, escape_invalid_utf8(checkout)

    def _run_git(self, folder: str, *words: str) -> bytes:
        """Return the output of a git command; b"" if it fails. The commands used run no other program."""
        if self._git is None:
            return self._note("git is not installed: folders stand for projects")
        # Of the caller's environment, nothing may choose another repository.
        environment = {"PATH": os.defpath, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        environment |= {} if self._home is None else {"HOME": self._home}
        try:
            done = subprocess.run(  # noqa: S603 - a list of arguments; the folder is absolute
                [self._git, "-C", folder, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return self._note(f"git cannot be asked about a folder, which stands for a project: {error}")
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode and said and "not a git repository" not in said:
            why = said.splitlines()[0]
            return self._note(f"git refuses a folder, which stands for a project: {escape_invalid_utf8(why)}")
        return b"" if done.returncode else done.stdout

    def _note(self, note: str) -> bytes:
        self.notes += [] if self.notes else [note]
        return b""


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return disk.is_folder(path)
    return False


def resolve_remote(url: str, checkout: Path) -> str:
    """Return a remote's address; a path relative to the checkout becomes absolute."""
    is_relative = url and not url.startswith("/") and not _URL.fullmatch(url) and not _SCP.fullmatch(url)
    return os.path.realpath(checkout / url) if is_relative and "::" not in url else url


def normalise_remote(url: str) -> str | None:
    """Return a repository's address, the same for every spelling of its URL; None if `url` is not an address.

    The address is the host and path without scheme, user, password, port and `.git`, such as
    `github.com/anna/tea`. For a repository on this machine, it is the path.
    """
    url = url.strip()
    if (found := _URL.fullmatch(url)) is not None:
        # Without user and password first: these may have any character.
        authority, _, path = found[2].partition("/")
        place = re.split(r"[?#]", authority.rpartition("@")[2])[0]
        path = re.split(r"[?#]", path)[0]
        if found[1].lower() == "file":
            return _strip_ending(f"/{path}")
        return _join(re.sub(r":\d*\Z", "", place.rpartition("@")[2]), path)
    if _OTHER_PROGRAM.match(url):
        return None
    if (found := _SCP.fullmatch(url)) is not None:
        return _join(found[1], found[2])
    return _strip_ending(url)


def _join(host: str, path: str) -> str | None:
    return _strip_ending(f"{host.lower()}/{path}") if host else None


def _strip_ending(path: str) -> str | None:
    path = re.sub(r"/+", "/", path).rstrip("/").removesuffix(".git").rstrip("/")
    return escape_invalid_utf8(path) if path.strip("./") else None


def shorten_project_name(name: str) -> str:
    """Return `name` if a project can have it; otherwise the beginning of the name and a hash of it."""
    if _is_name(name):
        return name
    ending = f"-{short_sha256(name.encode()).hexdigest()[:_DIGITS]}"
    heads = (name[:length] for length in range(_LONGEST, -1, -1))
    return next(f"{head}{ending}" for head in heads if _is_name(f"{head}{ending}"))


def _is_name(name: str) -> bool:
    try:
        project_folder(name)
    except BadInput:
        return False
    return True
