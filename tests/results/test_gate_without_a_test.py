"""What a gate says of a run's samples alone: best scores in all of them, and thresholds on plain estimates."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from evalstone import ConfigError, Run, Skipped, evaluate, gate, write_run
from evalstone.report.html import page
from evalstone.report.markdown import lines
from evalstone.results.gate_criteria import GateCriteria
from evalstone.results.looks import LOOKS, next_look, remember
from evalstone.results.views.gate import LONGEST_REASON, UNTESTED, gate_view, miss_cells, verdict_text
from evalstone.results.views.junit import gate_junit
from evalstone.stats.gates import Decision, Miss
from evalstone.types import note
from tests.runs import Given, Harm, run_of

TEN = Given(scale=10)


def required(run: Run, name: str = "given") -> Decision:
    (found,) = gate(run, require=[name]).decisions
    return found


def compared(run: Run, **criteria: Any) -> list[str]:
    return [one.verdict for one in gate(run, alpha=None, **criteria).decisions]


# ---- The best score in all samples ----


@pytest.mark.parametrize(
    ("answers", "verdict", "estimate", "n"),
    [
        (["1"] * 3, "pass", 1.0, 3),
        (["1", "0.99", "1"], "fail", pytest.approx(2 / 3), 3),
        (["1", "fail", "1", "1"], "fail", 0.75, 4),
        (["1", "skip", "1"], "pass", 1.0, 2),
        (["fail"], "fail", 0.0, 1),
        (["skip"] * 3, "inconclusive", None, 0),
        (["0.9999999999"], "pass", 1.0, 1),  # rounding
    ],
)
def test_every_sample_must_have_the_best_score(answers: list[str], verdict: str, estimate: float, n: int) -> None:
    found = required(run_of(answers))
    assert (found.verdict, found.estimate, found.n) == (verdict, estimate, n)
    assert (found.low, found.high, found.p_pass, found.p_fail) == (None,) * 4


def test_the_best_score_is_that_of_the_scorers_scale_and_direction() -> None:
    run = run_of(["1", "1"], [TEN, Harm()])
    assert (required(run, "given").verdict, required(run, "harm").verdict) == ("pass", "fail")
    run = run_of(["0", "0"], [TEN, Harm()])
    assert (required(run, "given").verdict, required(run, "harm").verdict) == ("fail", "pass")
    assert required(run_of(["0.5"], [TEN])).verdict == "fail"  # 5 of 10


def test_the_first_samples_that_miss_are_named_with_their_reasons() -> None:
    found = required(run_of(["1", "0.5", "fail", *["0"] * 8]))
    assert found.misses[0] == Miss(sample_id="s2", trial=None, value=0.5, reason="says 0.5")
    assert (found.misses[1].sample_id, found.misses[1].value) == ("s3", None)
    assert "could not convert" in found.misses[1].reason
    assert [one.sample_id for one in found.misses] == ["s2", "s3", "s4", "s5", "s6"]
    assert required(run_of(["1"])).misses == ()


def test_every_trial_counts_and_a_failed_answer_misses() -> None:
    def agent(*, input: str, trial: int) -> str:
        if (input, trial) == ("b", 3):
            raise ValueError("no answer")
        return "1"

    cases = [{"id": name, "input": name} for name in "ab"]
    found = required(evaluate(cases, Given(), target=agent, trials=3, ledger=None))
    assert (found.verdict, found.n, [(one.sample_id, one.trial) for one in found.misses]) == ("fail", 6, [("b", 3)])


def test_samples_that_were_skipped_are_left_out_and_said() -> None:
    found = gate(run_of(["1", "skip"]), require="given")
    assert found.notes == (note("undefined_left_out", "caution", "given", samples=1),)


def test_a_judge_that_declines_does_not_say_that_a_score_is_the_best() -> None:
    run = evaluate([{"id": "a", "output": "Hello!"}], "bias", judge="lexical", ledger=None)
    found = gate(run, require=["bias"])
    (miss,) = found.decisions[0].misses
    assert (found.verdict, found.decisions[0].n, miss.sample_id, miss.value) == ("fail", 1, "a", None)
    assert isinstance(run.records[0].outcome, Skipped)
    assert miss.reason == run.records[0].outcome.reason
    assert "no score" in str(found)


def test_a_requirement_spends_no_part_of_alpha() -> None:
    run = run_of(["1.0", "0.8"] * 20, [Given(), Harm()])
    alone = gate(run, min={"given": 0.8})
    beside = gate(run, min={"given": 0.8}, require=["harm"])
    assert beside.decisions[0] == alone.decisions[0]
    assert (alone.verdict, beside.verdict) == ("pass", "fail")


def test_a_requirement_is_no_look(tmp_path: Any) -> None:
    run, more, criteria = run_of(["1"] * 9), run_of(["1"] * 10), GateCriteria(require=["given"])
    folder = write_run(run, tmp_path)
    assert not remember(folder, run, criteria, "pass", look=1, alpha=0.05, missing="worst")
    assert not (folder / LOOKS).exists()
    both = GateCriteria(min={"given": 0.1}, require=["given"])
    assert not remember(folder, run, both, "pass", look=1, alpha=0.05, missing="worst")
    assert (next_look(folder, more, both), next_look(folder, more, criteria)) == (2, 1)


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"require": 3}, r'require must be a list of scorers, such as \["contains"\], not 3'),
        ({"require": {"given": 1}}, "require must be a list of scorers"),
        ({"require": [3]}, "require must be a list of scorers"),
        ({"require": ["givne"]}, "did you mean given"),
        ({"require": ["given", Given().signature]}, r"require names given twice: as given and as given\("),
    ],
)
def test_a_wrong_requirement_is_refused(criteria: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gate(run_of(["1"]), **criteria)


def test_a_scorer_that_is_named_twice_alike_is_checked_once() -> None:
    found = gate(run_of(["1"], [Given(), Harm()]), require=["given", "given", "harm"])
    assert [(one.name, one.verdict) for one in found.decisions] == [("given", "pass"), ("harm", "fail")]


def test_reports_show_what_is_required_and_which_samples_miss_it() -> None:
    run = run_of(["1", "0.5", "fail"])
    found = gate(run, require=["given"])
    text = "\n".join(lines(gate_view(found))).replace("\\", "")
    assert "| given | 1 of 3 | best" in text
    assert " | 3 | ✕ fail |" in text
    assert "| given | s2 | 0.5 | says 0.5 |" in text
    assert "| given | s3 | no score | ValueError: " in text
    assert "not a statistical test" in text
    assert "wrong pass" not in text
    assert "says 0.5" in "".join(page(gate_view(found)))
    root = ElementTree.fromstring("".join(gate_junit(found, inconclusive_fails=False)))
    ((case,),) = root
    assert case.attrib["name"].startswith("given best")
    assert {one.attrib["name"] for one in case.iter("property")} == {"estimate"}
    assert "s2: 0.5 (says 0.5)" in (case[1].text or "")
    assert "without a test" not in str(gate(run, require=["given"], alpha=None))
    (plain,) = found.to_dict()["decisions"]
    assert (plain["kind"], plain["p_pass"]) == ("require", None)
    assert plain["misses"][0] == {"sample_id": "s2", "trial": None, "value": 0.5, "reason": "says 0.5"}


def test_without_any_score_reports_say_so() -> None:
    text = "\n".join(lines(gate_view(gate(run_of(["skip"]), require=["given"]))))
    assert "? inconclusive; no sample" in text


# ---- Thresholds on plain estimates ----


def test_without_a_test_the_mean_itself_is_compared() -> None:
    run = run_of(["0.5", "0.7"], [Given(), Harm()])
    assert compared(run, min={"given": 0.6}, max={"harm": 0.6}) == ["pass", "pass"]
    assert compared(run, min={"given": 0.61}, max={"harm": 0.59}) == ["fail", "fail"]
    assert gate(run, min={"given": 0.6}).verdict == "inconclusive"  # two samples say little
    assert "with missing scores" not in str(gate(run, min={"given": 0.6}, alpha=None))


def test_without_a_test_pass_rates_and_regressions_are_compared_too() -> None:
    before, now = run_of(["0.5", "0.7"]), run_of(["0.4", "0.7"])
    assert compared(now, pass_rate={"given": (0.7, 0.5)}) == ["pass"]
    assert compared(now, pass_rate={"given": (0.7, 0.51)}) == ["fail"]
    assert compared(now, max_regression={"given": 0.05}, baseline=before) == ["pass"]
    assert compared(now, max_regression={"given": 0.04}, baseline=before) == ["fail"]


@pytest.mark.parametrize(
    ("minimum", "missing", "verdict"),
    [
        (0.4, "worst", "pass"),  # 0.5 of 4 and the worst of 1: 0.4
        (0.41, "worst", "inconclusive"),
        (0.6, "worst", "inconclusive"),  # 0.5 of 4 and the best of 1
        (0.61, "worst", "fail"),
        (0.5, "ignore", "pass"),
        (0.51, "ignore", "fail"),
    ],
)
def test_without_a_test_missing_scores_leave_open_what_they_may_decide(
    minimum: float, missing: str, verdict: str
) -> None:
    run = run_of([*["0.5"] * 4, "fail"])
    found = gate(run, min={"given": minimum}, alpha=None, missing=missing)  # type: ignore[arg-type]
    assert found.verdict == verdict
    text = "\n".join(lines(gate_view(found)))
    assert ("1 missing score may" in text) == (verdict == "inconclusive")
    assert ("0.400 to 0.600" in text) == (missing == "worst")
    assert "without a test" in text


def test_without_a_test_or_a_score_nothing_is_decided() -> None:
    found = gate(run_of(["skip"]), min={"given": 0.5}, alpha=None, missing="ignore")
    assert (found.verdict, found.alpha, found.look_alpha) == ("inconclusive", None, None)
    assert found.to_dict()["alpha"] is None


def test_the_compared_mean_is_that_of_the_run() -> None:
    weighted = [{"weight": weight, "group": group} for weight, group in ((1, "a"), (2, "a"), (5, "b"), (1, "c"))]
    for metadata in (None, weighted, [{"group": one["group"]} for one in weighted]):
        run = run_of(["0.1", "0.2", "0.9", "0.4"], metadata=metadata)
        (found,) = gate(run, min={"given": 0.3}, alpha=None).decisions
        assert found.estimate == pytest.approx(run["given"].mean)


# ---- Printing ----


def test_the_reason_of_a_miss_is_short_and_can_not_steer_a_terminal() -> None:
    sample, score, reason = miss_cells(Miss(sample_id="q1", trial=2, value=0.25, reason="\x1b[2J" + "a" * 300))
    assert (sample, score) == ("q1 #2", "0.25")
    assert "\x1b" not in reason
    assert len(reason) < LONGEST_REASON + 10  # control characters are written out


def test_no_number_of_samples_is_promised_where_the_next_look_has_no_number() -> None:
    (found,) = gate(run_of(["1", "0.5"]), min={"given": 0.7}).decisions
    assert verdict_text(found, 2).endswith("next look (look=2)")
    assert verdict_text(found, None) == "? inconclusive"


def test_printing_a_gate_shows_its_table_and_the_samples_that_miss() -> None:
    run = run_of([*["1", "0.8"] * 20, "skip"], [Given(), Harm()])
    lines = str(gate(run, min={"given": 0.7}, require=["given", "harm"])).split("\n")
    assert lines[0].startswith("evalstone gate · ")
    assert " · 41 samples · " in lines[0]
    assert lines[1].split("  ")[0] == "check"
    assert [line.split()[:2] for line in lines[2:5]] == [["given", "0.900"], ["given", "20"], ["harm", "0"]]
    assert all(line.endswith(mark) for line, mark in zip(lines[2:5], ("✓ pass", "✕ fail", "✕ fail"), strict=True))
    assert ["given", "s2", "0.8", "says", "0.8"] in [line.split() for line in lines]
    assert any(line.startswith("given, harm: ") and "leaves out 1 sample" in line for line in lines)
    assert lines[-1] == "Gate: ✕ fail"


def test_printing_a_gate_without_a_test_says_so() -> None:
    text = str(gate(run_of(["0.5", "0.7"]), min={"given": 0.6}, alpha=None))
    assert "limits" not in text
    assert UNTESTED in text.splitlines()


def test_printing_a_gate_shows_no_invisible_text() -> None:
    run = evaluate([{"id": "a\u202eb", "output": "0"}], Given(), ledger=None)
    assert "a\\u202eb" in str(gate(run, require=["given"]))


def test_one_sample_that_decides_nothing_is_told_of_in_the_singular() -> None:
    text = str(gate(run_of(["0.9"]), min={"given": 0.8}))
    assert "1 sample doesn't" in text
    assert "don't" not in text
