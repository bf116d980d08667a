"""Scores how likely a hit is to belong to a prompt, with one score and one floor for memories, facts,
documents and passages of conversations.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from memlog.projector.embedding.models import Embedder, Models, is_bundled_model
from memlog.projector.embedding.models import Kind as TextKind
from memlog.projector.passages.vectors import MULTILINGUAL
from memlog.projector.sqlite import Connection
from memlog.projector.text.stemming import ENGLISH, detect_language, stop_words
from memlog.query.context import background, floor
from memlog.query.context.background import StoreSample
from memlog.query.context.floor import LONG
from memlog.query.event_index import Key
from memlog.query.gate import should_retrieve
from memlog.query.search import nearest
from memlog.query.search.fulltext import Neighbourhood
from memlog.query.search.hits import Candidate, Hit, Owner
from memlog.query.search.request import Search, parse_query
from memlog.query.search.vector_cache import compute_cosines_of_rows, stored_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Strategy: the score is a logit of a logistic regression on four labelled stores (fixtures/told, 240
# prompts), so that entries of every kind are comparable, and one floor and one limit hold for all.
#   1. Meaning counts in standard deviations above the background and a sample of the store: raw cosines say
#      little, since "favourite cafés: Suomi" is near everything (recall .62 instead of .71). The multilingual
#      model also counts how much nearer an entry is to this prompt than to other prompts in its language.
#   2. Words count by their rarity and the root of their number: three out of three say more than one out of
#   one. 3. Kinds that a prompt often finds by chance (facts, passages, documents) lose a constant.
#   4. The floor is higher for prompts that seem to ask for nothing stored; a hard gate costs .06 of recall.
# With each store scored by the weights fitted on the other three, recall rose from .45 to .67 and precision
# from .10 to .28, compared with a share and a floor for each kind. A floor for each kind, a floor that one
# kind skips, and core memory before the two best entries were worse, too. Where there are more than ten
# times as many messages or documents as memories and facts, they keep a floor of their own (`floor`): in
# this list, LoCoMo would lose .187 of its answers.
# docs/tools/context-details.md has all figures; `python -m tests.eval.told --fit` fits the weights.

_NEIGHBOURS = 3
"""The number of nearest background prompts of each kind that a prompt is compared with."""


class Nearness(NamedTuple):
    """How near an entry is to a prompt according to the multilingual model, in standard deviations.

    multilingual: how much nearer it is than other texts in its language.
    nearer: how much nearer it is to this prompt than to other prompts.
    """

    multilingual: float
    nearer: float


class MultilingualPrompt:
    """A prompt embedded by the multilingual model. silent: receives the reason if it can't be embedded."""

    def __init__(
        self, db: Connection, text: str, embedder: Embedder, sample: StoreSample, silent: dict[str, str]
    ) -> None:
        self._db, self._text, self._embedder, self._sample = db, text, embedder, sample
        self._silent = silent
        self._stats: dict[str, tuple[float, float]] = {}

    @cached_property
    def vector(self) -> "NDArray[np.float32] | None":
        """The prompt's vector, of shape [dimension]; None if it cannot be compared."""
        found = nearest.embed_query(self._text, self._db, self._embedder, self._silent)
        if found is None:
            return None
        import numpy as np

        return np.frombuffer(found, np.float32)

    def nearness_by_hit(self, found: Sequence[tuple[Candidate, Hit]]) -> dict[int, Nearness]:
        """Return the nearness of each hit that has a vector, keyed by place in `found`."""
        if self.vector is None:
            return {}
        import numpy as np

        away, deviation = self._offset_from_mean_prompt
        result: dict[int, Nearness] = {}
        for shelf, places in nearest.passages_by_place(
            self._db, [each for each, _ in found], MULTILINGUAL
        ).items():
            if not places:
                continue
            numbers, read = stored_vectors(self._db, shelf, [*places])
            # Not a BLAS product: its threads wait for each other on a busy machine.
            both = np.einsum("ij,kj->ik", read, np.stack([self.vector, away])) if numbers else ()
            for number, (cosine, specific) in zip(numbers, both, strict=True):
                place = places[number]
                mean, spread = self._similarity_stats(
                    background.detect_background_language(found[place][1].content)
                )
                near = Nearness(float((cosine - mean) / spread), float(specific / deviation))
                # Of a long message, the nearest passage counts.
                result[place] = max(result.get(place, near), near)
        return result

    def likeness_to_personal_prompts(self) -> float:
        """Return the similarity to personal prompts minus that to general ones, over all languages."""
        import numpy as np

        assert self.vector is not None
        every = background.multilingual_background_vectors().values()
        near = (
            np.sort(np.concatenate(of_kind) @ self.vector)[-_NEIGHBOURS:].mean()
            for of_kind in ([each.personal for each in every], [each.general for each in every])
        )
        personal, general = near
        return float(personal - general)

    def _similarity_stats(self, name: str) -> tuple[float, float]:
        """Return the mean and standard deviation of the prompt's similarity to texts in language `name`."""
        import numpy as np

        if name not in self._stats:
            stored = self._sample.load_vectors_by_language(self._db, self._embedder)
            of_background = [each.sentences for each in _background_vectors_of(name)]
            compared = np.concatenate([*of_background, *([stored[name]] if name in stored else [])])
            similar = compared @ self.vector
            self._stats[name] = float(similar.mean()), float(similar.std())
        return self._stats[name]

    @cached_property
    def _offset_from_mean_prompt(self) -> "tuple[NDArray[np.float32], float]":
        """The prompt's offset from the mean prompt in its language, and the language's `_mean_deviation`."""
        assert self.vector is not None
        away = self.vector - _background_prompt_vectors(
            background.detect_background_language(self._text)
        ).mean(0)
        return away, _mean_deviation(background.detect_background_language(self._text))


