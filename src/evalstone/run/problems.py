"""What a result says of its judges and its problems, from the summaries of its scorers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from evalstone.results.run_notes import DOUBTFUL_CITATIONS, DROPPED_ITEMS, KEPT_REASONING, LEFT_OUT_REASONING
from evalstone.results.summary import WITHOUT, ScorerSummary


def named_judges(planned: Iterable[str], notes: Mapping[str, str], summary: Iterable[ScorerSummary]) -> tuple[str, str]:
    """The judges of a run, and their notes.

    Args:
        planned: The identities of the judges that its scorers are known to ask.
        notes: The notes of judges, by their identities.
        summary: The summaries of its scorers. Custom scorers may pass judges of their own to `ask`.
    """
    asked = tuple(dict.fromkeys(identity for line in summary for identity in line.judges))
    reduced = {identity.rpartition(WITHOUT)[0] for identity in asked} - set(asked)
    judges = tuple(dict.fromkeys((*(identity for identity in planned if identity not in reduced), *asked)))
    of_judges = (notes.get(judge.partition(WITHOUT)[0], "") for judge in judges)
    return ", ".join(judges) or "none", "\n".join(filter(None, of_judges))


def problems(
    warnings: Mapping[str, int],
    summary: Sequence[ScorerSummary],
    dropped: int,
    reasoned: int,
    *,
    keep_reasoning: bool,
) -> dict[str, int]:
    """The problems of a run, with their counts.

    Args:
        warnings: Errors that were retried, such as "HTTP 429".
        summary: The summaries of its scorers.
        dropped: The number of items that were dropped from answers.
        reasoned: The number of outputs that begin with reasoning.
        keep_reasoning: Whether reasoning was scored.
    """
    counted = {
        "malformed replies": sum(line.corrections for line in summary),
        DROPPED_ITEMS: dropped,
        KEPT_REASONING if keep_reasoning else LEFT_OUT_REASONING: reasoned,
        DOUBTFUL_CITATIONS: sum(line.doubtful_citations for line in summary),
    }
    refused = sum((Counter(line.refused_settings) for line in summary), Counter[str]())
    counted |= {f"{name} refused": times for name, times in refused.items()}
    return {**warnings, **{name: times for name, times in counted.items() if times}}
