"""Results say whether they are good by `passed`, and refuse to be conditions."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

import evalstone
from evalstone import (
    Failed,
    Live,
    Score,
    ScriptedJudge,
    Skipped,
    audit,
    calibrate,
    compare,
    drift,
    evaluate,
    gate,
    guard,
    score,
)
from evalstone._core.truth import PASSED, NoTruthValue, all_passed
from evalstone.compat.spring import EvaluationRequest, FactCheckingEvaluator, JudgeEvaluator
from evalstone.judge_quality.perturbations import CHECKED
from evalstone.live import Guard, ListedScore, WatchedMean
from evalstone.questions import ClaimVerdict, JudgeAnswer, PlanCriterion, PlanReview, StepVerdict
from evalstone.questions.base import Question, answer_type
from evalstone.questions.claims import ListClaims, VerifyClaims
from evalstone.report.shown import Shown
from evalstone.results.audit import Audit
from evalstone.results.members import CompositeVerdict
from evalstone.run.notifier import SampleResult
from evalstone.stats.comparison import ComparisonVerdict
from evalstone.stats.drift import Drift
from evalstone.stats.gates import GateVerdict
from evalstone.stats.mean_watch import WatchVerdict
from evalstone.testing.fixture import Evalstone
from tests.fakes import claims, verdicts
from tests.runs import Given, run_of

ROOMS = ("results", "stats", "types", "live", "compat", "run", "testing", "judge_quality", "ledger")
OF_THE_MACHINERY = {"Look", "RunGate"}
"""They have a verdict, and never leave the command line."""
PLAIN = frozenset(
    [
        "Answer",
        "Dataset",
        "GradedScorer",
        "Interval",
        "Judge",
        "Message",
        "Middleware",
        "Note",
        "Prompt",
        "RunMetadata",
        "Sample",
        "ScoreList",
        "Scorer",
        "ScorerCoverage",
        "ScorerInfo",
        "Submission",
        "Usage",
        "View",
    ]
)
"""What public functions return that is no result: nobody asks whether it is good."""

BAD, GOOD = ["0", "0.1"] * 30, ["1", "0.9"] * 30


def _classes() -> Iterator[type[Any]]:
    for room in ROOMS:
        package = importlib.import_module(f"evalstone.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"evalstone.{room}."):
            if not module.name.endswith("__main__"):
                for name, kind in vars(importlib.import_module(module.name)).items():
                    if inspect.isclass(kind) and kind.__module__ == module.name and not name.startswith("_"):
                        yield kind


CLASSES = sorted(set(_classes()), key=lambda kind: kind.__qualname__)


def _names(kind: type[Any]) -> set[str]:
    fields = (vars(base).get("__annotations__", {}) for base in kind.__mro__)
    return {*dir(kind), *(name for own in fields for name in own)}


VERDICTS = [kind for kind in CLASSES if "verdict" in _names(kind) and kind.__name__ not in OF_THE_MACHINERY]


@pytest.mark.parametrize("kind", VERDICTS, ids=lambda kind: kind.__qualname__)
def test_what_has_a_verdict_has_passed_and_is_no_condition(kind: type[Any]) -> None:
    assert "passed" in _names(kind)
    assert issubclass(kind, NoTruthValue)


def test_the_verdicts_are_found() -> None:
    names = {kind.__name__ for kind in VERDICTS}
    assert names >= {"Gate", "Decision", "Drift", "ScorerComparison", "ScorerWatch", "MemberComparison", "MeanWatch"}


def _functions() -> Iterator[Callable[..., Any]]:
    for name in dir(evalstone):
        if inspect.isfunction(value := getattr(evalstone, name)):
            yield value
    for kind in (evalstone.Run, evalstone.Comparison, evalstone.Gate, Live, Guard, JudgeEvaluator, Evalstone):
        for name, value in inspect.getmembers(kind):
            function = value.fget if isinstance(value, property) else value
            if inspect.isfunction(function) and (not name.startswith("_") or name in ("__call__", "__getitem__")):
                yield function


def _returned() -> dict[str, str]:
    """The names of classes in what public functions return, with one of the functions."""
    return {
        word: function.__qualname__
        for function in _functions()
        for word in re.findall(r"[A-Z]\w*", str(inspect.get_annotations(function).get("return", "")))
    }


def test_every_result_of_a_public_function_is_no_condition() -> None:
    known = {kind.__name__ for kind in CLASSES}
    refusing = {kind.__name__ for kind in CLASSES if issubclass(kind, NoTruthValue)}
    forgotten = {name: by for name, by in _returned().items() if name in known - refusing - PLAIN}
    assert forgotten == {}
    assert _returned().keys() & refusing >= {"Run", "Gate", "Record", "GuardVerdict", "EvaluationResponse", "Audit"}


def _parts(hint: Any) -> Iterator[type[Any]]:
    """The dataclasses in a type, and in their fields."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
        for inner in get_type_hints(hint).values():
            yield from _parts(inner)
    for inner in get_args(hint):
        yield from _parts(inner)


