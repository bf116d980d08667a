"""Decides whether a new memory is an exact duplicate, a near duplicate, or new."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.categories import resolve_alias
from memlog.eventlog.codec.content_ids import derive_memory_id, fold_content, mark_quantities
from memlog.eventlog.codec.encode import draft_event
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Event, MemoryAccessed, MemorySaved, MemoryUpdated
from memlog.eventlog.secrets.detection import mask_keys
from memlog.projector.sqlite import Connection
from memlog.projector.subjects.memories import TITLE_LENGTH
from memlog.projector.text import stemming
from memlog.projector.text.stemming import ENGLISH, starts_with_latin_letter
from memlog.projector.text.tokens import to_american
from memlog.query import memories, provenance
from memlog.query.conflicts import DISTILLED, ids_of_memories_worded_by_hand
from memlog.query.memories import Memory
from memlog.query.provenance import StoredEvent
from memlog.query.search.alike import memories_matching_words
from memlog.service.engine.read_model import Deciding
from memlog.service.memory.compared_text import (
    Text,
    Token,
    changes_meaning,
    is_conjunction,
    is_filler,
    is_in_dictionary,
    is_in_latin,
    join_tokens,
    negates_next_word,
)
from memlog.service.memory.save import (
    ALREADY_KNOWN,
    SAVED,
    Append,
    SaveReport,
    append_saved_memory,
    format_merge_decision,
    make_save_report,
)

# Near duplicates have a normalised Levenshtein similarity above 0.8. That alone would merge "pays 300" with
# "pays 800", so each difference must also be known to be harmless: punctuation; and in a language with known
# words (`Text.language`) another spelling, a typo, fillers, one additional word, or two clauses swapped.
# Numbers, names, signs, labels, code, tenses and words that change the meaning of a sentence must be equal
# (`changes_meaning`).
#
# In doubt, two memories stay separate.

ALIKE = 0.8
"""The similarity, from 0 to 1, above which a text may be a near duplicate."""

LONGEST = 10_000
"""The maximum number of characters in a compared text. Longer texts are documents, and losing up to a fifth
of one is too much."""

_MOST_ADDED = 1
"""How many words, besides fillers, a near duplicate may add."""

_LONGEST_PHRASE = 3
"""How many words, besides fillers, a near duplicate may instead append at its end: "by card"."""

_SHORTEST_ADDED = 3
"""The minimum number of letters in an added word."""

_CLAUSES = 8
"""The maximum number of clause orders to try."""

_SHORTEST_CHINESE_CLAUSE = 4
"""The minimum number of characters in a clause: 上海 and 海上 are different words, as are 蜜蜂 and 蜂蜜."""

_OF_TENSES = frozenset("iиы")
"""Vowels that distinguish tenses in Finnish and Russian: katsomme, katsoimme; назвал, называл."""

_SHORTEST_ENDING = 2
_CYRILLIC = re.compile("[а-я]+")

# The fewest letters of a word with a recognisable typo.
_SHORTEST_TYPO = 4
_SHORTEST_TWO_TYPOS = 9
# The same if there is no dictionary: for an extra or missing letter, and for a wrong letter.
_SHORTEST_UNKNOWN_TYPO = 5
_SHORTEST_OTHER_LETTER = 7


def similarity_of_near_duplicates(older: Text, newer: Text) -> float | None:
    """Return the similarity of two texts if `newer` is a near duplicate of `older`; else None."""
    from rapidfuzz.distance import Levenshtein

    language = _common_language(older, newer)
    for words in _order_clauses(older.tokens, newer.tokens, language):
        alike = Levenshtein.normalized_similarity(join_tokens(words), newer.joined, score_cutoff=ALIKE)
        if alike > ALIKE and _is_covered(words, newer.tokens, language):
            return alike
    return None


def says_all_of_other(text: Text, other: Text) -> bool:
    """Whether `text` says everything that `other` says, whatever their similarity."""
    language = _common_language(other, text)
    orders = _order_clauses(other.tokens, text.tokens, language)
    return any(_is_covered(words, text.tokens, language) for words in orders)


def _common_language(one: Text, other: Text) -> str | None:
    return one.language if one.language == other.language else None


def _order_clauses(
    older: Sequence[Token], newer: Sequence[Token], language: str | None
) -> Iterator[Sequence[Token]]:
    """Yield the older text's words as they are, then with two clauses in the order of the newer text."""
    yield older
    if language is None:
        return
    before, now = ([token.word for token in tokens] for tokens in (older, newer))
    start = first_difference(before, now)
    end = first_difference(before[start:][::-1], now[start:][::-1])
    for first, last in dict.fromkeys(((0, len(older)), (start, len(older) - end))):
        if first < len(newer):
            fixed = {token.word for token in newer if token.is_fixed}
            for part in islice(_swap_clauses(older[first:last], newer[first].word, fixed), _CLAUSES):
                yield [*older[:first], *part, *older[last:]]


