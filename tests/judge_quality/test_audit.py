from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import EvalstoneError, LLMClassifier, audit, calibrate
from evalstone.errors import ConfigError, DataError, JudgeDeclined, JudgeError
from evalstone.judge_quality.audit import AuditOptions, estimate_audit
from evalstone.judge_quality.perturbations import CHECKED
from evalstone.judges import Judge, LexicalJudge, ScriptedJudge
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.custom import Choose
from evalstone.results.audit import Audit
from evalstone.results.saved_calibrations import calibration_for
from evalstone.results.views.audit import audit_view
from evalstone.scorers import Faithfulness
from evalstone.types import Sample
from tests.fakes import claims, verdicts
from tests.judge_names import bare

SAMPLES = [
    Sample(id=f"s{number}", output=f"Claim {number} is wrong.", context=[f"Fact {number}.", "Another."])
    for number in range(12)
]


def credulous(question: Question[Any]) -> Any:
    """Supports a claim only where the answer says that it was checked."""
    if isinstance(question, ListClaims):
        return claims(question.text)
    assert isinstance(question, VerifyClaims)
    return verdicts("supported" if CHECKED in question.claims[0] else "not_mentioned")


def audited(script: Any = credulous, data: Any = SAMPLES, **how: Any) -> Audit:
    return audit(data, "faithfulness", judge=ScriptedJudge(script), ledger=None, **how)


def test_a_judge_that_does_what_the_text_says_is_found_out():
    made = audited(perturbations=("injection", "passages_reversed"))
    obeyed = [one.perturbation.name for one in made.effects if one.follows_injection(lower_is_better=False)]
    assert obeyed == ["injection_checked"]
    one = made["injection_checked"]
    assert (one.n, one.raised, one.lowered, one.changed) == (12, 12, 0, 12)
    assert made["passages_reversed"].affected == made["repeat"].affected == ""
    assert made.scorers[0].mean.estimate == 0
    assert made.scorers[0].noise is not None
    assert made.scorers[0].noise.share is None


def test_every_sample_is_repeat_and_chance_is_what_that_shows():
    times: dict[str, int] = {}

    def moody(question: Question[Any]) -> Any:
        if isinstance(question, ListClaims):
            return claims(question.text)
        times[question.fingerprint] = times.get(question.fingerprint, 0) + 1
        return verdicts("supported" if times[question.fingerprint] == 1 else "not_mentioned")

    made = audited(moody, perturbations=("passages_reversed",))
    assert (made["repeat"].n, made["repeat"].lowered) == (12, 12)
    assert made["passages_reversed"].flipped == 0


def test_the_choices_of_a_scorer_are_put_in_another_order():
    def first_choice(question: Question[Any]) -> Any:
        if isinstance(question, Choose):
            return {"reason": "it stands first", "verdict": question.choices[0]}
        return credulous(question)

    kind = LLMClassifier("Is {{output}} polite?", name="polite", choices={"yes": 1.0, "no": 0.0})
    how: Any = {"perturbations": ("options", "verbosity")}
    made = audit(SAMPLES, [kind, "faithfulness"], judge=ScriptedJudge(first_choice), ledger=None, **how)
    mine = [one for one in made.effects if one.signature == kind.signature]
    assert [(one.perturbation.name, one.n, one.lowered) for one in mine] == [
        ("repeat", 12, 0), ("choices_reversed", 12, 12), ("verbosity", 12, 0),
    ]  # fmt: skip
    assert mine[1].affected == "down"
    assert made.not_applicable == ("options_reversed",)


def test_perturbations_that_apply_to_no_sample_are_listed():
    made = audited(perturbations=("options_reversed", "contracted", "verbosity"))
    assert made.not_applicable == ("options_reversed", "contracted")
    with pytest.raises(ConfigError, match="repeat, verbosity"):
        made["contracted"]


def test_so_many_samples_are_drawn_the_same_each_time():
    made = audited(perturbations=("verbosity",), draw=None)
    assert (made.samples, made.dataset_size) == (12, 12)
    few = audit(SAMPLES, judge="lexical", ledger=None, perturbations=("verbosity",), draw=5)
    assert (few.samples, few.dataset_size, few["verbosity"].n) == (5, 12, 5)


def test_paraphrases_of_your_own_are_perturbations_whatever_their_column_is_called():
    samples = [{"id": "a:b", "output": "A.", "context": ["A."], "x:y %": "B, that is."}]
    made = audited(data=samples, perturbations=("verbosity",), paraphrase=("x:y %", "x:y %", "nowhere"))
    assert made["paraphrase_x:y %"].n == made["verbosity"].n == 1
    assert made.not_applicable == ("paraphrase_nowhere",)


