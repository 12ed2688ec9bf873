from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import EvalstoneError, Judge, LexicalJudge, Panel, Sample, ScriptedJudge, audit, calibrate, evaluate
from evalstone._core.display import limits
from evalstone.compat.spring import FactCheckingEvaluator
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import ConfigError, DataError, JudgeDeclined, RunAborted
from evalstone.judges import Cascade
from evalstone.judges.decision import SentenceJudge
from evalstone.results import Calibration, compare_with_members
from evalstone.results.human_labels import corrected_share
from evalstone.results.measures import measure
from evalstone.results.saved_calibrations import calibration_for, calibrations_for, list_calibrations
from evalstone.results.views.calibration import calibration_view
from evalstone.results.views.run import run_view
from evalstone.run.budget import StopSignal
from evalstone.scorers import Faithfulness
from evalstone.stats import cohen_kappa, mean_interval
from evalstone.stats.panels import effective_votes
from tests.refusals import refused
from tests.runs import Given, run_of
from tests.serving import serving

ROWS = [
    {"id": "a", "output": "Paris is in France.", "context": ["Paris is in France."], "label": "supported"},
    {"id": "b", "output": "Rome is on Mars.", "context": ["Rome is a city in Italy."], "label": "unsupported"},
    {"id": "c", "output": "Oslo is in Norway.", "context": ["Oslo is in Norway."], "label": "yes"},
    {"id": "d", "output": "Bern is on Venus.", "context": ["Bern is a city."], "label": "no"},
]


def test_a_judge_is_compared_with_the_labels_and_what_was_learned_is_kept(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    made = calibrate(ROWS, "faithfulness", judge="lexical", ledger=ledger)
    assert [(pair.sample_id, pair.value, pair.labels) for pair in made.pairs] == [
        ("a", 1.0, (1.0,)), ("b", 0.0, (0.0,)), ("c", 1.0, (1.0,)), ("d", 0.0, (0.0,)),
    ]  # fmt: skip
    assert made.threshold is not None
    assert (made.threshold.value, made.threshold.in_sample) == (0.5, 1.0)
    assert calibration_for(made.judge, made.signature, ledger) == made
    assert list_calibrations(ledger) == (made,)


def test_calibrations_are_kept_apart_by_the_files_of_labels_and_samples_and_by_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "b"):
        folder.mkdir(exist_ok=True)
        (folder / "labels.jsonl").write_text("".join(f"{json.dumps({**row, 'bob': row['label']})}\n" for row in ROWS))
    ids = {row["id"]: row["label"] for row in ROWS}
    calls: list[tuple[Any, dict[str, Any]]] = [
        ("labels.jsonl", {}),
        ("labels.jsonl", {"label": ("bob",)}),
        ("b/labels.jsonl", {}),
        ("labels.jsonl", {"data": "b/labels.jsonl"}),
        (ids, {"data": "b/labels.jsonl"}),
        (ROWS, {}),
        (ROWS[:2], {}),
    ]
    made = [calibrate(labels, ledger="ledger.db", **options) for labels, options in calls]
    assert len({one.labels_id for one in made}) == len(calls) == len(list_calibrations("ledger.db"))
    assert [one.labels for one in made] == ["labels.jsonl"] * 4 + ["labels in memory"] * 3
    again = calibrate(tmp_path / "b" / ".." / "labels.jsonl", ledger="ledger.db")
    assert again.labels_id == made[0].labels_id


def test_without_a_ledger_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    calibrate(ROWS, ledger=None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["jsonl", "csv", "memory"])
@pytest.mark.parametrize("missing", ["NaN", "null", "n/a", ""])
def test_rows_without_a_label_are_counted_in_every_format(kind: str, missing: str, tmp_path: Path) -> None:
    values = [missing, "1", missing, "0"]
    rows = [{**row, "label": value} for row, value in zip(ROWS, values, strict=True)]
    labels: Any = rows
    if kind == "jsonl":  # NaN and null as JSON has them
        labels = tmp_path / "l.jsonl"
        lines = [json.dumps(row) for row in rows]
        labels.write_text("\n".join(line.replace('"NaN"', "NaN").replace('"null"', "null") for line in lines))
    elif kind == "csv":
        labels = tmp_path / "l.csv"
        labels.write_text(
            "".join(",".join(each) + "\n" for each in [["id", "label"], *zip("abcd", values, strict=True)])
        )
    else:
        native: dict[str, Any] = {"NaN": float("nan"), "null": None}
        labels = [{**row, "label": native.get(value, value)} for row, value in zip(ROWS, values, strict=True)]
    made = calibrate(labels, data=ROWS if kind == "csv" else None, ledger=None)
    assert [(pair.sample_id, pair.labels) for pair in made.pairs] == [("b", (1.0,)), ("d", (0.0,))]
    assert made.n_unlabeled == 2
    assert [(each["rows"], each["of"]) for each in made.notes if each.kind == "rows_without_label"] == [(2, 4)]


