"""A cascade's threshold from labeled samples."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalstone import Judge, JudgeAnswer, LexicalJudge, calibrate
from evalstone._core import sync
from evalstone.errors import ConfigError
from evalstone.judge_quality.calibrate import JudgeOptions, LabelConfig, estimate_calibration
from evalstone.judge_quality.cascade_threshold import certify, keeping_all
from evalstone.judges import Aligned, Cascade, align
from evalstone.questions import ClaimSupported
from evalstone.results import Calibration
from evalstone.results.saved_calibrations import calibration_for
from evalstone.results.views.calibration import calibration_notes
from evalstone.types import JudgeCall, Record, Score

N = 300
TRUTH = {f"claim {n}": random.Random(n).random() < 0.5 for n in range(N)}
ROWS = [{"id": claim, "output": claim, "context": ["c"], "label": truth} for claim, truth in TRUTH.items()]


class Simulated(Judge):
    """Right with the probability that it reports: `accuracy`, or nearly 1 for most claims and less for some."""

    name: str
    dollars: float
    accuracy: float | None = None

    @property
    def identity(self) -> str:
        return self.name

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        assert isinstance(question, ClaimSupported)
        chance = random.Random(f"{self.name}: {question.claim}")
        probability = self.accuracy or 1 - 0.5 * chance.random() ** 8
        yes = TRUTH[question.claim] == (chance.random() < probability)
        value: Any = question.parse(f'{{"reason": "", "verdict": "{"yes" if yes else "no"}"}}')
        return JudgeAnswer(value=value, judge=self.identity, probability=probability, cost=self.dollars)


class Lenient(Simulated):
    """Like its base, but its probability of a yes is never below .6."""

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        answer = await super().answer(question, repeat)
        assert answer.probability is not None
        yes = 0.6 + 0.4 * (answer.probability if answer.value.verdict == "yes" else 1 - answer.probability)
        value: Any = question.parse('{"reason": "", "verdict": "yes"}')
        return replace(answer, value=value, probability=yes, alternatives={"yes": yes, "no": 1 - yes})


CHEAP, DEAR = Simulated(name="cheap", dollars=0.00002), Simulated(name="dear", dollars=0.005, accuracy=0.95)


def chosen(cascade: Cascade, risk: float, **more: Any) -> Calibration:
    samples = more.pop("samples", ROWS)
    return calibrate(samples, "fact_check", judge=cascade, ledger=more.pop("ledger", None), risk=risk, **more)


@pytest.mark.slow
def test_the_threshold_is_the_lowest_that_keeps_to_the_risk(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    made = chosen(Cascade(CHEAP, DEAR), 0.1, ledger=ledger)
    risk = made.risk
    assert risk is not None
    assert (risk.labeled, risk.limit) == (N, 0.1)
    assert 0.5 < risk.share_kept < 1
    assert risk.bound <= 0.1
    assert made.judge == Cascade(CHEAP, DEAR, threshold=risk.threshold).identity
    # As many errors as the cheap judge makes alone on what it keeps.
    alone = calibrate(ROWS, "fact_check", judge=CHEAP, ledger=None)
    assert [each.judge for each in made.per_judge] == [CHEAP.identity, DEAR.identity]
    assert made.per_judge[0].pairs == alone.pairs
    assert made.cost is not None
    assert made.cost == pytest.approx(0.00002 + (1 - risk.share_kept) * 0.005)
    shown = str(made)
    assert (
        f"at most 10.0% are judged wrongly, with 95% confidence ({risk.wrong} of {risk.kept} labeled samples" in shown
    )
    share = made.cost / 0.005
    assert (
        f"It costs ${1000 * made.cost:.4g} per 1,000 samples, {share:.1%} of the price of {DEAR.identity} alone ($5)"
        in shown
    )
    assert "corrected by the labels" in shown
    assert f"These labels chose the cascade's threshold, {risk.threshold:.4g}: the figures are optimistic" in shown
    ((line, _),) = calibration_notes([made], [made.judge])
    assert line.endswith("; optimistic: threshold chosen on these labels")
    stored = calibration_for(made.judge, made.signature, ledger)
    assert stored == made
    assert stored is not None
    assert stored.risk == risk
    stricter = chosen(Cascade(CHEAP, DEAR), 0.05).risk
    assert stricter is not None
    assert stricter.threshold > risk.threshold


def test_samples_that_the_primary_does_not_decide_alone_are_not_kept() -> None:
    cascade = keeping_all(Cascade(CHEAP, DEAR))

    def record(name: str, *details: dict[str, Any] | None) -> Record:
        calls = tuple(
            JudgeCall(question="q", fingerprint=f"{name}{n}", judge=cascade.identity, answer=1, detail=detail)
            for n, detail in enumerate(details)
        )
        return Record(sample_id=name, scorer="s", signature="s@1", outcome=Score(1.0), calls=calls)

    kept, sure, partly, escalated = (
        {"kind": "cascade", "escalated": share, "probability": probability}
        for share, probability in ((0.0, 0.9), (0.0, 0.95), (0.5, None), (1.0, None))
    )
    listed = {"escalated": 1.0, "probability": None}
    split = {"escalated": 0.0, "probability": 1.0}  # into sentences, which the fallback judged
    several = [record(f"k{n}", listed, sure, kept) for n in range(70)]
    of_wrong = [(partly, sure), (listed,), (None,), (), (split, escalated)]
    wrong = [record(f"w{n}", *details) for n, details in enumerate(of_wrong * 20)]
    grouped = [record(f"g{n}", sure) for n in range(50)]
    right = {each.sample_id: each in several for each in (*several, *wrong, *grouped)}
    clusters = {name: "one" if name.startswith("g") else "" for name in right}
    found = certify(cascade, [*several, *wrong, *grouped], right, clusters, 0.1)
    assert (found.threshold, found.kept, found.wrong, found.labeled) == (0.9, 71, 1, 171)


@pytest.mark.parametrize(
    ("judge", "options", "problem"),
    [
        (LexicalJudge(), {"risk": 0.1}, "risk chooses the threshold of a cascade; lexical@"),
        (Cascade(CHEAP, DEAR), {"risk": 1}, "risk must be a number between 0 and 1, not 1"),
        (Cascade(CHEAP, DEAR), {"risk": 0.1, "budget": 1.0}, "risk can't be combined with budget"),
        (Cascade(CHEAP, DEAR), {"risk": 0.005}, "at most 0.5% of the samples that cheap"),
        (
            Cascade(replace(CHEAP, accuracy=0.5), DEAR),
            {"risk": 0.05},
            "don't show for any threshold that at most 5.0% of the samples that cheap",
        ),
    ],
)
def test_what_shows_no_threshold_is_refused(judge: Judge, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        calibrate(ROWS, "fact_check", judge=judge, ledger=None, **options)
    assert problem in str(caught.value)


class Counted(Simulated):
    """Keeps which judge was asked. Its reply is stored."""

    asked: ClassVar[Counter[str]] = Counter()

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        self.asked[self.name] += 1
        answer = await super().answer(question, repeat)
        return replace(answer, reply=f'{{"reason": "", "verdict": "{answer.value.verdict}"}}')


@pytest.mark.parametrize(("cache", "times"), [(True, 1), (False, 3)])
def test_a_dry_run_counts_the_calls_for_the_threshold_and_with_it(cache: bool, times: int, tmp_path: Path) -> None:
    cascade = Cascade(Counted(name="cheap", dollars=0.0), Counted(name="dear", dollars=0.0, accuracy=0.95))
    found = sync.run(
        estimate_calibration(
            ROWS[:100],
            "fact_check",
            data=None,
            judges=[cascade],
            config=LabelConfig(),
            options=JudgeOptions(cache=cache),
            slice_by=None,
            per_judge=False,
            risk=0.2,
            ledger=tmp_path / "l.db",
        )
    )
    Counted.asked.clear()
    chosen(cascade, 0.2, samples=ROWS[:100], ledger=tmp_path / "l.db", cache=cache)
    counted = {line.judge.partition("#")[0]: line.calls for line in found.judges}
    assert counted["cheap"] == Counted.asked["cheap"] == 100 * times
    assert counted["dear"] == 100 * times >= Counted.asked["dear"] >= 100


@pytest.mark.parametrize("repeated", [{"group": "g"}, {}])
def test_samples_that_repeat_each_other_are_one_label(repeated: dict[str, str]) -> None:
    """300 labels of 30 claims don't show what 300 claims would, whether or not a group says so."""
    rows = [
        {**row, "id": f"{row['id']} {n}", **{name: f"{value}{row['id']}" for name, value in repeated.items()}}
        for row in ROWS[:30]
        for n in range(10)
    ]
    best = "59 right ones would, 30 are labeled, which can show 9.6% at best"
    said = rf"{best} \(one of each of 30 clusters counts\); allow more"
    with pytest.raises(ConfigError, match=said):
        calibrate(rows, "fact_check", judge=Cascade(CHEAP, DEAR), ledger=None, risk=0.05)


