"""Cascades: what is escalated, and which threshold the labels ask for."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import Cascade, LexicalJudge, Panel
from evalstone._core.prompts import Prompt
from evalstone.api import fit_cascade
from evalstone.errors import ConfigError, DataError, JudgeDeclined, JudgeError, JudgeUnavailable, ProviderError
from evalstone.judges import CascadeFit, LabeledQuestion, ScriptedJudge
from evalstone.judges.base import Judge
from evalstone.judges.cascade import Case, CurvePoint, fit_threshold, thresholds
from evalstone.models.provider import Completion
from evalstone.questions import ClaimSupported, ClaimVerdict, GradeGrounding, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.custom import Choose
from evalstone.stats import SelectiveRisk
from tests.fakes import Load, verdicts
from tests.judge_names import bare
from tests.serving import completion, serving

YES_NO = ClaimSupported(claim="c", context=("p",))
VERIFY = VerifyClaims(claims=("x", "y", "z"), context=("p",))
CHOOSE = Choose(values=(("text", "x"),), prompt=Prompt("", "{{text}}"), choices=("good", "bad"))


def sure(word: str, probability: float | None, name: str = "cheap") -> ScriptedJudge:
    return ScriptedJudge(
        lambda _: Completion(f'{{"reason": "", "verdict": "{word}"}}', probability=probability), name=name
    )


def asked(judge: Judge, question: Question[Any] = YES_NO) -> JudgeAnswer[Any]:
    return asyncio.run(judge.answer(question))


class Raising(Judge, kw_only=False):
    """Raises an error for every question."""

    error: Exception

    @property
    def identity(self) -> str:
        return "raising"

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        raise self.error


@pytest.mark.parametrize(
    ("probability", "word", "escalated"),
    [(0.95, "yes", 0.0), (0.9, "yes", 0.0), (0.89, "no", 1.0), (None, "no", 1.0)],
)
def test_the_second_is_asked_where_the_first_is_less_sure_than_wanted(
    probability: float | None, word: str, escalated: float
) -> None:
    dear = sure("no", 0.7, "dear")
    answer = asked(Cascade(sure("yes", probability), dear, threshold=0.9))
    assert answer.value.verdict == word
    assert len(dear.asked) == escalated
    detail: Any = answer.detail
    assert (detail["escalated"], detail["probability"]) == (escalated, probability)
    assert answer.probability == (0.7 if escalated else probability)
    assert [call.judge for call in answer.members] == ["cheap", "dear"][: 1 + int(escalated)]


def test_what_the_first_cannot_answer_goes_to_the_second() -> None:
    for error in (JudgeDeclined("not mine"), ProviderError("gone", cost=0.5)):
        answer = asked(Cascade(Raising(error), sure("no", None, "dear")))
        detail: Any = answer.detail
        assert answer.value.verdict == "no"
        assert detail["why"] == f"no answer: {error}"
        assert answer.cost == error.cost


def test_what_ends_a_run_is_not_escalated_and_the_seconds_error_is_the_cascades() -> None:
    with pytest.raises(JudgeUnavailable):
        asked(Cascade(Raising(JudgeUnavailable("down")), sure("no", None, "dear")))
    with pytest.raises(ProviderError, match="gone") as error:
        asked(Cascade(sure("yes", 0.1), Raising(ProviderError("gone", cost=0.5))))
    assert error.value.cost == 0.5
    assert bare([call.judge for call in error.value.members]) == ["cheap", "raising"]


def test_only_the_unsure_claims_are_put_to_the_second() -> None:
    panel = Panel(
        *(
            ScriptedJudge([verdicts(*words)], name=name)
            for name, words in (
                ("a", ("supported", "supported", "contradicted")),
                ("b", ("supported", "contradicted", "contradicted")),
            )
        )
    )
    dear = ScriptedJudge([verdicts(("supported", [1]))], name="dear")
    answer = asked(Cascade(panel, dear, threshold=0.9), VERIFY)
    assert dear.asked == [VerifyClaims(claims=("y",), context=("p",))]
    assert [(one.claim, one.verdict) for one in answer.value] == [
        ("x", "supported"),
        ("y", "supported"),
        ("z", "contradicted"),
    ]
    detail: Any = answer.detail
    assert (detail["escalated"], detail["items"]) == (pytest.approx(1 / 3), [2])


def test_a_question_of_which_all_is_unsure_is_put_whole() -> None:
    panel = Panel(*(ScriptedJudge([verdicts(w, w, w)], name=w) for w in ("supported", "contradicted")))
    dear = ScriptedJudge([verdicts("supported", "supported", "supported")], name="dear")
    asked(Cascade(panel, dear), VERIFY)
    assert dear.asked == [VERIFY]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Cascade(LexicalJudge(), LexicalJudge()), "twice"),
        (lambda: Cascade(LexicalJudge(), sure("yes", 1), threshold=1.5), "from 0 to 1, not 1.5"),
        (lambda: Cascade(LexicalJudge(), sure("yes", 1), threshold=True), "from 0 to 1"),
        (lambda: Cascade(LexicalJudge(), sure("yes", 1), threshold=float("nan")), "from 0 to 1"),
        (lambda: Cascade(LexicalJudge(), 1), "fallback .* not 1"),  # pyright: ignore[reportArgumentType]
        (lambda: Cascade("lexicl", LexicalJudge()), "mean lexical"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


# The first judge is right where it is sure, the second nearly always.
CASES = (
    Case(None, False, True),
    Case(0.5, False, True),
    Case(0.6, True, True),
    Case(0.8, False, True),
    Case(0.9, True, False),
)


def test_every_threshold_and_what_it_comes_to() -> None:
    assert thresholds(CASES) == (
        CurvePoint(threshold=0.0, accuracy=3 / 5, escalated=1 / 5),
        CurvePoint(threshold=0.5, accuracy=3 / 5, escalated=1 / 5),
        CurvePoint(threshold=0.6, accuracy=4 / 5, escalated=2 / 5),
        CurvePoint(threshold=0.8, accuracy=4 / 5, escalated=3 / 5),
        CurvePoint(threshold=0.9, accuracy=5 / 5, escalated=4 / 5),
        CurvePoint(threshold=1.0, accuracy=4 / 5, escalated=5 / 5),
    )


def test_the_threshold_that_reaches_an_accuracy_with_the_least_escalation() -> None:
    fit = fit_threshold(CASES, accuracy=0.75)
    assert (fit.threshold, fit.accuracy, fit.escalated) == (0.6, 0.8, 0.4)
    assert (fit.primary, fit.fallback, fit.verdicts) == (0.4, 0.8, 5)


def test_the_most_accurate_threshold_within_a_share_that_may_be_escalated() -> None:
    assert fit_threshold(CASES, escalated=0.6).threshold == 0.6  # as accurate as 0.8, and cheaper
    assert fit_threshold(CASES, escalated=0.2).threshold == 0.0
    assert fit_threshold(CASES).threshold == 0.9


def test_wishes_that_cannot_be_met_say_how_far_it_goes() -> None:
    with pytest.raises(ConfigError, match=r"0.9; .* 0.800 at threshold=0.6"):
        fit_threshold(CASES, accuracy=0.9, escalated=0.5)
    with pytest.raises(ConfigError, match=r"20.0% have no probability"):
        fit_threshold(CASES, escalated=0.1)
    with pytest.raises(ConfigError, match="there are none"):
        fit_threshold([])
    with pytest.raises(ConfigError, match=r"accuracy .* 0 to 1, not 80"):
        fit_threshold(CASES, accuracy=80)


def test_held_out_figures_are_those_of_thresholds_that_were_chosen_without_the_question() -> None:
    cases = [
        Case(0.4, False, True, "a"),
        Case(0.8, True, False, "a"),
        Case(0.4, False, True, "b"),
        Case(0.8, True, False, "b"),
        Case(0.4, True, False, "c"),
        Case(0.8, True, True, "c"),
    ]
    fit = fit_threshold(cases)
    assert (fit.threshold, fit.accuracy, fit.escalated) == (0.8, pytest.approx(5 / 6), 0.5)
    assert fit.held_out is not None
    without = [fit_threshold([case for case in cases if case.question != name]).threshold for name in "abc"]
    assert without == [0.0, 0.0, 0.8]
    # a and b then keep both of theirs, one right each; c escalates one, which is then wrong.
    assert (fit.held_out, fit.held_out_escalated) == (3 / 6, pytest.approx(1 / 6))
    assert fit_threshold(cases[:2]).held_out is None


def test_judges_that_guess_gain_nothing_on_held_out_labels() -> None:
    rng = random.Random(7)
    fits = [
        fit_threshold([Case(rng.random(), rng.random() < 0.5, rng.random() < 0.5) for _ in range(60)])
        for _ in range(60)
    ]
    chosen, held_out = (sum(getattr(fit, name) for fit in fits) / 60 for name in ("accuracy", "held_out"))
    assert chosen > 0.55
    assert 0.46 < held_out < 0.54


@given(
    st.lists(st.builds(Case, st.none() | st.floats(0, 1), st.booleans(), st.booleans()), min_size=1, max_size=30),
    st.floats(0, 1),
)
def test_the_curve_is_what_counting_at_each_threshold_gives(cases: list[Case], below: float) -> None:
    for one in thresholds(cases):
        moved = [case.probability is None or case.probability < one.threshold for case in cases]
        right = [case.fallback if m else case.primary for case, m in zip(cases, moved, strict=True)]
        assert one.escalated == sum(moved) / len(cases)
        assert one.accuracy == sum(right) / len(cases)


def by_claim(question: Question[Any], probability: float | None = None) -> Any:
    """Says supported for claims that begin with s, surer of longer claims; wrong about `sure mistake`."""
    assert isinstance(question, ClaimSupported)
    word = "yes" if question.claim.startswith("s") else "no"
    return Completion(f'{{"reason": "", "verdict": "{word}"}}', probability=min(1.0, len(question.claim) / 10))


def perfect(question: Question[Any]) -> Any:
    assert isinstance(question, ClaimSupported)
    return {"reason": "", "verdict": "no" if question.claim == "s" else "yes"}


LABELS = [
    LabeledQuestion(ClaimSupported(claim=claim, context=("p",)), truth)
    for claim, truth in (("s", "no"), ("sure thing", "yes"), ("a", True), ("other thing", True))
]


def test_a_threshold_is_fitted_to_labelled_questions(tmp_path: Path) -> None:
    cheap, dear = ScriptedJudge(by_claim, name="cheap"), ScriptedJudge(perfect, name="dear")
    cascade = Cascade(cheap, dear)
    fit = cascade.fit(LABELS, accuracy=0.75)
    assert isinstance(fit, CascadeFit)
    # cheap: s 0.1 wrong, "sure thing" 1.0 right, a 0.1 wrong, "other thing" 1.0 wrong
    assert (fit.primary, fit.fallback) == (0.25, 1.0)
    assert (fit.threshold, fit.accuracy, fit.escalated) == (1.0, 0.75, 0.5)
    assert (fit.held_out, fit.held_out_escalated, fit.verdicts) == (0.75, 0.5, 4)
    assert replace(cascade, threshold=fit.threshold).threshold == 1.0
    assert fit_cascade(cascade, LABELS, accuracy=0.75, ledger=tmp_path / "l.db") == fit


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        (
            {"held_out": 0.7, "held_out_escalated": 0.6},
            "threshold=1.0: accuracy 0.750 with 50.0% escalated (0.700 with 60.0% on held-out labels); "
            "primary alone 0.250, fallback alone 1.000 (4 labeled verdicts)",
        ),
        (
            {"unanswered": 2},
            "threshold=1.0: accuracy 0.750 with 50.0% escalated; primary alone 0.250, fallback alone 1.000 "
            "(4 labeled verdicts, 2 unanswered)",
        ),
        (
            {
                "risk": SelectiveRisk(
                    threshold=1.0, limit=0.05, confidence=0.95, kept=99, wrong=1, bound=0.04, labeled=9
                )
            },
            "threshold=1.0: accuracy 0.750 with 50.0% escalated; primary alone 0.250, fallback alone 1.000 "
            "(4 labeled verdicts); of the questions that the primary keeps, at most 5.0% are answered wrongly, with "
            "95% confidence (1 of 99 labeled, one verdict each)",
        ),
    ],
)
def test_what_a_fit_says(more: dict[str, Any], shown: str) -> None:
    assert (
        str(
            CascadeFit(
                threshold=1.0, accuracy=0.75, escalated=0.5, primary=0.25, fallback=1.0, verdicts=4, curve=(), **more
            )
        )
        == shown
    )


class Priced(Judge):
    """Answers yes, more probably if the claim is longer, for a price."""

    name: str
    dollars: float | None

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        probability = min(1.0, len(getattr(question, "claim", "")) / 10)
        value = question.parse('{"reason": "", "verdict": "yes"}')
        return JudgeAnswer(value=value, judge=self.identity, reply="yes", probability=probability, cost=self.dollars)


def test_a_fit_says_what_questions_cost() -> None:
    cheap = Priced(name="cheap", dollars=0.001)
    labels = [LabeledQuestion(ClaimSupported(claim="c" * n, context=("p",)), n != 3) for n in (1, 3, 5, 10)]

    def fitted(dear: Priced, **options: Any) -> CascadeFit:
        return fit_cascade(Cascade(cheap, dear), labels, ledger=None, **options)

    fit = fitted(Priced(name="dear", dollars=0.1), escalated=0.5)
    assert [(point.threshold, point.cost) for point in fit.curve] == [
        (0.0, pytest.approx(1.0)),
        (0.1, pytest.approx(1.0)),
        (0.3, pytest.approx(26.0)),
        (0.5, pytest.approx(51.0)),
        (1.0, pytest.approx(76.0)),
    ]
    assert (fit.cost, fit.fallback_cost, fit.cost_share) == (
        pytest.approx(1.0),
        pytest.approx(100),
        pytest.approx(0.01),
    )
    assert str(fit).endswith("; $1 per 1,000 questions, 1.0% of the fallback's price alone")
    for price, share in ((None, None), (0.0, None)):
        other = fitted(Priced(name="dear", dollars=price))
        assert (other.cost is None, other.cost_share) == (price is None, share)
        assert "per 1,000" not in str(other)


def test_a_question_that_escalates_in_part_counts_with_the_whole_price() -> None:
    cases = [Case(0.9, True, True, "q"), Case(0.2, False, True, "q"), Case(None, False, True, "r")]
    curve = fit_threshold(cases, prices={"q": (0.001, 0.1), "r": (0.001, 0.3)}).curve
    assert [(point.threshold, point.cost) for point in curve] == [
        (0.0, pytest.approx(151.0)),
        (0.2, pytest.approx(151.0)),
        (0.9, pytest.approx(201.0)),
        (1.0, pytest.approx(201.0)),
    ]


def test_a_fit_costs_the_same_once_its_answers_are_in_the_ledger(tmp_path: Path) -> None:
    def says(request: dict[str, Any], _: int) -> Any:
        return completion('{"reason": "", "verdict": "yes"}')

    labels = [LabeledQuestion(ClaimSupported(claim=f"c{n}", context=("p",)), True) for n in range(3)]
    with serving(says) as server:
        judges = (f"vllm/{name}({server.url}, prices=[{price}, 0])" for name, price in (("a", 1), ("b", 50)))
        cascade = Cascade(*judges, threshold=0.9)
        first, second = (fit_cascade(cascade, labels, ledger=tmp_path / "l.db") for _ in "ab")
    assert len(server.requests) == 6
    assert first.fallback_cost == pytest.approx(1000 * 100 * 50e-6)
    assert second == first


def test_as_many_labelled_questions_are_asked_at_once_as_the_caller_allows() -> None:
    class Counting(Raising):
        load: Load = field(default_factory=Load)

        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            with self.load:
                await asyncio.sleep(0.01)
            return JudgeAnswer(value=question.parse("yes"), judge="raising", reply="yes")

    labels = [LabeledQuestion(ClaimSupported(claim=str(n), context=("p",)), True) for n in range(60)]
    for concurrency in (3, 40):
        counting = Counting(JudgeError("never"))
        fit_cascade(Cascade(counting, sure("yes", 1.0, "dear")), labels, ledger=None, concurrency=concurrency)
        assert concurrency - 2 <= counting.load.most <= concurrency


def test_a_threshold_is_fitted_to_a_limit_of_what_is_kept_wrongly() -> None:
    # Each question has two verdicts, of which one counts; at .9 all are right, at .6 half.
    cases = [Case(0.9, True, True, f"q{n // 2}") for n in range(200)]
    cases += [Case(0.6, n % 4 > 1, True, f"r{n // 2}") for n in range(200)]
    fit = fit_threshold(cases, risk=0.05)
    assert fit.risk is not None
    assert (fit.threshold, fit.risk.kept, fit.risk.wrong, fit.risk.labeled) == (0.9, 100, 0, 200)
    assert (fit.escalated, fit.accuracy, fit.held_out) == (0.5, 1.0, None)


@pytest.mark.parametrize(
    ("cases", "more", "told"),
    [
        ([Case(0.9, True, True, str(n)) for n in range(58)], {}, "59 right ones would, 58 are labeled"),
        (
            [Case(0.9, n % 5 > 0, True, str(n)) for n in range(100)],
            {},
            "of the 59 with the highest probability, 12 are judged wrongly",
        ),
        ([Case(None, True, True)], {"risk": 0}, "risk must be a number between 0 and 1"),
        ([Case(None, True, True)], {"risk": True}, "risk must be a number between 0 and 1"),
        (
            [Case(0.9, True, True)] * 99,
            {"accuracy": 0.9},
            "risk chooses the threshold; leave out accuracy and escalated",
        ),
    ],
)
def test_a_risk_that_is_not_shown_is_refused(cases: list[Case], more: dict[str, Any], told: str) -> None:
    options: dict[str, Any] = {"risk": 0.05, **more}
    with pytest.raises(ConfigError) as caught:
        fit_threshold(cases, **options)
    assert told in str(caught.value)


def test_labels_of_several_items_are_one_case_each() -> None:
    cheap = ScriptedJudge([verdicts("supported", "contradicted", "supported")], name="cheap")
    dear = ScriptedJudge([verdicts("supported", "supported", "not_mentioned")], name="dear")
    label = LabeledQuestion(VERIFY, ["supported", True, False])
    fit = Cascade(cheap, dear).fit([label])
    assert (fit.primary, fit.fallback, fit.verdicts) == (pytest.approx(1 / 3), 1.0, 3)


def test_questions_that_the_second_cannot_answer_are_counted_apart() -> None:
    silent = Raising(JudgeError("no"))
    dear = sure("yes", None, "dear")
    fit = Cascade(silent, dear).fit([LabeledQuestion(YES_NO, "yes")])
    assert (fit.verdicts, fit.primary, fit.escalated) == (1, 0.0, 1.0)
    with pytest.raises(ConfigError, match="there are none"):
        Cascade(dear, silent).fit([LabeledQuestion(YES_NO, "yes")])


@pytest.mark.parametrize(
    ("label", "told"),
    [
        (LabeledQuestion(YES_NO, "yess"), "must be one of no, undecided, yes"),
        (LabeledQuestion(YES_NO, ["yes", "no"]), "label 1: claim_supported: 1 verdicts, 2 labels"),
        (
            LabeledQuestion(VERIFY, ["supported", "supported", "yes"]),
            "must be one of contradicted, not_mentioned, sup",
        ),
        (LabeledQuestion(CHOOSE, "god"), "must be one of good, bad, not 'god'"),
        (LabeledQuestion(CHOOSE, True), "must be one of good, bad, not True"),
        (
            LabeledQuestion(GradeGrounding(answer="a", context=("p",)), 0.5),
            "answers to this kind of question have no verdict",
        ),
        ("yes", "must be LabeledQuestion values, not str"),
    ],
)
def test_labels_that_do_not_fit_are_refused(label: Any, told: str) -> None:
    judges = ScriptedJudge([], name="a"), ScriptedJudge([], name="b")
    with pytest.raises(DataError, match=told):
        Cascade(*judges).fit([label])
    assert not judges[0].asked  # it is told before anything is paid for


def sure_of(*items: tuple[str, float]) -> Judge:
    """Says of each claim that it is supported, and how sure it is of that."""

    class Sure(Judge):
        cacheable = False

        @property
        def identity(self) -> str:
            return "sure"

        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            said: Any = tuple(ClaimVerdict(claim, "supported", probability=probability) for claim, probability in items)
            return JudgeAnswer(value=said, judge="sure", probability=min(probability for _, probability in items))

    return Sure()


def test_probabilities_of_verdicts_themselves_divide_a_question() -> None:
    dear = ScriptedJudge([verdicts("contradicted")], name="dear")
    answer = asked(Cascade(sure_of(("x", 0.9), ("y", 0.2), ("z", 0.8)), dear, threshold=0.5), VERIFY)
    assert [one.verdict for one in answer.value] == ["supported", "contradicted", "supported"]
    assert dear.asked == [VerifyClaims(claims=("y",), context=("p",))]


def test_a_threshold_is_fitted_to_the_probability_in_each_item() -> None:
    dear = ScriptedJudge([verdicts("supported", "contradicted", "supported")], name="dear")
    cheap = sure_of(("x", 0.9), ("y", 0.2), ("z", 0.8))
    fit = Cascade(cheap, dear).fit([LabeledQuestion(VERIFY, ["supported", "contradicted", "supported"])])
    assert (fit.threshold, fit.accuracy, fit.escalated) == (0.8, 1.0, pytest.approx(1 / 3))


@pytest.mark.parametrize(("second", "least"), [(0.95, 0.8), (0.7, 0.7), (None, None)])
def test_a_divided_answer_is_as_sure_as_the_least_sure_of_both_judges(
    second: float | None, least: float | None
) -> None:
    dear = ScriptedJudge(lambda _: Completion(json.dumps(verdicts("contradicted")), probability=second), name="dear")
    answer = asked(Cascade(sure_of(("x", 0.9), ("y", 0.2), ("z", 0.8)), dear, threshold=0.5), VERIFY)
    assert answer.probability == least