def test_words_of_quality_fit_a_scorer_whose_lower_score_is_better():
    made = calibrate(ROWS[:2], "hallucination", ledger=None)
    assert [(pair.value, pair.labels) for pair in made.pairs] == [(0.0, (0.0,)), (1.0, (1.0,))]


def test_labels_beside_the_data_leave_the_other_samples_unasked():
    made = calibrate({"a": "yes", "b": "no"}, data=ROWS, ledger=None)
    assert [pair.sample_id for pair in made.pairs] == ["a", "b"]


def test_labels_that_were_not_chosen_at_random_are_noted():
    rows = [{"id": f"s{n}", "output": str(n / 10)} for n in range(10)]
    how = ["uncertain", "uncertain", "hand", "random", "stratified", "shared", "", None]
    chosen = [{"id": f"s{n}", "label": n > 4, "chosen": one} for n, one in enumerate(how)]
    beside = calibrate(chosen, Given(), data=rows, ledger=None)
    inside = calibrate([{**row, **more} for row, more in zip(rows, chosen, strict=False)], Given(), ledger=None)
    for found in (beside, inside):
        (noted,) = (each for each in found.notes if each.kind == "labels_not_at_random")
        assert noted.severity == "caution"
        assert (noted["by_score"], noted["by_hand"], noted["shared"], noted["of"]) == (3, 1, 1, 8)
    (alone,) = (note for note in calibrate(chosen[5:6], Given(), data=rows, ledger=None).notes if "random" in note.kind)
    assert (alone["by_score"], alone["by_hand"], alone["shared"], alone["of"]) == (0, 0, 1, 1)
    unbiased = calibrate(chosen[6:] + chosen[3:4], Given(), data=rows, ledger=None)
    assert "labels_not_at_random" not in {each.kind for each in unbiased.notes}


STRATA = [("low", 4, 40), ("high", 8, 960)]
"""The name of each stratum, its labels and its size."""


def by_strata(bad: Mapping[str, int], strata: Sequence[tuple[str, int, int]] = STRATA, run: int = 1000) -> list[Any]:
    """Labels drawn by strata: scores 0.1 or 0.9, and how many answers of each stratum are bad."""
    return [
        {
            "id": f"{name}{number}",
            "input": f"{name}{number}?",
            "output": "0.1" if name == "low" else "0.9",
            "label": int(number >= bad[name]),
            "chosen": "stratified",
            "stratum": name,
            "stratum_size": size,
            "run_size": run,
        }
        for name, labels, size in strata
        for number in range(labels)
    ]


def test_labels_drawn_by_strata_estimate_the_rates_of_the_run() -> None:
    rows = by_strata({"low": 3, "high": 1})  # the run has 30 bad answers with low scores, and 120 with high ones
    found = calibrate(rows, Given(), ledger=None)
    assert [pair.weight for pair in found.pairs] == [10.0] * 4 + [120.0] * 8
    measures = measure(found)
    expected = {"specificity": 30 / 150, "sensitivity": 840 / 850, "accuracy": 870 / 1000, "precision": 840 / 960}
    at_default = measures.at_default.measures
    assert {name: one.estimate for name in expected if (one := at_default[name])} == pytest.approx(expected)
    assert measures.no_information_rate is not None
    assert measures.no_information_rate.estimate == pytest.approx(0.85)
    assert measures.mean_error is not None
    assert measures.mean_error.estimate == pytest.approx((40 * 0.1 + 960 * 0.9 - 850) / 1000)
    assert found.auroc is not None
    assert found.auroc.estimate == pytest.approx((0.2 * (840 / 850 + 10 / 850 / 2)) + 0.8 * 840 / 850 / 2)
    assert found.verdict.missed is not None
    assert found.verdict.missed.estimate == pytest.approx(120 / 150)
    assert [(each.kind, each["samples"]) for each in found.notes if "labels" in each.kind and each["samples"]] == [
        ("labels_weighted", 1000)
    ]
    assert "labels_not_at_random" not in {each.kind for each in found.notes}
    assert Calibration.from_dict(found.to_dict()) == found
    run = run_of(["0.1", "0.9"])
    right = tuple(
        replace(pair, sample_id=str(n), labels=(float(pair.value > 0.5),)) for n, pair in enumerate(found.pairs * 30)
    )
    usable = replace(found, judge=run.judge_of("given"), signature=run["given"].info.signature, pairs=right)
    with pytest.raises(ConfigError, match="drawn by strata"):
        corrected_share(run, "given", usable)


