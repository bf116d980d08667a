"""The speaker of a message, in every text for people or language models."""


def speaker(role: str | None, name: str | None) -> str:
    """`user/Anna`; only the role without a name, or if the name is the same.

    The role always comes first: a writer chooses the name, which may be `system`. A colon in a name becomes a
    wide one, so the first colon ends the speaker. A slash, since brackets cost each line another token:
    contexts of 500 and 1,000 tokens then held the answers to .821 and .880 of LoCoMo's questions, instead of
    .823 and .883 (`tests/eval/context.py`).
    """
    name = " ".join((name or "").split()).replace(":", "\uff1a")
    if not role or not name:
        return role or name
    return role if name.casefold() == role else f"{role}/{name}"