def _questions(kind: type[Any] = Question) -> Iterator[type[Any]]:
    for own in kind.__subclasses__():
        yield from (own, *_questions(own))


def test_every_answer_of_a_judge_is_no_condition() -> None:
    assert all(getattr(evalstone.scorers, name) for name in dir(evalstone.scorers))  # imports all of them
    ours = [kind for kind in _questions() if kind.__module__.startswith("evalstone.") and hasattr(kind, "kind")]
    answers = {part for kind in ours for part in _parts(answer_type(kind))}
    assert answers >= {ClaimVerdict, PlanReview, PlanCriterion, StepVerdict}
    assert {kind for kind in answers if not issubclass(kind, NoTruthValue)} == set()
    assert ".value" in refuses(JudgeAnswer(value="no", judge="j"))


def test_a_listed_score_and_a_watched_mean_are_no_conditions() -> None:
    assert issubclass(ListedScore, NoTruthValue)
    assert issubclass(WatchedMean, NoTruthValue)


def test_what_is_shown_is_no_condition_except_a_list() -> None:
    usable = {kind.__name__ for kind in CLASSES if issubclass(kind, Shown) and kind.__bool__ is not Shown.__bool__}
    assert usable == {"ScoreList"}


def test_every_word_of_a_verdict_is_good_bad_or_undecided() -> None:
    of_drift = inspect.get_annotations(Drift, eval_str=True)["verdict"]
    words = (GateVerdict, ComparisonVerdict, CompositeVerdict, WatchVerdict, of_drift)
    assert {word for verdict in words for word in get_args(verdict)} == PASSED.keys()


@pytest.mark.parametrize(
    ("parts", "passed"),
    [([], None), ([True], True), ([True, None], None), ([True, None, False], False), ([None], None), ([False], False)],
)
def test_parts_pass_together_if_all_do(parts: list[bool | None], passed: bool | None) -> None:
    assert all_passed(parts) is passed


def refuses(result: object) -> str:
    with pytest.raises(TypeError) as raised:
        assert result
    return str(raised.value)


@pytest.mark.parametrize(
    ("answers", "alpha", "passed"), [(GOOD, 0.05, True), (BAD, 0.05, False), (GOOD[:2], 0.05, None), (BAD, None, False)]
)
def test_a_gate_and_its_decisions_pass_or_fail_or_are_undecided(
    answers: list[str], alpha: float | None, passed: bool | None
) -> None:
    result = gate(run_of(answers), min={"given": 0.8}, alpha=alpha)
    assert (result.passed, result.decisions[0].passed) == (passed, passed)
    assert ".passed" in refuses(result)
    assert ".passed" in refuses(result.decisions[0])


@pytest.mark.parametrize(("b", "passed"), [(GOOD, True), (BAD, False)])
def test_a_comparison_passes_if_no_scorer_is_worse(b: list[str], passed: bool) -> None:
    result = compare(run_of(["0.5"] * 60), run_of(b))
    assert (result.passed, result["given"].passed) == (passed, passed)
    assert ".passed" in refuses(result)
    assert ".passed" in refuses(result["given"])


def test_a_comparison_without_a_difference_is_undecided_without_a_margin() -> None:
    run, other = run_of(GOOD * 4), run_of(GOOD * 4)
    assert compare(run, other).passed is None
    assert compare(run, other, margin=0.2, max_change=0.2).passed is True