def test_labels_that_aligned_the_primary_show_nothing(tmp_path: Path) -> None:
    """An aligned judge errs less on the labels that chose its threshold than on others."""
    lenient = Lenient(name="lenient", dollars=0.00002)
    made = align(ROWS[:200], "fact_check", judge=lenient, ledger=None)
    assert made.passed
    made.save(tmp_path / "align.json")
    cascade = Cascade(Aligned(lenient, tmp_path / "align.json"), DEAR)
    with pytest.raises(
        ConfigError, match="29 right ones would, 0 are labeled; the 200 labels that it was aligned with"
    ):
        calibrate(ROWS[:200], "fact_check", judge=cascade, ledger=None, risk=0.1)
    shown = calibrate(ROWS, "fact_check", judge=cascade, ledger=None, risk=0.1).risk
    assert shown is not None
    assert shown.labeled == N - 200
    swapped = Cascade(CHEAP, Aligned(lenient, tmp_path / "align.json"))
    shown = calibrate(ROWS, "fact_check", judge=swapped, ledger=None, risk=0.1).risk
    assert shown is not None
    assert shown.labeled == N  # it is the primary that is shown to keep to the risk


def sure_of(names: Iterable[str], cascade: Cascade) -> list[Record]:
    """Records of samples that the primary decides alone."""
    sure = {"kind": "cascade", "escalated": 0.0, "probability": 0.95}
    call = JudgeCall(question="q", fingerprint="f", judge=cascade.identity, answer=1, detail=sure)
    return [Record(sample_id=one, scorer="s", signature="s@1", outcome=Score(1.0), calls=(call,)) for one in names]