@cache
def _background_prompt_vectors(name: str) -> "NDArray[np.float32]":
    import numpy as np

    return np.concatenate([part for each in _background_vectors_of(name) for part in each[1:]])


@cache
def _mean_deviation(name: str) -> float:
    """Return the standard deviation of a sentence's similarities to prompts in a language, averaged."""
    import numpy as np

    sentences = np.concatenate(
        [each.sentences for each in background.multilingual_background_vectors().values()]
    )
    return float((_background_prompt_vectors(name) @ sentences.T).std(0).mean())


def _background_vectors_of(name: str) -> list[background.BackgroundVectors]:
    """Return the background vectors for a language, or for all languages if it has none."""
    known = background.multilingual_background_vectors()
    return [known[name]] if name in known else [*known.values()]


Mode = Literal["bundled", "both", "multilingual"]
"""Which models compare a prompt with entries: the bundled one, the multilingual one, or both."""


class Weights(msgspec.Struct, frozen=True):
    """The weights of a score, and of the gate against prompts that ask for nothing stored.

    base: a constant. meaning, multilingual, nearer, words: multiply these fields of an `EntryScore`.
        both_read: added if the first model can compare the prompt and the entry. fact, passage, document:
        added for an entry of this kind.
    gate: a constant. gate_best: multiplies the best score or, with the multilingual model, the greatest
        `nearer`. first_person: added for "my", "we" and the like. likeness: multiplies the similarity to
        personal prompts minus that to general ones. gate_least: below this sum, the floor is `SOFT_FLOOR`.
    floor: the lowest score an entry may have.
    """

    base: float
    meaning: float
    multilingual: float
    nearer: float
    words: float
    both_read: float
    fact: float
    passage: float
    document: float
    gate: float
    gate_best: float
    first_person: float
    likeness: float
    gate_least: float
    floor: float


_FITTED = Path(__file__).with_name("weights.json").read_bytes()

WEIGHTS = msgspec.json.decode(_FITTED, type=dict[Mode, Weights])
"""The weights for each choice of models, fitted on all four stores."""

# Invariant: more evidence never lowers a score, so that the best line of a long prompt may stand for all.
assert all(min(each.meaning, each.multilingual, each.nearer, each.words) >= 0 for each in WEIGHTS.values())

SOFT_FLOOR = -1.5
"""The floor for a prompt that seems to ask for nothing stored."""

BELOW_BEST = 3.0
"""How far the score of an entry may be below the best score."""

_SOCIAL = ("greeting", "acknowledgement")
"""Gate reasons that raise the floor but rule nothing out, since "ok, wifi password" has such a reason too."""

OF_A_LINE = 0.5
"""Subtracted from the score that an entry has for a single line of a long prompt."""

FIRST_PERSON = re.compile(
    r"\b(?:my|ours?|we|us|i|i['’](?:m|d|ve|ll)|me|mine|let['’]s"
    r"|мо[йяеёи]\w*|моего|моих|наш\w*|мы|нас|нам|нами|я|меня|мне|мной"
    r"|minun|mun|meidän|meillä|meille|meitä|minulla|mulla|minua|minä|mä|\w{3,}(?:mme|ni|nko)"
    r"|ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2})\b"
    "|[我咱俺]",
    re.IGNORECASE,
)
"""First-person pronouns in English, Russian, Finnish, German and Chinese."""

