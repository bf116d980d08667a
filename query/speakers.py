"""Who says a message, in every text that people or language models read."""


def speaker(role: str | None, name: str | None) -> str:
    """`user (Anna)`; the role alone where there is no name, or the name says the same.

    The role is always said, and first: a name is whatever its writer chose, such as `system`.
    """
    told = " ".join((name or "").split())
    if not role or not told:
        return role or told
    return role if told.casefold() == role else f"{role} ({told})"
