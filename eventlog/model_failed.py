"""The event that sets aside what a language model gives nothing about."""

from memlog.eventlog.envelope import Change
from memlog.eventlog.event_fields import Count, FailureKind, Ids, ModelTask, Text


class ModelFailed(Change, tag="model_failed"):
    """A language model gave nothing about some events, while it may answer about others. Written by memlog,
    which asks about them again on another day: at once after a refusal or an unusable answer, else after two
    requests.

    task: what was asked for. event_ids: of the messages, the daily events, or the contents of memories.
    chat_id: theirs. kind: `refused`; `unusable`, of its answers; `failed` or `late`.
    why: the error, with a hash of the provider's words. requests: how many were sent.
    """

    task: ModelTask
    event_ids: Ids
    provider: Text
    model: Text
    kind: FailureKind
    why: str = ""
    chat_id: str | None = None
    requests: Count = 1
    tokens_in: Count = 0
    tokens_out: Count = 0
