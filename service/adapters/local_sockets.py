"""Unix sockets through which a user's processes reach their server, and proofs of identity over TCP."""

import hmac
import os
import secrets
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memlog.eventlog.errors import LogError

CHALLENGE = "/v1/challenge"
"""The path where a server proves that it has the token."""

LEAST_TOKEN = 16
"""The minimum length of a token, in characters; a shorter one could be recovered offline from a proof."""

_LONGEST_NONCE = 128
_LONGEST_ANSWER = 8192
_SECONDS = 5.0


def listen_on_private_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket in a folder only this user can access, replacing any leftover socket.

    Raises:
        OSError: others can access the folder, or the path is too long for a socket.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = path.parent.lstat()
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise PermissionError(f"other users can access {path.parent}")
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(str(path))  # the folder keeps others out until the mode is set
        path.chmod(0o600)
        listening.listen(256)
    except (OSError, ValueError) as error:
        listening.close()
        raise OSError(str(error)) from error
    return listening


def is_process_of_user(connected: socket.socket) -> bool:
    """Whether the process at the other end of a Unix socket runs as this user."""
    if sys.platform == "darwin":
        # struct xucred of <sys/ucred.h>: a version, the uid, and groups.
        data = connected.getsockopt(0, 1, 76)
        return bool(struct.unpack_from("Ii", data)[1] == os.geteuid())
    data = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return bool(struct.unpack("3i", data)[1] == os.geteuid())


def compute_token_proof(token: str, nonce: str, url: str) -> str:
    """Return the proof for a nonce and an address, which only holders of the token can compute.

    Raises:
        ValueError: the nonce is invalid.
    """
    if not (nonce.isalnum() and nonce.isascii() and len(nonce) <= _LONGEST_NONCE):
        raise ValueError("the nonce must have 1 to 128 letters and digits")
    return hmac.digest(token.encode(), f"memlog {nonce} {url}".encode(), "sha256").hex()


def check_server_has_token(stream: Any, url: str, token: str) -> None:  # noqa: ANN401 - a NetworkStream of httpcore
    """Check that the server at a new connection has the token, before sending anything else.

    Raises:
        LogError: the server cannot prove it.
    """
    nonce = secrets.token_hex(32)
    host = urlsplit(url).netloc
    stream.write(f"GET {CHALLENGE}?nonce={nonce} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode(), _SECONDS)
    proof = compute_token_proof(token, nonce, url).encode()
    answer = b""
    while len(answer) < _LONGEST_ANSWER and not _is_complete_answer(answer):
        more = stream.read(_LONGEST_ANSWER, _SECONDS)
        if not more:
            break
        answer += more
    if not hmac.compare_digest(answer.rpartition(b"\r\n\r\n")[2], proof):
        raise LogError(f"{url}: another server answers there", code="server_away", retryable=True)


def _is_complete_answer(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return any(length.strip().isdigit() and len(body) >= int(length) for length in lengths)
