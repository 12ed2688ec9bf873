"""OpenTelemetry counts asked, shared and cached calls as the summary of the run does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalstone import Cascade, ModelJudge, Panel, Run, evaluate
from tests.otel.emitted import Emitted, attributes
from tests.run.batch_runs import Call
from tests.run.conftest import run, server
from tests.run.test_composites import Paid
from tests.serving import completion, serving

SAMPLES: list[dict[str, Any]] = [
    {"id": f"q{n}", "output": f"Ada was {n}.", "context": [f"Ada was {n}."]} for n in range(4)
]
BOTH = ["faithfulness", "hallucination"]
__all__ = ["run", "server"]


def malformed(*_: Any) -> Any:
    return completion("no JSON")


def counted(*runs: Run) -> dict[str, int]:
    lines = [line for run in runs for line in run.summary]
    totals = {source: sum(getattr(line, source) for line in lines) for source in ("asked", "shared", "cached")}
    return {source: number for source, number in totals.items() if number}


def exported(emitted: Emitted) -> dict[Any, int]:
    counts: Counter[Any] = Counter()
    for key, point in emitted.metric("evalstone.judge.calls").items():
        assert set(dict(key)) == {"evalstone.judge", "evalstone.source"}
        counts[dict(key)["evalstone.source"]] += point.value
    return dict(counts)


@pytest.mark.parametrize(
    "judge",
    ["lexical", Paid("one"), Panel(Paid("one"), Paid("two")), Cascade(Paid("sure", sure=0.99), Paid("dear"))],
    ids=["lexical", "a judge", "a panel", "a cascade"],
)
def test_calls_are_counted_as_in_the_summary(emitted: Emitted, judge: Any, tmp_path: Path) -> None:
    with emitted.enabled():
        runs = [evaluate(SAMPLES, BOTH, judge=judge, ledger=tmp_path / "l.db") for _ in range(2)]
    assert exported(emitted) == counted(*runs)
    assert counted(*runs)["shared"] > 0


def test_spans_name_where_an_answer_is_from(emitted: Emitted, tmp_path: Path) -> None:
    with serving() as server, emitted.enabled():
        judge = ModelJudge("vllm/small", base_url=server.url, prices=(1.0, 2.0))
        for scorers in (BOTH, ["faithfulness(scale=10)"]):
            evaluate(SAMPLES, scorers, judge=judge, ledger=tmp_path / "l.db")
    spans = {name: emitted.named(f"{name} ") for name in ("chat", "shared", "cached")}
    assert {name: len(found) for name, found in spans.items()} == {"chat": 8, "shared": 8, "cached": 8}
    sources = {name: {attributes(span)["evalstone.source"] for span in found} for name, found in spans.items()}
    assert sources == {"chat": {"asked"}, "shared": {"shared"}, "cached": {"cached"}}


def test_a_shared_failure_is_no_call(emitted: Emitted) -> None:
    with serving(malformed) as server, emitted.enabled():
        judge = ModelJudge("vllm/small", base_url=server.url, prices=(1.0, 2.0), retries=0)
        run = evaluate(SAMPLES[:1], BOTH, judge=judge, ledger=None)
    assert exported(emitted) == counted(run) == {"asked": 1}
    assert len(emitted.named("shared ")) == 1


@pytest.mark.usefixtures("server")
def test_calls_in_batches_are_counted_once_over_all_rounds(emitted: Emitted, run: Call) -> None:
    with emitted.enabled():
        for _ in range(2):
            run(*BOTH)
        done = run(*BOTH)
        again = run(*BOTH)
    assert exported(emitted) == counted(done, again) == {"asked": 8, "shared": 16, "cached": 8}
