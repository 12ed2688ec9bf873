"""In a sentence each: what a run's judges of judges did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LONGEST = 200


def judging_told(judging: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for each judge made of judges, from `Run.judging`."""
    for judge, counts in judging.items():
        yield f"{_name(judge)}: {_cascade(counts) if counts['kind'] == 'cascade' else _vote(counts)}"


def _cascade(counts: Mapping[str, Any]) -> str:
    saved, cost = counts["saved_calls"], counts["saved_cost"]
    told = f"{counts['escalated']:g} of {counts['questions']} questions escalated ({counts['share']:.0%}), "
    told += f"{saved} calls of {_name(counts['then'])} saved"
    return f"{told}, about ${cost:.4f}" if cost else told


def _vote(counts: Mapping[str, Any]) -> str:
    told = f"{counts['questions']} questions"
    if counts["verdicts"]:
        told += f", {counts['verdicts']} verdicts with a mean agreement of {counts['agreement']:.3f}"
        told += f" and {counts['entropy']:.3f} bits of entropy"
        if "flip_rate" in counts:
            told += f", flip rate {counts['flip_rate']:.3f}"
    if counts["silent"]:
        told += "; no answer from " + ", ".join(f"{_name(name)} ({count})" for name, count in counts["silent"].items())
    return told


def _name(judge: str) -> str:
    """A judge's identity, its middle left out where it is so long that it would hide what is said of it."""
    return judge if len(judge) <= LONGEST else f"{judge[: LONGEST // 2]}…{judge[-LONGEST // 2 :]}"