def _swap_clauses(part: Sequence[Token], first: str, fixed: Container[str]) -> Iterator[Sequence[Token]]:
    """Yield `part` with two clauses swapped so that it begins with `first`, and any "and" between them kept.

    fixed: the fixed words of the newer text; a capital at the beginning of a text need not mean a name.
    """
    for at in range(1, len(part)):
        before, here, behind = part[:at], part[at], part[at + 1 :]
        if here.word == first and _is_clause(before, fixed) and _is_clause(part[at:], fixed):
            yield [*part[at:], *before]
        is_joint = is_conjunction(here.word) and behind and behind[0].word == first
        if is_joint and min(len(before), len(behind)) > 1:
            yield [*behind, here, *before]


def _is_clause(tokens: Sequence[Token], fixed: Container[str]) -> bool:
    """Whether words may move as a clause, unlike a lone number, name, "not" or Chinese word.

    The position of a name shows who does what, except in Russian, where its ending does.
    """
    if all(token.is_cjk for token in tokens):
        return len(tokens) >= _SHORTEST_CHINESE_CLAUSE
    word = tokens[0].word
    is_russian_name = _CYRILLIC.fullmatch(word) is not None and not changes_meaning(word)
    return len(tokens) > 1 or not tokens[0].is_fixed or word not in fixed or is_russian_name


def _is_covered(older: Sequence[Token], newer: Sequence[Token], language: str | None) -> bool:
    told = 0
    for leading, before, after in _find_differences(older, newer):
        lost, added = _find_unmatched(before, after, language)
        if language is None or any(token.is_fixed for token in (*lost, *added)):
            return False
        # "Not" differs from "not always".
        if (lost or added) and leading is not None and negates_next_word(leading.word):
            return False
        # Chinese words look like names, so only fillers may be added.
        characters = [token for token in added if token.is_cjk]
        if not all(_are_fillers(each, leading, language) for each in (lost, characters)):
            return False
        more = [t.word for t in added if not t.is_cjk and not is_filler(t.word, language)]
        is_phrase = not before and after[-1] is newer[-1] and len(more) <= _LONGEST_PHRASE
        if not all(_is_content(word, language) for word in (more[-1:] if is_phrase else more)):
            return False
        told += min(len(more), 1) if is_phrase else len(more)
    return told <= _MOST_ADDED


def _is_content(word: str, language: str) -> bool:
    """Whether `word` is a content word. Adding a function word, such as "will", changes the meaning."""
    return (
        len(word) >= _SHORTEST_ADDED
        and starts_with_latin_letter(word) == is_in_latin(language)
        and word not in stemming.stop_words().get(language, ())
        and (language != ENGLISH or is_in_dictionary(word))
    )


def _find_differences(
    older: Sequence[Token], newer: Sequence[Token]
) -> Iterator[tuple[Token | None, list[Token], list[Token]]]:
    """Yield the differing parts of two texts, with the shared word before them (None at the beginning)."""
    from rapidfuzz.distance import Levenshtein

    steps = Levenshtein.opcodes([token.word for token in older], [token.word for token in newer])
    for is_equal, run in groupby(steps, key=lambda step: step.tag == "equal"):
        if not is_equal:
            each = list(run)
            at = each[0].src_start
            yield (
                older[at - 1] if at else None,
                list(older[at : each[-1].src_end]),
                list(newer[each[0].dest_start : each[-1].dest_end]),
            )


def _find_unmatched(
    before: Sequence[Token], after: Sequence[Token], language: str | None
) -> tuple[list[Token], list[Token]]:
    """Return the words of `before` and of `after` that have no match in the other, in order."""
    lost: list[Token] = []
    added: list[Token] = []
    rest = list(after)
    for token in before:
        at = next((at for at, other in enumerate(rest) if _is_same_token(token, other, language)), None)
        if at is None:
            lost.append(token)
        else:
            added += rest[:at]
            rest = rest[at + 1 :]
    return lost, added + rest