_NAME = re.compile(r"\b[A-Z][a-z][\w'’-]*")
_BEGINS_A_SENTENCE = frozenset('.!?:;\n"“”«(*-–—')
_DATES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july"
    " august september october november december".split()
)


class EntryScore(msgspec.Struct, frozen=True, kw_only=True):
    """How likely an entry is to belong to a prompt, and why.

    total: a logit. floor: the lowest total accepted for this prompt.
    meaning: how much nearer in meaning it is than other texts, in standard deviations; None if the model does
        not support both languages, or it has no vector yet.
    multilingual: the same according to the multilingual model.
    nearer: how much nearer it is to this prompt than to other prompts according to the multilingual model,
        in standard deviations.
    words: the share of the prompt's words in it, weighted by rarity, times √(number of words).
    is_of_a_line: whether the words are from one line of a long prompt.
    is_of_time: whether it is from the time the prompt names, so that the floor does not apply.
    """

    total: float
    floor: float
    meaning: float | None
    words: float
    multilingual: float | None = None
    nearer: float | None = None
    is_of_a_line: bool = False
    is_of_time: bool = False

    def __str__(self) -> str:
        """Format the score for display."""
        compared = [f"{each:.2f}" for each in (self.meaning, self.multilingual) if each is not None]
        meaning = " and ".join(compared) or "none compared"
        words = f"words{' of a line' if self.is_of_a_line else ''} {self.words:.2f}"
        floor = "from the time that the prompt names" if self.is_of_time else f"floor {self.floor:.2f}"
        return f"score {self.total:.2f} (meaning {meaning}, {words}), {floor}"


class ListedHit(NamedTuple):
    """A hit and the inputs to its score.

    cosine: similarity to the prompt by the first model; None if unknown.
    words, line: its cover of the whole prompt, and of the line it covers best.
    factor: multiplies its odds; lower for other chats.
    far: its nearness by the multilingual model; None if unknown.
    lines: for each of the most distinctive lines, the meaning in standard deviations, if known, and the
        cover.
    in_time: whether it is from the time the prompt names.
    """

    hit: Hit
    owner: Owner
    cosine: float | None
    words: float
    line: float = 0.0
    factor: float = 1.0
    far: Nearness | None = None
    lines: Sequence[tuple[float | None, float]] = ()
    in_time: bool = False


