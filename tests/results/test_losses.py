"""Where low answers are lost: in retrieval, in generation, or nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evalstone import Run, Sample, Score, Scorer, Skipped, evaluate
from evalstone.report.view import SampleView
from evalstone.results.losses import LossRule, loss_note
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.run import run_view


def scorer(name: str, place: int, *, lower: bool = False) -> Scorer:
    """A scorer of this name, which reads its score from this word of the answer; "-" is skipped."""

    def score(self: Any, *, output: str) -> Score | Skipped:
        word = output.split()[place]
        return Skipped("no score") if word == "-" else Score(float(word) * self.scale)

    return type(name, (Scorer,), {"name": name, "lower_is_better": lower, "score": score, "__doc__": "Words."})()


def run_of(answers: Sequence[str], *scorers: Scorer) -> Run:
    samples = [Sample(id=f"s{n}", input="?", output=answer) for n, answer in enumerate(answers)]
    return evaluate(samples, list(scorers), ledger=None)


PAIR = scorer("factual_correctness", 0), scorer("context_recall", 1)
ANSWERS = ["0.1 0.2", "0.4 0.5", "0.4 0.4999", "0.5 0", "1 1", "- 0", "0.2 -"]


def test_low_answers_are_lost_in_retrieval_in_generation_or_nobody_knows() -> None:
    found = loss_note(run_of(ANSWERS, *PAIR))
    assert found is not None
    assert {name: found[name] for name in ("answers", "unscored", "low", "retrieval", "generation", "unknown")} == {
        "answers": 7,
        "unscored": 1,
        "low": 4,
        "retrieval": 2,
        "generation": 1,
        "unknown": 1,
    }
    assert (found["answer"], found["passages"]) == ("factual_correctness", "context_recall")


@pytest.mark.parametrize("scorers", [PAIR[:1], PAIR[1:], (scorer("rouge_l", 0), PAIR[1])])
def test_nothing_is_said_without_the_scorers_for_it(scorers: Sequence[Scorer]) -> None:
    run = run_of(ANSWERS, *scorers)
    assert loss_note(run) is None
    assert all(note.kind != "losses" for note in run.notes)
    assert all(sample.loss == "" for sample in listed(run))


def test_nothing_is_said_if_no_answer_is_low() -> None:
    assert loss_note(run_of(["0.5 0", "- 0"], *PAIR)) is None


def test_passages_that_are_judged_by_the_answer_say_nothing() -> None:
    assert loss_note(run_of(["0 0", "0 0.01"], PAIR[0], scorer("context_precision", 1))) is None


def test_scores_that_compare_with_a_reference_decide_and_lower_may_be_better() -> None:
    hallucination = scorer("hallucination", 0, lower=True)
    faithful = scorer("faithfulness", 1)
    infos = [ScorerInfo(name=each.name, signature=each.name, scale=1, lower_is_better=False) for each in PAIR]
    rule = LossRule.of([ScorerInfo(name="faithfulness", signature="f", scale=1, lower_is_better=False), *infos])
    assert rule is not None
    assert rule.answer.name == "factual_correctness"
    found = loss_note(run_of(["0.9 1 0", "0.1 0 0", "0.9 1 1"], hallucination, scorer("context_recall", 2)))
    assert found is not None
    assert (found["low"], found["retrieval"], found["generation"], found["lower_is_better"]) == (2, 1, 1, True)
    found = loss_note(run_of(["0.9 1 0"], hallucination, faithful, scorer("context_recall", 2)))
    assert found is None  # faithfulness is 1


def listed(run: Run) -> list[SampleView]:
    view = run_view(run)
    assert view.samples is not None
    return list(view.samples.samples)


def test_reports_say_it_of_the_run_and_of_each_sample() -> None:
    run = run_of(ANSWERS, *PAIR)
    assert [note.kind for note in run.notes if note.kind == "losses"] == ["losses"]
    assert [each.loss for each in listed(run)] == [
        "retrieval: the passages lack what the answer needs (factual_correctness 0.1, context_recall 0.2)",
        "generation: the passages had what the answer needs (factual_correctness 0.4, context_recall 0.5)",
        "retrieval: the passages lack what the answer needs (factual_correctness 0.4, context_recall 0.5)",
        "",
        "",
        "",
        "unknown: no score tells what the passages had (factual_correctness 0.2)",
    ]
    line = "Of 4 answers with factual_correctness below 0.5, 2 lack the passage"
    assert run_view(run).sections[0].lead[0].startswith(line)
    for text in (str(run), run.to_html()):
        assert line in " ".join(text.split())
    assert "loss: retrieval" in run.to_markdown()