def _are_fillers(tokens: Sequence[Token], leading: Token | None, language: str) -> bool:
    words = [token.word for token in tokens if not token.is_cjk]
    characters = "".join(token.word for token in tokens if token.is_cjk)
    before = leading.word if leading is not None and leading.is_cjk else ""
    is_filling = is_filler(characters, language) or is_filler(before + characters, language)
    return is_filling and all(is_filler(word, language) for word in words)


def _is_same_token(one: Token, other: Token, language: str | None) -> bool:
    """Whether two words are the same, apart from spelling variants and typos."""
    if one.word == other.word:
        return True
    if language is None or one.is_fixed or other.is_fixed or one.is_cjk or other.is_cjk:
        return False
    if starts_with_latin_letter(one.word) != is_in_latin(language):
        return False
    is_form = language == ENGLISH and _is_word_form(one.word, other.word)
    return is_form or _is_typo(one.word, other.word, language)


def _is_word_form(one: str, other: str) -> bool:
    """Whether two English words differ only in spelling (British or American) or form (`drinks`/`drinking`).

    A progressive tense also has an auxiliary, which counts as an added word.
    """
    if _normalise_spelling(one) == _normalise_spelling(other):
        return True
    short, long = sorted((one, other), key=len)
    return short.endswith("s") and long.endswith("ing") and short[:-1] == long[:-3]


def _normalise_spelling(word: str) -> str:
    """Convert an English word to American spelling and the singular."""
    spelled = to_american(word).replace("is", "iz").replace("ys", "yz")
    # `https` is not a plural.
    return spelled.removesuffix("s") if re.search("[aeiou].+s$", word) else spelled


def _is_typo(one: str, other: str, language: str) -> bool:
    """Whether two words differ by a likely typo, which is not in the first letter.

    In English, exactly one of them must be in the dictionary. A different ending, by last letter or stem,
    means another case or tense.
    """
    from rapidfuzz.distance import OSA

    known = [is_in_dictionary(word) for word in (one, other)]
    longest = max(len(one), len(other))
    if one[0] != other[0] or all(known) or longest < _SHORTEST_TYPO:
        return False
    is_form = _stem_word(one, language) == _stem_word(other, language) and not _doubles_letter(one, other)
    if is_form or (one[-1] != other[-1] and sorted(one) != sorted(other)):
        return False
    if language == ENGLISH:
        most = 2 if longest >= _SHORTEST_TWO_TYPOS else 1
        return any(known) and OSA.distance(one, other, score_cutoff=most) <= most
    return OSA.distance(one, other, score_cutoff=1) <= 1 and _is_long_enough_for_slip(one, other)


def _stem_word(word: str, language: str) -> str:
    if language == ENGLISH:
        return stemming.english_stem(word)
    return next((stem for _, stem in stemming.stem_words([word], [language])), word)


def _is_long_enough_for_slip(one: str, other: str) -> bool:
    """Whether a single difference is a slip: the words are long enough, and are not different tenses."""
    if len(one) == len(other):
        return sorted(one) == sorted(other) or len(one) >= _SHORTEST_OTHER_LETTER
    long = max(one, other, key=len)
    is_tense = long[first_difference(one, other)] in _OF_TENSES and not _doubles_letter(one, other)
    return len(long) >= _SHORTEST_UNKNOWN_TYPO and not is_tense


def _doubles_letter(one: str, other: str) -> bool:
    """Whether the longer word differs only by a doubled letter before its ending."""
    short, long = sorted((one, other), key=len)
    at = first_difference(one, other)
    is_one_more = len(long) == len(short) + 1 and long[at:][1:] == short[at:]
    return is_one_more and long[at] == long[at - 1] and len(short) - at >= _SHORTEST_ENDING