def test_samples_of_a_cluster_that_aligned_the_primary_show_nothing() -> None:
    cascade, names = keeping_all(Cascade(CHEAP, DEAR)), [f"s{n}" for n in range(100)]
    records, right = sure_of(names, cascade), dict.fromkeys(names, True)
    clusters = {name: "one" if n < 10 else "" for n, name in enumerate([*names, "not scored"])}
    found = certify(cascade, records, right, clusters, 0.1, aligned_with={"s0", "s20", "not scored"})
    assert found.labeled == 100 - 10 - 1
    said = "the 2 labels that it was aligned with and the 9 of the same clusters show nothing;"
    with pytest.raises(ConfigError, match=said):
        certify(cascade, records, right, clusters, 0.01, aligned_with={"s0", "s20", "not scored"})
    with pytest.raises(ConfigError, match="the 1 label that it was aligned with show"):
        certify(cascade, records, right, clusters, 0.01, aligned_with={"s20"})


@pytest.mark.parametrize("first", [True, False])
def test_neither_the_order_of_a_cluster_nor_who_was_right_says_which_sample_counts(first: bool) -> None:
    cascade, names = keeping_all(Cascade(CHEAP, DEAR)), [f"s{n}" for n in range(400)]
    clusters = {name: f"group {n // 2}" for n, name in enumerate(names)}
    right = {name: (n % 2 == 0) == first for n, name in enumerate(names)}
    found = certify(cascade, sure_of(names, cascade), right, clusters, 0.7)
    assert (found.labeled, found.kept) == (200, 200)
    assert 70 < found.wrong < 130  # a half of 200, within four standard deviations