class ScoredPrompt:
    """A prompt with its words, language and vectors. Vectors are computed on first use."""

    def __init__(self, db: Connection, search: Search, models: Models, sample: StoreSample) -> None:
        self.search, self.text, self.question = search, search.text, search.parsed_question
        self.models, self._db, self._sample = models, db, sample
        self.language = detect_language(self.text)
        self.silent: dict[str, str] = {}

    def first_model_supports(self, text: str) -> bool:
        """Whether the first model supports the language of `text`."""
        return self.models.first is not None and background.supports_language(self.models.first, text)

    @cached_property
    def is_supported_by_first_model(self) -> bool:
        """Whether the first model supports the prompt's language."""
        return self.first_model_supports(self.text)

    @cached_property
    def vector(self) -> bytes | None:
        """The first model's vector of the prompt; None if that model cannot compare it."""
        if self.models.first is None or not self.is_supported_by_first_model:
            return None
        return nearest.embed_query(self.text, self._db, self.models.first, self.silent)

    @cached_property
    def multilingual_prompt(self) -> MultilingualPrompt | None:
        """The prompt embedded by the multilingual model; None if unavailable."""
        if self.models.multilingual is None:
            return None
        prompt = MultilingualPrompt(self._db, self.text, self.models.multilingual, self._sample, self.silent)
        return None if prompt.vector is None else prompt

    @property
    def finding_models(self) -> Models:
        """The models used to find entries: just the multilingual one if available. Scoring uses both."""
        return self.models if self.multilingual_prompt is None else Models(None, self.models.multilingual)

    def choose_weights_for_entry(self, far: Nearness | None) -> Weights:
        """Return the weights for an entry.

        far: its nearness by the multilingual model, if known.
        """
        if far is None:
            return WEIGHTS["bundled"]
        return WEIGHTS["both" if self._is_bundled else "multilingual"]

    @property
    def _is_bundled(self) -> bool:
        return self.models.first is not None and is_bundled_model(self.models.first)

    @cached_property
    def _similarity_stats(self) -> tuple[float, float]:
        """Mean and standard deviation of the prompt's similarity to the background and the sample."""
        import numpy as np

        assert self.vector is not None
        assert self.models.first is not None
        compared = self._sample.load_vectors_by_language(self._db, self.models.first)
        if self._is_bundled:
            english = [compared[ENGLISH]] if ENGLISH in compared else []
            compared = {
                ENGLISH: np.concatenate([background.english_background_vectors().sentences, *english])
            }
        every = np.concatenate([*compared.values()]) if compared else np.zeros((0, 1), np.float32)
        if len(every) < 2:
            return 0.0, 0.0
        similar = np.array(compute_cosines_of_rows(every, self.vector))
        return float(similar.mean()), float(similar.std())

    def cosine_to_deviations(self, cosine: float | None) -> float | None:
        """Convert a cosine to standard deviations above the mean; None if unknown."""
        if cosine is None or self.vector is None:
            return None
        mean, deviation = self._similarity_stats
        return (cosine - mean) / deviation if deviation else None

    def _likeness_to_personal_prompts(self) -> float:
        assert self.vector is not None
        known = background.english_background_vectors()
        near = (sorted(compute_cosines_of_rows(of_kind, self.vector))[-_NEIGHBOURS:] for of_kind in known[1:])
        personal, general = (sum(similar) / _NEIGHBOURS for similar in near)
        return personal - general

    def judge_hits_of_prompt(
        self, found: Sequence[tuple[Candidate, Hit]], near: Neighbourhood, factor: float = 1.0
    ) -> floor.Judged:
        """Judge hits by words and the first model; see `judge_hits`. near: the messages around them."""
        similar = (
            {}
            if self.vector is None
            else nearest.cosines_by_place(self._db, [each for each, _ in found], self.vector)
        )
        shares = floor.measure_term_covers(self._db, self.question.terms, found, near)
        hits = []
        for place, (_, hit) in enumerate(found):
            of_hit = self.first_model_supports(hit.content)
            cosine = similar.get(place) if of_hit and self.is_supported_by_first_model else None
            least = floor.WORDS_ONLY if self.is_supported_by_first_model == of_hit else floor.OTHER_LANGUAGE
            hits.append(floor.Measured(hit, cosine, shares[place], least))
        return floor.judge_hits(hits, len(self.question.terms), factor)

    def lowest_score(self, best: float, far: Nearness | None, prompt_key: Key | None = None) -> float:
        """Return the lowest score an entry may have for this prompt.

        best: the best score of an entry. far: the greatest nearness by the multilingual model, if known.
        prompt_key: the key of the prompt's own message, if any.
        """
        if should_retrieve(self.text).reason in _SOCIAL:
            return SOFT_FLOOR
        weights = self.choose_weights_for_entry(far)
        if far is not None and self.multilingual_prompt is not None:
            likely = (
                weights.gate_best * far.nearer
                + weights.likeness * self.multilingual_prompt.likeness_to_personal_prompts()
            )
        elif self.vector is not None and self._is_bundled:
            likely = weights.gate_best * best + weights.likeness * self._likeness_to_personal_prompts()
        else:
            return weights.floor
        likely += weights.gate + (weights.first_person if FIRST_PERSON.search(self.text) else 0.0)
        has_names = self.language == ENGLISH and len(self.text) <= LONG
        names = find_capitalised_words(self.text) if has_names else []
        known = (is_name_known_in_store(self._db, name, prompt_key) for name in names)
        is_general = likely < weights.gate_least or not all(known)
        return SOFT_FLOOR if is_general else weights.floor


def compare_hits(
    db: Connection, prompt: ScoredPrompt, found: Sequence[tuple[Candidate, Hit]]
) -> list[tuple[float | None, float]]:
    """Return each hit's cosine similarity to the prompt, or None if unknown, and its cover."""
    terms = prompt.question.terms
    covers = floor.measure_term_covers(db, terms, found)
    near: dict[int, float] = {}
    if prompt.vector is not None:
        read = {
            place: each for place, each in enumerate(found) if prompt.first_model_supports(each[1].content)
        }
        of_read = nearest.cosines_by_place(db, [each for each, _ in read.values()], prompt.vector)
        near = {place: of_read[number] for number, place in enumerate(read) if number in of_read}
    root = len(terms) ** 0.5
    return [(near.get(place), cover * root) for place, cover in enumerate(covers)]