def test_strata_without_labels_leave_the_run_unknown() -> None:
    found = calibrate(by_strata({"high": 3}, [("high", 12, 600)]), Given(), ledger=None)
    assert (found.weights, found.n_without_labels) == (None, 400)
    assert ("strata_without_labels", 400, 1000) in {(each.kind, each["samples"], each["of"]) for each in found.notes}
    assert [(each.kind, each["why"]) for each in found.verdict.notes] == [("judge_unknown", "strata")]


def test_a_label_without_a_stratum_leaves_all_labels_as_they_are() -> None:
    rows = by_strata({"low": 3, "high": 1})
    rows[0] |= {"chosen": "hand", "stratum": None, "stratum_size": "", "run_size": None}
    found = calibrate(rows, Given(), ledger=None)
    assert (found.weights, found.run_size) == (None, None)
    assert "labels_not_at_random" in {each.kind for each in found.notes}


@pytest.mark.parametrize(
    ("place", "change", "said"),
    [
        (1, {"stratum_size": "many"}, "item 2: stratum_size must be a whole number above 0, not 'many'"),
        (1, {"stratum_size": 0}, "item 2: stratum_size must be a whole number above 0, not 0"),
        (1, {"stratum_size": 41}, "item 2: stratum_size must be 40 for stratum 'low', as in the rows before, not 41"),
        (1, {"stratum": " "}, "item 2: stratum_size needs the column stratum"),
        (1, {"run_size": None}, "item 2: run_size must be a whole number above 0, not None"),
        (2, {"run_size": 999}, "item 3: run_size must be 1000, as in the rows before, not 999"),
        (..., {"run_size": 900}, "run_size must be at least 1000, the sum of the strata, not 900"),
        (
            ...,
            {"stratum": "all", "stratum_size": 7},
            "stratum_size must be at least 12, the labels in stratum 'all', not 7",
        ),
    ],
)
def test_strata_that_make_no_sense_are_refused(place: Any, change: dict[str, Any], said: str) -> None:
    rows = by_strata({"low": 3, "high": 1})
    for row in rows if place is ... else [rows[place]]:
        row |= change
    with pytest.raises(DataError, match=re.escape(said)):
        calibrate(rows, Given(), ledger=None)


def test_the_default_threshold_is_an_evaluators_own():
    made = calibrate(ROWS, "faithfulness(scale=10)", ledger=None)
    assert (made.default_threshold, made.label_threshold) == (5.0, 5.0)
    from evalstone.judge_quality.calibrate import default_threshold  # noqa: PLC0415 - where it is used
    from evalstone.scorers import parse_scorers  # noqa: PLC0415 - where it is used

    assert default_threshold(parse_scorers(FactCheckingEvaluator(threshold=0.9))[0]) == 0.9


def test_the_bundled_answers_are_labelled():
    made = calibrate(DEMO_DATA, ledger=None)
    assert sum(truth for _, truth in made.decided) == 36
    assert len(made.decided) == 60