@pytest.mark.parametrize(
    ("before", "now", "passed"), [(GOOD, GOOD, True), (GOOD, BAD, False), (GOOD[:2], GOOD[:2], None)]
)
def test_a_judge_passes_if_it_did_not_drift(before: list[str], now: list[str], passed: bool | None) -> None:
    earlier, later = run_of(before), run_of(now)
    rescored = type(earlier).from_dict(earlier.to_dict(), later.records)
    result = drift(earlier, rescored, tolerance=0.2)
    assert (result.passed, result["given"].passed, result["given"].drift.passed) == (passed, passed, passed)
    assert ".passed" in refuses(result)
    assert ".passed" in refuses(result["given"])


def test_a_guard_and_its_verdict_are_no_conditions() -> None:
    check = guard(min={"faithfulness": 0.9})
    verdict = check(output="Rome is on Mars.", context=["Rome is in Italy."])
    assert verdict.passed is False
    assert ".passed" in refuses(verdict)
    assert "called" in refuses(check)


def test_the_response_of_an_evaluator_is_no_condition() -> None:
    request = EvaluationRequest("", ["Rome is in Italy."], "Rome is on Mars.")
    response = FactCheckingEvaluator("lexical").evaluate(request)
    assert response.passed is False
    assert ".passed" in refuses(response)


@pytest.mark.parametrize(
    ("outcome", "instead"),
    [(Score(0.0), ".value"), (Skipped("no context"), "isinstance"), (Failed("no reply"), "isinstance")],
)
def test_an_outcome_has_no_threshold_and_so_does_not_pass(outcome: object, instead: str) -> None:
    assert instead in refuses(outcome)
    assert not hasattr(outcome, "passed")


def test_a_record_a_run_and_its_summaries_are_no_conditions() -> None:
    record = score("exact_match", output="no", reference="yes")
    run = run_of(GOOD)
    assert ".value" in refuses(record)
    assert ".passed" in refuses(run)
    assert ".mean" in refuses(run["given"])
    seen: list[SampleResult] = []
    evaluate([{"output": "a", "reference": "a"}], "exact_match", ledger=None, on_sample=seen.append)
    assert ".records" in refuses(seen[0])


@pytest.mark.parametrize(
    ("scores", "labels", "passed"),
    [
        ("10" * 20, "10" * 20, True),
        ("10" * 20, "01" * 20, False),
        ("11" * 20, "10" * 20, False),
        ("10" * 20, "11" * 20, None),
        ("10", "10", None),
    ],
    ids=["agrees", "says the opposite", "says yes to everything", "labels are all alike", "too few labels"],
)
def test_a_calibration_passes_if_the_judge_tells_good_from_bad(scores: str, labels: str, passed: bool | None) -> None:
    pairs = zip(scores, labels, strict=True)
    rows = [
        {"id": str(n), "input": f"Question {n}?", "output": output, "label": int(label)}
        for n, (output, label) in enumerate(pairs)
    ]
    result = calibrate(rows, Given(), ledger=None)
    assert result.passed is passed
    assert ".passed" in refuses(result)


def _audited(reply: Callable[[Question[Any]], Any], samples: int) -> Audit:
    rows = [{"id": str(n), "output": f"Claim {n} is wrong.", "context": [f"Fact {n}."]} for n in range(samples)]
    config: Any = {"perturbations": ("injection_checked",)}
    return audit(rows, "faithfulness", judge=ScriptedJudge(reply), ledger=None, **config)


def _follows_the_text(question: Question[Any]) -> Any:
    return _claims_and(lambda n: CHECKED in str(question.inputs()), question)


def _is_firm(question: Question[Any]) -> Any:
    return _claims_and(lambda n: n % 2 == 0, question)


def _claims_and(supports: Callable[[int], bool], question: Question[Any]) -> Any:
    if isinstance(question, ListClaims):
        return claims(question.text)
    assert isinstance(question, VerifyClaims)
    number = int(question.claims[0].split()[1])
    return verdicts("supported" if supports(number) else "not_mentioned")


@pytest.mark.parametrize(
    ("reply", "samples", "passed"), [(_follows_the_text, 12, False), (_is_firm, 12, True), (_is_firm, 2, None)]
)
def test_an_audit_passes_if_enough_samples_show_no_effect(
    reply: Callable[[Question[Any]], Any], samples: int, passed: bool | None
) -> None:
    result = _audited(reply, samples)
    assert result.passed is passed
    assert ".passed" in refuses(result)
    assert ".affected" in refuses(result["repeat"])