def is_name_known_in_store(db: Connection, name: str, prompt_key: Key | None = None) -> bool:
    """Whether `name` occurs in the store outside the message `prompt_key`."""
    stream, message = prompt_key or ("", "")
    for term in parse_query(name).terms:
        found = db.execute(
            "SELECT EXISTS (SELECT 1 FROM memory_chunks_fts WHERE memory_chunks_fts MATCH ?1)"
            " OR EXISTS (SELECT 1 FROM doc_chunks_fts WHERE doc_chunks_fts MATCH ?1)"
            " OR EXISTS (SELECT 1 FROM messages_fts f CROSS JOIN messages m WHERE messages_fts MATCH ?1"
            " AND m.message_no = f.rowid AND (m.stream, m.id) <> (?2, ?3))"
            " OR EXISTS (SELECT 1 FROM core_memory WHERE value LIKE '%' || ?4 || '%')"
            " OR EXISTS (SELECT 1 FROM messages WHERE name LIKE '%' || ?4 || '%')",
            (term, stream, message, name),
        )
        if found.fetchone()[0]:
            return True
    return False


def find_capitalised_words(text: str) -> list[str]:
    """Return words of an English text capitalised mid-sentence, except days and months."""
    names = []
    for found in _NAME.finditer(text):
        before = text[: found.start()].rstrip(" ")
        if before and before[-1] not in _BEGINS_A_SENTENCE:
            names.append(re.sub(r"['’]s?$", "", found[0]))
    english = stop_words()[ENGLISH]
    return [name for name in dict.fromkeys(names) if name.lower() not in _DATES | english]


def score_hits(
    prompt: ScoredPrompt, found: Iterable[ListedHit], prompt_key: Key | None = None
) -> list[tuple[Hit, EntryScore]]:
    """Score the hits, best first, dropping those that share neither words nor meaning with the prompt."""
    totals = []
    for each in found:
        meaning = prompt.cosine_to_deviations(each.cosine)
        lines = [(meaning, each.line), *each.lines]
        is_found = each.words or each.in_time or any(by is not None or words for by, words in lines)
        if each.far is None and not is_found:
            continue
        weights = prompt.choose_weights_for_entry(each.far)
        whole = _logit_of_entry(weights, each, meaning, each.words)
        of_lines = [(_logit_of_entry(weights, each, *line) - OF_A_LINE, line) for line in lines]
        line, parts = max(of_lines, key=itemgetter(0))
        is_of_a_line = line > whole
        totals.append(
            (each, parts if is_of_a_line else (meaning, each.words), max(whole, line), whole, is_of_a_line)
        )
    if not totals:
        return []
    far = max((each.far for each, *_ in totals if each.far), key=attrgetter("nearer"), default=None)
    floor = max(
        prompt.lowest_score(max(whole for *_, whole, _ in totals), far, prompt_key),
        max(total for _, _, total, *_ in totals) - BELOW_BEST,
    )
    rated = [
        (
            each.hit,
            EntryScore(
                total=round(total, 6),
                floor=round(floor, 6),
                meaning=meaning,
                words=words,
                multilingual=each.far and each.far.multilingual,
                nearer=each.far and each.far.nearer,
                is_of_a_line=is_of_a_line,
            ),
        )
        for each, (meaning, words), total, _, is_of_a_line in totals
    ]
    rated.sort(key=lambda each: (each[0].ts, each[0].id), reverse=True)
    return sorted(rated, key=lambda each: -each[1].total)


_OF_OWNER: Mapping[Owner, str] = {"fact": "fact", "message": "passage", "document": "document"}


def _logit_of_entry(weights: Weights, each: ListedHit, meaning: float | None, words: float) -> float:
    total = weights.base + weights.words * words + math.log(each.factor)
    if each.owner in _OF_OWNER:
        total += getattr(weights, _OF_OWNER[each.owner])
    if meaning is not None:
        total += weights.both_read + weights.meaning * meaning
    if each.far is not None:
        total += weights.multilingual * each.far.multilingual + weights.nearer * each.far.nearer
    return total


def entry_probability(score: EntryScore) -> float:
    """Convert a score to the probability that the entry belongs to the prompt."""
    return 1 / (1 + math.exp(-score.total))


def wrap_to_embed_once(models: Models) -> Models:
    """Wrap the models so that each embeds the same texts only once."""
    return Models(*(each and _EmbedsOnce(each) for each in models))


class _EmbedsOnce:
    def __init__(self, embedder: Embedder) -> None:
        self.id, self.dimension = embedder.id, embedder.dimension
        self.is_remote = embedder.is_remote
        self._embed = cache(embedder.embed)

    def embed(self, texts: Sequence[str], kind: TextKind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        return self._embed(tuple(texts), kind)
