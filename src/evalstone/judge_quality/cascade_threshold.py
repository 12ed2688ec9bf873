"""A cascade's threshold from labeled samples: how often the samples that the primary decides alone are judged wrongly.

The samples are judged with the threshold 0: the primary's answers are kept wherever they have a probability. A higher
threshold t keeps all answers of exactly those samples whose least probable kept answer reaches t, so their scores are
these. The others escalate, in whole or in part. The threshold is certified on the former (`stats.certified_threshold`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from evalstone._core.display import count
from evalstone._core.guards import is_number
from evalstone._core.json import content_hash
from evalstone.errors import ConfigError, invalid
from evalstone.judges.cascade import Cascade
from evalstone.stats.selective_risk import SelectiveRisk, certified_threshold, why_not_certified
from evalstone.types import Record


def check_risk(risk: object) -> None:
    """Raise ConfigError for anything but a number between 0 and 1."""
    if not is_number(risk) or not 0 < risk < 1:
        raise ConfigError(invalid("risk", "a number between 0 and 1", risk))


def keeping_all(cascade: Cascade) -> Cascade:
    """The cascade that keeps every answer of the primary with a probability."""
    return replace(cascade, threshold=0.0)


def name_before_choice(cascade: Cascade) -> str:
    """How the cascade is named while it has no threshold."""
    return f"cascade({cascade.primary.identity}, {cascade.fallback.identity})"


def certify(
    cascade: Cascade,
    records: Iterable[Record],
    right: Mapping[str, bool],
    clusters: Mapping[str, str],
    risk: float,
    aligned_with: Collection[str] = (),
) -> SelectiveRisk:
    """The lowest threshold that is shown to keep to a risk.

    Args:
        cascade: The one of `keeping_all`.
        records: What it gave.
        right: By ID of the samples with a score and a truth, whether the verdict is right.
        clusters: By ID of a sample, its cluster; "" if it stands alone. Of a cluster, whose samples aren't independent,
            one counts.
        risk: The largest share of wrong verdicts among the samples that the primary decides alone, in (0, 1).
        aligned_with: IDs of the samples whose labels the primary was aligned with. It errs less on these than on
            others, so neither they nor their clusters show anything.

    Raises:
        ConfigError: The labels don't show it for any threshold.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.sample_id in right:
            groups.setdefault(_cluster(record.sample_id, clusters), []).append(record)
    of_aligned = {_cluster(name, clusters) for name in aligned_with}
    known = [groups.pop(cluster) for cluster in of_aligned if cluster in groups]
    # The choice must not depend on who was right.
    alone = [listed[int(content_hash(name)[:8], 16) % len(listed)] for name, listed in groups.items()]
    probabilities = [_probability(record, cascade.identity) for record in alone]
    wrong = [not right[record.sample_id] for record in alone]
    if (found := certified_threshold(probabilities, wrong, risk)) is not None:
        return found
    left = sum(map(len, groups.values()))
    of_clusters = "" if len(alone) == left else f" (one of each of {len(alone)} clusters counts)"
    n_aligned = sum(record.sample_id in aligned_with for listed in known for record in listed)
    n_beside = sum(map(len, known)) - n_aligned
    beside = f" and the {n_beside} of the same clusters" if n_beside else ""
    of_known = f"; the {count(n_aligned, 'label')} that it was aligned with{beside} show nothing" if known else ""
    raise ConfigError(
        f"the labels don't show for any threshold that at most {risk:.1%} of the samples that "
        f"{cascade.primary.identity} decides alone are judged wrongly: {why_not_certified(probabilities, wrong, risk)}"
        f"{of_clusters}{of_known}; allow more, label more, or ask {cascade.fallback.identity} alone"
    )


def _cluster(name: str, clusters: Mapping[str, str]) -> str:
    """The cluster of a sample; one of its own if it stands alone."""
    return clusters[name] or f"\0{name}"


def _probability(record: Record, cascade: str) -> float | None:
    """The probability of the least probable verdict that the primary gave alone; None if there is none, or if a part of
    an answer escalated, because a higher threshold may escalate more of it. A list of claims is no verdict: a primary
    that splits texts into sentences is sure of it, whoever judges them."""
    found = (call.detail or {} for call in record.calls if call.judge == cascade)
    details = [detail for detail in found if detail.get("kind") == "cascade"]
    shares = [detail["escalated"] for detail in details]
    if any(0 < share < 1 for share in shares):
        return None
    return min(
        (detail["probability"] for detail, share in zip(details, shares, strict=True) if not share), default=None
    )
