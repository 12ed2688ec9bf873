"""The labeled grounding data, read and measured: what `train_lexical.py` fits the lexical judge to."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalstone._core.text import sentences, words
from evalstone.judges.lexical.claim_splitter import is_refusal, list_claims
from evalstone.judges.lexical.classifier import differs
from evalstone.judges.lexical.features import evidence, word_overlap
from evalstone.judges.lexical.features import read as read_claim
from evalstone.judges.lexical.model import SHORT, lexicon, pooled
from evalstone.judges.lexical.normalization import comparable_low, parts
from evalstone.judges.lexical.passages import Passages, prepared
from evalstone.judges.lexical.tokens import Lexicon, stems_of

RAGTRUTH = ("ragtruth_qa", "ragtruth_summary", "ragtruth_data2txt")
DATA_SETS = (*RAGTRUTH, "mtrag_human", "factcheckgpt", "faithdial_audit", "summedits", "storysumm")
DIALOGUE = "faithdial_audit"
CORPORA = {"wow": "Wizard of Wikipedia", "cmu": "CMU-DoG", "topical": "TopicalChat"}
FEWEST_DOCUMENTS = 2

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One response, measured.

    supported: the label. pooled: the measures over its claims. claims: those of each claim. claim_labels: for each
    claim, whether it is supported; empty where that is not known. overlap: the word overlap of the whole response.
    plain_overlaps: the same from the words as they are written, all of them and each once; what the judge is compared
    with. fields: whether the context is fields and values. short: whether the response is. refusal: whether it only
    says that the answer is unknown. conflict: whether some claim has another figure, negation, name, unit or opposite
    than its sentence. contradicts_field: whether some claim states a field that is false in a structured context.
    """

    data_set: str
    group: str
    supported: bool
    pooled: Sequence[float]
    claims: Sequence[Sequence[float]]
    claim_labels: Sequence[bool]
    overlap: float
    plain_overlaps: tuple[float, float]
    fields: bool
    short: bool
    refusal: bool
    conflict: bool
    contradicts_field: bool


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a dataset."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def counted(rows: Sequence[Mapping[str, Any]]) -> tuple[int, dict[str, int]]:
    """The number of texts (parts of contexts, and responses, each once), and how many of them have each stem."""
    texts = dict.fromkeys(part for row in rows for part in (*parts(row["context"]), row["response"]))
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(stems_of(comparable_low(text))))
    return len(texts), {stem: count for stem, count in sorted(counts.items()) if count >= FEWEST_DOCUMENTS}


def measured(
    name: str, rows: Sequence[Mapping[str, Any]], words: Lexicon, *, boolean_fields: bool = True
) -> Iterator[Row]:
    """The rows of a dataset, measured. Neighbors mostly share their context, which is read once for them.

    boolean_fields: whether the rule for fields that are a yes or a no is applied.
    """
    last, passages = "", prepared((), words)
    for row in rows:
        if row["context"] != last:
            last = row["context"]
            passages = prepared((last,), words)
            if not boolean_fields:
                passages = replace(passages, fields=())
        yield _row(name, row, passages)


def _row(name: str, row: Mapping[str, Any], passages: Passages) -> Row:
    response = str(row["response"])
    claims, low = list_claims(response), comparable_low(response)
    evidences = [evidence(claim, passages) for claim in claims]
    found = [one.values for one in evidences]
    supported = row["label"] == 0
    return Row(
        data_set=name,
        group=str(row["group"]),
        supported=supported,
        pooled=pooled(found, [one.size for one in evidences]),
        claims=found,
        claim_labels=_claim_labels(row, claims, supported),
        overlap=word_overlap(low, passages),
        plain_overlaps=_plain_overlaps(response, str(row["context"])),
        fields=passages.structured,
        short=len(low) <= SHORT,
        refusal=not claims and all(map(is_refusal, sentences(response))),
        conflict=any(map(differs, evidences)),
        contradicts_field=any(one.contradicting for one in evidences),
    )


def _plain_overlaps(response: str, context: str) -> tuple[float, float]:
    own, have = words(response), set(words(context))
    different = set(own)
    if not own:
        return 1.0, 1.0
    return sum(word in have for word in own) / len(own), len(different & have) / len(different)


def dialogues(rows: Sequence[Mapping[str, Any]], lexicon: Lexicon) -> dict[str, list[Mapping[str, Any]]]:
    """Statements beside a right and a wrong source, from each corpus of FaithDial's audit.

    Each supported response stands beside its own source, and, as not supported, beside the other source of its corpus
    that shares most words with it. The audit's unsupported responses are in it as they are. Responses without a claim
    are in it only beside the wrong source: the audit calls them supported, other data not attributable.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for corpus in CORPORA:
        own = [row for row in rows if row["id"].startswith(f"gold-{corpus}-")]
        sources = {row["context"]: read_claim(row["context"]).content for row in own}
        right = [row for row in own if list_claims(row["response"])]
        wrong = [
            {**row, "context": _nearest_other(row, sources, lexicon), "label": 1} for row in own if row["label"] == 0
        ]
        found[f"dialogue_{corpus}"] = [*right, *wrong]
    return found


def _nearest_other(row: Mapping[str, Any], sources: Mapping[str, frozenset[str]], lexicon: Lexicon) -> str:
    have = read_claim(row["response"]).content
    # Sources of one conversation often start alike.
    others = [source for source in sources if source[:60] != row["context"][:60]]
    return max(others, key=lambda source: (lexicon.weight(have & sources[source]), source))


def _claim_labels(row: Mapping[str, Any], claims: Sequence[str], supported: bool) -> Sequence[bool]:
    """Which claims are supported: those that no marked span touches, or the one claim that the label is of."""
    if "spans" not in row:
        return [supported] if len(claims) == 1 else []
    found: list[bool] = []
    for claim in claims:
        # A lead-in may have been cut off, and then the first letter changed.
        start = row["response"].find(claim[1:])
        end = start + len(claim)
        found.append(start < 0 or not any(first < end and start < last for first, last, *_ in row["spans"]))
    return found


def words_of(documents: int, counts: Mapping[str, int]) -> Lexicon:
    """The weights of stems that counts give."""
    return lexicon(documents, counts)
