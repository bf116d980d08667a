"""Who says a message, in every text that people or language models read."""


def speaker(role: str | None, name: str | None) -> str:
    """`user/Anna`; the role alone where there is no name, or the name says the same.

    The role comes first, always: a name is whatever its writer chose, such as `system`. A colon in a name has
    a backslash before it: the one that ends a speaker is the first without. A slash, since brackets cost each
    line a token more: contexts of 500 and 1,000 tokens then held the answers to .821 and .880 of LoCoMo's
    questions, in the place of .823 and .883 (`tests/eval/context.py`).
    """
    told = " ".join((name or "").split()).replace(":", "\\:")
    if not role or not told:
        return role or told
    return role if told.casefold() == role else f"{role}/{told}"