def first_difference(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the index at which two words, or two lists of words, begin to differ."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_OWN_FIELDS = ("category", "kind", "importance", "topic", "title")


def build_own_event(memory: Memory) -> MemorySaved:
    """Return an event that saves a memory unchanged, as if a person had saved it."""
    return MemorySaved(
        memory_id=memory.memory_id,
        content=memory.content,
        title=memory.title if memory.title != memory.content[:TITLE_LENGTH] else None,
        category=memory.category,
        kind=memory.kind,
        importance=memory.importance,
        topic=memory.topic,
        chat_id=memory.chat,
        tags=memory.tags or None,
    )


def takeover_event(memory: Memory, event: MemorySaved, content: str) -> MemorySaved:
    """Return an event that makes a distilled memory a person's own, with the fields given in `event`.

    Other fields stay unchanged.
    """
    plain = MemorySaved(content=content)
    given = {
        name: getattr(event, name) for name in _OWN_FIELDS if getattr(event, name) != getattr(plain, name)
    }
    tags = [*dict.fromkeys([*memory.tags, *(event.tags or ())])]
    owned = replace(
        event, memory_id=memory.memory_id, content=content, chat_id=memory.chat, tags=tags or None
    )
    kept = {name: getattr(build_own_event(memory), name) for name in _OWN_FIELDS}
    return replace(owned, **kept | given)


_CANDIDATES = 20
"""How many memories from the full-text index are compared."""

_OF_A_MERGE = 0.1
"""The importance that a merge adds."""

_DIGITS = 6
"""The decimal places of an importance, so that 0.7 + 0.1 is not 0.7999999999999999."""


class Decision(NamedTuple):
    """How to save a text: the memory that will contain it, the decision in words, and the event to append."""

    memory_id: str
    decision: str
    event: Event | bytes


def save_once(
    append: Append, decide: Deciding, log: Path, event: MemorySaved, *, any_chat: bool
) -> SaveReport:
    """Save `event`, which has no memory_id, unless a memory already says the same.

    decide: calls a function with the read model after it has caught up.
    any_chat: whether to compare with the memories of every chat, not only its own.

    Raises:
        BadInput: the event cannot be stored, or another event has its id.
        Busy, LogError: as `Append`.
        DatabaseError: the read model cannot be read.
    """
    try:
        draft_event(event)
    except BadInput:
        # `save` refuses it, with a message that contains no key.
        return append_saved_memory(append, event)
    memory_id, decision, found = decide(lambda db: decide_save(db, log, event, any_chat), creates=True)
    (position,) = append([found])
    return make_save_report(memory_id, decision, position)


def decide_save(db: Connection, log: Path, event: MemorySaved, any_chat: bool) -> Decision:
    """Decide how to save `event`, given the existing memories; see `save_once`."""
    own_id = derive_memory_id(event.chat_id, event.content)
    before = _find_earlier_attempt(db, log, event)
    if before is not None:
        return _repeat_decision(before, event, own_id)
    own = memories.find_memory(db, own_id)
    if (
        own is not None
        and fold_content(own.content) == fold_content(event.content)
        and not _is_same_masked_text(own.content, event.content)
    ):
        # One says 5² or mW, the other 52 or MW.
        own_id = derive_memory_id(event.chat_id, mark_quantities(event.content))
        own = memories.find_memory(db, own_id)
    is_kept = own is not None and (own.archived_at is None or event.source not in DISTILLED)
    if own is not None and is_kept and _is_same_masked_text(own.content, event.content):
        return _decide_known(db, own, event)
    if len(event.content) > LONGEST or (found := _compare_with_others(db, event, own, any_chat)) is None:
        return Decision(own_id, SAVED, msgspec.structs.replace(event, memory_id=own_id))
    return found


def _compare_with_others(
    db: Connection, event: MemorySaved, own: Memory | None, any_chat: bool
) -> Decision | None:
    """Compare `event` with memories of similar length; None if it is to be saved separately.

    own: the memory whose id derives from this text; its own text may have changed since.
    """
    new = Text(event.content)
    texts = [(memory, Text(memory.content)) for memory in _find_candidates(db, event, own, any_chat)]
    same = [memory for memory, text in texts if text.normalised == new.normalised]
    if same:
        return _decide_known(db, min(same, key=lambda memory: memory.chat != (event.chat_id or None)), event)
    if own is not None and own.archived_at is not None:
        return None
    for memory, text in texts:
        if own is not None and memory.memory_id == own.memory_id and says_all_of_other(text, new):
            return _decide_known(db, memory, event, memory.content)
    alike = [
        (found, memory, text)
        for memory, text in texts
        if _may_be_updated_by(memory, event)
        and (found := similarity_of_near_duplicates(text, new)) is not None
    ]
    if not alike:
        return None
    _, memory, text = max(alike, key=itemgetter(0))
    if event.source in DISTILLED and memory.memory_id in ids_of_memories_worded_by_hand(db):
        # A model does not reword what a person saved.
        return _decide_known(db, memory, event) if says_all_of_other(text, new) else None
    return _decide_merge(db, memory, event)


def _find_candidates(db: Connection, event: MemorySaved, own: Memory | None, any_chat: bool) -> list[Memory]:
    # Half to twice as long, as white space and punctuation do not count.
    lengths = (len(event.content) // 2, min(len(event.content) * 2, LONGEST))
    chat = event.chat_id or None
    found = memories_matching_words(
        db, event.content, chat=chat, any_chat=any_chat, lengths=lengths, limit=_CANDIDATES
    )
    if own is None or own.archived_at is not None or len(own.content) > LONGEST or own in found:
        return found
    return [*found, own]


def _may_be_updated_by(memory: Memory, event: MemorySaved) -> bool:
    """Whether `event` may update a memory: same kind, category and topic, and no later change."""
    now = (
        timestamps.now() if event.ts is None else timestamps.normalise_timestamp(event.ts, naive_is_utc=False)
    )
    return (
        (memory.kind, resolve_alias(memory.category)) == (event.kind, event.category)
        and (not memory.topic or not event.topic or memory.topic == event.topic)
        and memory.updated_at <= now
    )


def _is_same_masked_text(stored: str, content: str) -> bool:
    """Whether a stored text equals `content`, whose keys may be masked in it."""
    known = fold_content(mark_quantities(stored))
    return known in (
        fold_content(mark_quantities(content)),
        fold_content(mark_quantities(mask_keys(content))),
    )


def _decide_known(db: Connection, memory: Memory, event: MemorySaved, content: str | None = None) -> Decision:
    """Return the decision for a text that a memory already contains.

    content: the memory's text, if it says more than `event`.
    """
    if _is_taken_over(db, memory, event):
        return Decision(memory.memory_id, SAVED, takeover_event(memory, event, content or event.content))
    accessed = MemoryAccessed(id=event.id, ts=event.ts, memory_ids=[memory.memory_id], by="save")
    return Decision(memory.memory_id, ALREADY_KNOWN, accessed)


def _decide_merge(db: Connection, memory: Memory, event: MemorySaved) -> Decision:
    if _is_taken_over(db, memory, event):
        return Decision(memory.memory_id, SAVED, takeover_event(memory, event, event.content))
    new_tags = [tag for tag in event.tags or () if tag not in memory.tags]
    updated = MemoryUpdated(
        id=event.id,
        ts=event.ts,
        memory_id=memory.memory_id,
        content=event.content,
        title=event.title or None,
        topic=event.topic or None,
        importance=min(1.0, round(max(memory.importance, event.importance) + _OF_A_MERGE, _DIGITS)),
        tags=[*memory.tags, *dict.fromkeys(new_tags)] if new_tags else None,
    )
    return Decision(memory.memory_id, format_merge_decision(memory.memory_id), updated)


def _is_taken_over(db: Connection, memory: Memory, event: MemorySaved) -> bool:
    """Whether a person is saving a memory that a model distilled and nobody has reworded."""
    return event.source not in DISTILLED and memory.memory_id not in ids_of_memories_worded_by_hand(db)


def _find_earlier_attempt(db: Connection, log: Path, event: MemorySaved) -> StoredEvent | None:
    if event.id is None:
        return None
    found = provenance.find_event(db, log, event.id, "memory")
    return found if found is not None and found.id == event.id else None


def _repeat_decision(before: StoredEvent, event: MemorySaved, own_id: str) -> Decision:
    """Return the first attempt's decision. Appending its stored line again changes nothing.

    Raises:
        BadInput: the stored event has other content.
    """
    members = msgspec.json.decode(before.raw)
    memory_id, *others = members.get("memory_ids") or [members.get("memory_id")]
    is_same = before.type == "memory_accessed" or _is_same_masked_text(
        members.get("content") or "", event.content
    )
    decision = {
        "memory_saved": SAVED,
        "memory_updated": format_merge_decision(memory_id),
        "memory_accessed": ALREADY_KNOWN,
    }.get(before.type)
    if decision is None or others or not is_same:
        raise BadInput(f"the event {before.id} has different content", hint="use another event_id or omit it")
    return Decision(memory_id or own_id, decision, before.raw.encode())