@pytest.mark.parametrize(
    ("labels", "options", "told"),
    [
        (ROWS, {"scorer": ["faithfulness", "hallucination"]}, "needs one scorer, not 2"),
        (ROWS, {"objective": "acuracy"}, "did you mean accuracy"),
        (ROWS, {"label_threshold": 2.0}, "label_threshold must be at most 1, not 2"),
        ([{"output": "x", "context": ["x"]}], {}, r"no column of labels \(all columns are read as fields of"),
        ([{"output": "Hello!", "context": ["x"], "label": 1}], {}, "1 skipped, 0 failed; .*no claim"),
        (ROWS, {"judge": "lexcal"}, "did you mean lexical"),
    ],
)
def test_a_wrong_call_is_refused(labels: Any, options: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        calibrate(labels, ledger=None, **options)


@pytest.mark.parametrize(
    ("kind", "settings", "allowed"),
    [
        (calibrate, {"label": [1]}, "a list of texts"),
        (calibrate, {"label_threshold": 0}, "a number above 0"),
        (calibrate, {"label_threshold": float("nan")}, "a number above 0"),
        (calibrate, {"label_range": (1.0,)}, "2 numbers"),
        (calibrate, {"calibrator": "plat"}, "'auto', 'platt' or 'isotonic'"),
        (calibrate, {"cache": "no"}, "true or false"),
        (audit, {"paraphrase": [1]}, "a list of texts"),
        (audit, {"draw": True}, "a whole number of 1 or more"),
        (audit, {"concurrency": 0}, "a whole number from 1 to 10000"),
        (audit, {"budget": -1.0}, "a number of 0 or more"),
    ],
)
def test_a_setting_of_another_type_or_out_of_range_is_refused(kind: Any, settings: dict[str, Any], allowed: str):
    with refused(next(iter(settings)), allowed):
        kind(ROWS, ledger=None, **settings)


def test_a_run_that_was_stopped_before_its_first_score_says_so(tmp_path: Path):
    stop = StopSignal()
    stop.request("interrupted")
    with pytest.raises(RunAborted, match="stopped: interrupted"):
        calibrate(ROWS, ledger=tmp_path / "ledger.db", stop=stop)
    assert list_calibrations(tmp_path / "ledger.db") == ()


def test_a_calibration_that_was_stopped_is_not_saved(tmp_path: Path):
    stop, calls = StopSignal(), list[str]()

    class Stops(Judge):
        async def answer(self, question: Any, repeat: int = 0) -> Any:
            calls.append(question.kind)
            if len(calls) == 5:  # of 8
                stop.request("enough")
            return await LexicalJudge().answer(question, repeat)

    made = calibrate(ROWS, judge=Stops(), ledger=tmp_path / "ledger.db", stop=stop, concurrency=1)
    assert made.stop_reason
    assert 0 < len(made.pairs) < len(ROWS)
    assert list_calibrations(tmp_path / "ledger.db") == ()


def in_languages(n: int = 120) -> list[dict[str, Any]]:
    """Answers in three languages. The judge can't read those in Finnish, and says that all are supported."""
    good = {"output": "Paris is in France.", "context": ["Paris is in France."]}
    rows: list[dict[str, Any]] = []
    for number in range(n):
        language = ("en", "de", "fi")[number % 3]
        label = "no" if language == "fi" and number % 2 else "yes"
        rows.append(
            {
                "id": f"{number}",
                "input": f"{number}?",
                **good,
                "lang": language,
                "label": label,
                "part": {"page": number % 2},
            }
        )
    return rows


@pytest.mark.parametrize(
    ("fields", "clusters"),
    [
        ([{"group": n // 4, "input": str(n)} for n in range(24)], 6),
        ([{"input": str(n // 4), "annotator": n % 4} for n in range(24)], 6),  # the same texts, labeled four times
        ([{"input": str(n), **({"group": "one"} if n < 9 else {})} for n in range(24)], 16),
        ([{"input": str(n)} for n in range(24)], None),
    ],
)
def test_labels_of_one_group_or_of_the_same_texts_are_a_cluster(
    fields: Sequence[Mapping[str, Any]], clusters: int | None
) -> None:
    rows = [
        {**each, "id": f"s{n}", "output": str(0.9 - n // 4 % 2 / 2), "label": n // 4 % 2}
        for n, each in enumerate(fields)
    ]
    found = calibrate(rows, Given(), ledger=None)
    assert (found.clusters and len(set(found.clusters))) == clusters
    assert found.auroc is not None
    assert found.auroc.groups == clusters
    accuracy = measure(found).at_default.measures["accuracy"]
    assert accuracy is not None
    assert accuracy.groups == clusters
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert "cluster" in str(found) if clusters else "cluster" not in str(found)


@pytest.mark.slow
def test_the_agreement_is_measured_by_slice(tmp_path: Path):
    made = calibrate(in_languages(), ledger=tmp_path / "l.db", slice_by="lang")
    slices = {one.key: one for one in measure(made).slices}
    assert list(slices) == ["de", "en", "fi"]
    assert [slices[key].accuracy.estimate for key in slices] == [1.0, 1.0, 0.5]
    assert [(one.false_yes, one.false_no, one.worse) for one in slices.values()] == [
        (0, 0, False),
        (0, 0, False),
        (20, 0, True),
    ]
    alone = mean_interval([1.0, 0.0] * 20, low=0, high=1, confidence=1 - 0.05 / 3)
    assert alone is not None
    assert slices["fi"].accuracy == replace(alone, confidence=0.95)
    assert [one.kappa for one in slices.values()][:2] == [None, None]  # all verdicts and labels are yes
    assert "0.500 instead of 1.000 (n = 40" in str(made)
    assert "lang=fi: the judge" in str(made)
    assert calibration_for(made.judge, made.signature, tmp_path / "l.db") == made
    assert json.loads(json.dumps(made.to_dict()))["measures"]["slices"][2]["false_yes"] == 20
    shown = calibration_view(made)
    assert "Agreement by slice" in [section.title for section in shown.sections]


def test_kappa_of_a_slice_has_an_interval_for_all_slices_together() -> None:
    sides = {"0": "Paris is in France.", "1": "Rome is on Mars."}
    truths = [n % 2 == (0 if n % 5 or n >= 20 else 1) for n in range(40)]
    rows = [
        {
            "input": str(n),
            "output": sides[str(n % 2)],
            "context": ["Paris is in France."],
            "part": n // 20,
            "label": truth,
        }
        for n, truth in enumerate(truths)
    ]
    first, second = measure(calibrate(rows, ledger=None, slice_by="part")).slices
    assert (first.accuracy.estimate, second.accuracy.estimate) == (0.8, 1.0)
    verdicts = [row["output"] == sides["0"] for row in rows[:20]]
    alone = cohen_kappa(verdicts, truths[:20], confidence=1 - 0.05 / 2)
    assert alone is not None
    assert first.kappa == replace(alone, confidence=0.95)
    assert second.kappa is not None
    assert second.kappa.estimate == 1.0


@pytest.mark.parametrize(("judge", "own"), [("vllm/gpt-x", 0), ("vllm/gpt-5-x", 3), ("vllm/claude-x", 2)])
def test_answers_of_a_model_of_the_judges_family_are_noted(judge: str, own: int, tmp_path: Path) -> None:
    models = ("openai/gpt-4o", "gpt-oss-20b", "o3-mini", "anthropic.claude-3-haiku", "Claude Opus", "other", None, 7)
    rows = [{**ROWS[n % 4], "id": str(n), **({"model": m} if m else {})} for n, m in enumerate(models)]
    with serving() as server:
        spec = f"{judge}({server.url})"
        made = calibrate(rows, "fact_check", judge=spec, ledger=tmp_path / "l.db")
        run = evaluate(rows, "fact_check", judge=spec, ledger=tmp_path / "l.db")
    noted = {each.kind: each for each in made.notes}
    assert made.n_same_family == own == (noted["same_family_labeled"]["samples"] if own else 0)
    assert ("same_family_labeled" in noted) == (own > 0)
    (caution,) = run.cautions or (None,)
    if caution is None:
        assert not own
    else:
        assert (caution.kind, caution["samples"], caution["of"], caution["judge"]) == ("same_family", own, 8, judge)
    if own == 3:
        assert f"The judge {judge} and the model that answered 3 of 8 samples are of one family (GPT)" in str(run)
        assert 'slice_by="model" shows whether it agrees' in str(made)
    assert calibration_for(made.judge, made.signature, tmp_path / "l.db") == made


def test_slices_are_by_functions_and_parts_of_metadata_too_and_must_exist():
    def odd(sample: Sample) -> bool:
        return int(sample.id) % 2 == 1

    made = calibrate(in_languages(30), ledger=None, slice_by=["part.page", odd])
    assert [(one.field, one.key, one.accuracy.n) for one in measure(made).slices] == [
        ("odd", "false", 15), ("odd", "true", 15), ("part.page", "0", 15), ("part.page", "1", 15)
    ]  # fmt: skip
    assert measure(calibrate(ROWS, ledger=None)).slices == ()
    with pytest.raises(ConfigError) as raised:
        calibrate(in_languages(6), ledger=None, slice_by="langg")
    assert (raised.value.field, raised.value.value, raised.value.near) == ("metadata field", "langg", ("lang",))


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: calibrate([{"output": "Hello!", "context": ["x"], "label": 1}], ledger=None),
        DataError,
        "no labeled sample was scored: 1 skipped, 0 failed; the answer makes no claim",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


ALWAYS = {"verdicts": {"1": {"reason": "", "passages": [1], "verdict": "supported"}}}
PAIR = (LexicalJudge(), ScriptedJudge({"list_claims": {"claims": ["x"]}, "verify_claims": ALWAYS}, name="careless"))


def test_a_judge_of_judges_is_compared_with_its_members(tmp_path: Path):
    ledger = tmp_path / "ledger.db"
    panel = Panel(*PAIR)
    made = calibrate(ROWS, judge=panel, ledger=ledger, per_judge=True)
    alone = [calibrate(ROWS, judge=one, ledger=ledger) for one in PAIR]
    assert [replace(each, created="", run="") for each in made.per_judge] == [
        replace(each, created="", run="") for each in alone
    ]
    assert made.members is not None
    assert made.members == compare_with_members(made, alone)
    assert {one.judge: one.accuracy.estimate for one in made.members.members} == {
        PAIR[0].identity: 1.0,
        PAIR[1].identity: 0.5,
    }
    data = made.to_dict()
    assert data["members"] == made.members.to_dict()
    assert "per_judge" not in data
    stored = calibration_for(panel.identity, made.signature, ledger)
    assert stored == made
    assert stored is not None
    assert stored.per_judge == ()
    assert stored.members == Calibration.from_dict(data).members  # by the votes
    assert stored.members is not None
    assert (made.members.by_votes, stored.members.by_votes) == (False, True)
    assert len(list_calibrations(ledger)) == 3
    assert "Members" in [section.title for section in made.view().sections]


class Stubborn(LexicalJudge):
    """Lists no claims of its own, and finds some claims right whatever the passages say."""

    right: str

    @property
    def identity(self) -> str:
        return f"finds-{self.right}"

    async def answer(self, question: Any, repeat: int = 0) -> Any:
        if question.kind == "list_claims":
            raise JudgeDeclined("it lists none")
        answer = await super().answer(question, repeat)
        if question.kind == "claim_supported":
            yes = self.right in question.claim
            return replace(answer, value=replace(answer.value, verdict="yes" if yes else "no", probability=float(yes)))
        value = tuple(
            replace(verdict, verdict="supported" if self.right in claim else "not_mentioned", probability=0.9)
            for claim, verdict in zip(question.claims, answer.value, strict=True)
        )
        return replace(answer, value=value)


@pytest.mark.parametrize("scorer", ["faithfulness", "fact_check"])
def test_a_panel_is_compared_with_its_members_by_their_votes(scorer: str, tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    rows = [{**row, "id": f"{row['id']}{n}", "input": str(n)} for n in range(8) for row in ROWS]
    panel = Panel(LexicalJudge(), Stubborn(right="is"), Stubborn(right="Rome"))
    made = calibrate(rows, scorer, judge=panel, ledger=ledger)
    found = made.members
    assert found is not None
    assert found.by_votes
    assert found.n == 32
    assert [(one.judge, one.accuracy.estimate) for one in found.members] == [
        (panel.judges[0].identity, 1.0),
        (panel.judges[1].identity, 0.5),
        (panel.judges[2].identity, 0.25),
    ]
    wrong = [[False, n in "bd", n != "d"] for _ in range(8) for n in "abcd"]
    assert found.votes == effective_votes(wrong)
    assert found.votes is not None
    stored = calibration_for(panel.identity, made.signature, ledger)
    assert stored == made
    assert stored is not None
    assert stored.members == found
    (members,) = [section for section in made.view().sections if section.title == "Members"]
    best = panel.judges[0].identity
    alone, together = (
        f"{each.estimate:.3f} (95% CI {limits(each.low, each.high)})"
        for each in (found.members[0].accuracy, found.accuracy)
    )
    assert members.lead[1] == f"The best single member is {best}: accuracy {alone}, together {together}."
    assert members.notes[-1] == "A member's verdicts are those of its votes on the panel's questions."
    data = made.to_dict()
    assert data["members"]["votes"]["votes"]["estimate"] == found.votes.votes.estimate
    assert data["votes"][best] == [pair.value for pair in calibrate(rows, scorer, judge="lexical", ledger=None).pairs]
    known = {made.signature: calibrations_for(made.judge, made.signature, ledger)}
    shown = str(run_view(evaluate(rows, scorer, judge=panel, ledger=ledger), calibrations=known))
    assert f"its 3 votes are worth about {found.votes.votes.estimate:.1f} (" in shown
    assert f"of the best single member, {best}, 1.000" in shown


def test_votes_of_a_panel_ask_nothing_and_count_where_they_lead_to_a_score() -> None:
    with serving() as server:
        panel = f"panel(lexical, vllm/x({server.url}), vllm/y({server.url}))"
        one = calibrate(ROWS, "faithfulness", judge=panel, ledger=None)
        asked = len(server.requests)
        assert one.members is not None
        assert asked == 2 * len(ROWS)  # the claims are listed by the first member
    assert [len(scores) for scores in one.votes.values()] == [4, 4, 4]
    assert calibrate(ROWS, "faithfulness", judge="lexical", ledger=None).votes == {}
    own = Faithfulness(judge=Panel(*PAIR))  # a judge of its own would be asked again
    assert calibrate(ROWS, own, judge=Panel(*PAIR), ledger=None).votes == {}


@pytest.mark.parametrize(
    ("votes", "problem"),
    [({"m": [1.0]}, "votes of m: 1 scores, 4 pairs"), ({"m": [1, 0, None, 7]}, "votes of m: 7 is not in [0, 1]")],
)
def test_stored_votes_that_fit_no_pairs_are_refused(votes: Any, problem: str) -> None:
    data = calibrate(ROWS, ledger=None).to_dict()
    assert Calibration.from_dict({**data, "votes": {"m": [1, 0, None, 0.5]}}).votes == {"m": (1.0, 0.0, None, 0.5)}
    with pytest.raises(DataError, match=re.escape(problem)):
        Calibration.from_dict({**data, "votes": votes})


def test_a_judge_without_members_is_calibrated_alone():
    made = calibrate(ROWS, judge="lexical", ledger=None, per_judge=True)
    assert (made.per_judge, made.members, made.to_dict()["members"]) == ((), None, None)


def test_the_members_are_left_out_if_the_calibration_is_stopped():
    stop, calls, enough = StopSignal(), list[str](), [0]

    class Stops(Judge):
        async def answer(self, question: Any, repeat: int = 0) -> Any:
            calls.append(question.kind)
            if enough[0] and len(calls) > enough[0]:
                stop.request("enough")
            return await LexicalJudge().answer(question, repeat)

    panel = Panel(LexicalJudge(), Stops())
    calibrate(ROWS, judge=panel, ledger=None)
    enough[0] = 2 * len(calls)  # of the panel again; then its members are asked
    made = calibrate(ROWS, judge=panel, ledger=None, per_judge=True, stop=stop, concurrency=1)
    assert stop.requested
    assert (made.per_judge, made.stop_reason, len(made.pairs)) == ((), "", len(ROWS))


def test_a_budget_is_for_one_judge():
    with pytest.raises(ConfigError, match=r"per_judge can't .* budget"):
        calibrate(ROWS, judge=Panel(*PAIR), ledger=None, per_judge=True, budget=1.0)


@pytest.mark.parametrize("options", [{"per_judge": True}, {"risk": 0.5}])
def test_a_member_that_cannot_answer_alone_is_refused_before_a_call(options: dict[str, Any]) -> None:
    fallback = ScriptedJudge(lambda question: question.parse('{"reason": "", "verdict": "yes"}'))
    with pytest.raises(ConfigError, match="sentences@1 only splits texts into sentences"):
        calibrate(ROWS, "fact_check", judge=Cascade(SentenceJudge(), fallback), ledger=None, **options)
    assert not fallback.asked