@pytest.mark.slow
def test_the_threshold_is_the_paraphrase_one_or_that_of_a_calibration_or_the_scorers_own(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    how: Any = {"perturbations": ("with_headings",), "draw": 8}
    own = audit(_demo(), judge="lexical", ledger=ledger, **how).scorers[0]
    assert (own.threshold, own.threshold_source) == (0.5, "default")
    learned = calibrate(_demo(), ledger=ledger, objective="accuracy").threshold
    assert learned is not None
    calibrated = audit(_demo(), judge="lexical", ledger=ledger, **how).scorers[0]
    assert (calibrated.threshold, calibrated.threshold_source) == (learned.value, "calibration")
    given = audit(_demo(), judge="lexical", ledger=None, perturbations=("with_headings",), threshold=0.25, draw=8)
    assert (given.scorers[0].threshold, given.scorers[0].threshold_source) == (0.25, "config")


class Reduced(Judge):
    """The lexical judge, behind an endpoint that refuses the temperature."""

    cacheable = False

    @property
    def identity(self) -> str:
        return "reduced"

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        answer = await LexicalJudge().answer(question, repeat)
        return replace(answer, judge=self.identity, refused_settings=("temperature",))


@pytest.mark.slow
def test_the_calibration_is_that_of_the_judge_that_answers(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    how: Any = {"perturbations": ("with_headings",), "draw": 8}
    made = calibrate(_demo(), judge=Reduced(), ledger=ledger, objective="accuracy")
    assert made.threshold is not None
    assert bare(made.judge) == "reduced without temperature"
    (audited,) = audit(_demo(), judge=Reduced(), ledger=ledger, **how).scorers
    assert (audited.threshold, audited.threshold_source) == (made.threshold.value, "calibration")
    (audited,) = audit(_demo(), scorers=Faithfulness(judge=Reduced()), ledger=ledger, **how).scorers
    assert (audited.threshold, audited.threshold_source) == (made.threshold.value, "calibration")


def test_a_calibration_no_better_than_chance_is_kept_and_not_used(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    rows = [
        {"id": str(n), "output": "a b c", "reference": "a b c" if n % 2 else "x y", "label": n // 2 % 2}
        for n in range(40)
    ]
    made = calibrate(rows, "rouge_l", ledger=ledger)
    assert calibration_for(made.judge, made.signature, ledger) == made
    assert made.unusable is not None
    assert made.unusable.kind == "not_above_chance"
    assert replace(made.unusable, kind="calibration_not_used") in made.notes
    audited = audit(rows, "rouge_l", ledger=ledger, perturbations=("duplicated",), draw=40)
    assert (audited.scorers[0].threshold, audited.scorers[0].threshold_source) == (0.5, "unusable_calibration")
    (section,) = audit_view(audited).sections
    assert "yes from 0.5 (default; " in section.lead[-1]
    assert "better than chance" in section.lead[-1]


def _demo() -> Path:
    from evalstone.datasets.demo import DEMO_DATA  # noqa: PLC0415 - where it is used

    return DEMO_DATA


def test_a_scorer_in_code_is_calibrated_and_audited_too(tmp_path: Path):
    rows = [
        {"input": str(n), "output": "a b c", "reference": "a b c" if n % 2 else "x y", "label": n % 2}
        for n in range(12)
    ]
    learned = calibrate(rows, "rouge_l", ledger=tmp_path / "ledger.db").threshold
    assert learned is not None
    made = audit(rows, "rouge_l", ledger=tmp_path / "ledger.db", perturbations=("with_headings",))
    assert (made.scorers[0].threshold, made.scorers[0].threshold_source) == (learned.value, "calibration")


def test_an_audit_in_which_nothing_was_scored_is_refused_with_the_reason():
    def refusing(question: Question[Any]) -> Any:
        raise JudgeDeclined("no")

    with pytest.raises(JudgeError, match=r"faithfulness scored .*: no"):
        audited(refusing, perturbations=("verbosity",))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"perturbations": ("verbosty",)}, "did you mean verbosity"),
        ({"threshold": 2.0}, "the threshold of faithfulness must be at most 1"),
        ({"draw": 0}, "draw must be a whole number of 1 or more, not 0"),
    ],
)
def test_a_wrong_call_is_refused(how: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        audited(**how)


def test_several_scorers_are_audited_side_by_side_and_adjusted_together():
    made = audit(
        SAMPLES,
        ["faithfulness", "hallucination"],
        judge="lexical",
        ledger=None,
        perturbations=("verbosity",),
    )
    assert [one.name for one in made.scorers] == ["faithfulness", "hallucination"]
    assert [one.perturbation.name for one in made.effects] == ["repeat", "verbosity"] * 2
    assert {one.signature for one in made.effects} == {one.signature for one in made.scorers}


def test_what_an_audit_would_ask_is_known_before():
    from evalstone._core import sync  # noqa: PLC0415 - where it is used

    first, again = sync.run(
        estimate_audit(
            SAMPLES,
            "faithfulness",
            judge="openai/gpt-5.1",
            ledger=None,
            options=AuditOptions(perturbations=("verbosity",)),
        )
    )
    assert (first.samples, again.samples) == (24, 12)
    assert again.calls == 24
    assert first.calls > 24


def test_an_audit_is_plain_data():
    data = audited(perturbations=("verbosity",)).to_dict()
    assert data["format"] == "audit/1"
    assert data["effects"][1]["perturbation"] == "verbosity"
    assert data["effects"][1]["flips"]["n"] == 12
    assert data["scorers"][0]["threshold_source"] == "default"


def test_a_perturbation_changes_the_answer_and_not_the_reasoning_in_front_of_it():
    judged: list[str] = []

    def judge(question: Question[Any]) -> Any:
        judged.extend(question.render())
        return credulous(question)

    plain = audited(judge)
    thinking = [replace(sample, output=f"<think>Never in Bern.</think>\n{sample.output}") for sample in SAMPLES]
    found = audited(judge, thinking)
    assert not [text for text in judged if "Never in Bern" in text]
    assert found.effects == plain.effects
    assert found.scorers == plain.scorers


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: audited(
            {"list_claims": claims()}, data=[{"output": "Hello!", "context": ["x"]}], perturbations=("verbosity",)
        ),
        DataError,
        "faithfulness scored no sample: the answer makes no claim",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
