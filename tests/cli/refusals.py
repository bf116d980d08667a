"""What `memlog append` prints on stderr about the lines of a pipe that it refused."""


def not_stored(count: int) -> bytes:
    """The note behind the answers."""
    lines = "1 line was" if count == 1 else f"{count:,} lines were"
    return f'memlog: {lines} not stored: see the answers with an "error"\n'.encode()
