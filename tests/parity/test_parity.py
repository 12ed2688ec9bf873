"""Our scorers give the numbers that @mastra/evals gave, for the same judgements."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.grounding import is_quoted, not_grounded
from evalstone.questions.claims import ListClaims
from evalstone.questions.harm import JudgeOpinions, ListOpinions
from evalstone.scorers import Bias, Completeness, Faithfulness
from evalstone.types import Failed, Sample, Score
from tests.parity.adapters import ADAPTERS
from tests.parity.adapters.common import Said, sample_of
from tests.parity.adapters.recorded import Invented, Repeated, in_words_of
from tests.parity.cases import INVENTIONS, RecordedJudge, check_all, covered, outcome_of, read_cases

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SETS = (("scores", False), ("edge", True))
BUNDLED = Path(__file__).parent / "data"
WHOLE = Path(os.environ.get("EVALSTONE_PARITY", Path(__file__).parents[3] / "shared" / "parity"))


def different(file: Path, *, edge: bool) -> list[str]:
    verdicts = check_all(read_cases(file), edge=edge)
    assert verdicts, f"{file} holds no case that a scorer covers"
    return [verdict.told for verdict in verdicts if not verdict.equal]


def test_bundled_cases_give_the_recorded_scores() -> None:
    assert different(BUNDLED / "scores.jsonl", edge=False) == []


def test_bundled_edge_cases_end_as_their_policy_says() -> None:
    assert different(BUNDLED / "edge.jsonl", edge=True) == []


def test_every_bundled_case_is_covered() -> None:
    cases = [case for name in ("scores", "edge") for case in read_cases(BUNDLED / f"{name}.jsonl")]
    assert [case["scorer"] for case in cases if not covered(case)] == []


CLAIMS = {"claims": ["Ada wrote the notes.", " "]}
VERDICTS = {"verdicts": [{"verdict": "yes", "reason": "r"}, {"verdict": "no", "reason": "r"}]}
NO_REASON = {"verdicts": [{"verdict": "yes"}, {"verdict": "no"}]}
NO_TEXT = {"verdicts": [{"verdict": True, "reason": "r"}, {"verdict": "no", "reason": "r"}]}


def faithfulness(*judged: Any, scorer: str = "faithfulness", **options: Any) -> dict[str, Any]:
    return {
        "id": "inline",
        "scorer": scorer,
        "options": {"context": ["A passage."], **options},
        "input": "q",
        "output": "a",
        "judge_answers": [*judged],
    }


@pytest.mark.parametrize("malformed", ["no JSON", "", {}, [], None, 3, "null", '{"verdicts": [', NO_REASON, NO_TEXT])
def test_a_malformed_answer_is_asked_for_once_more(malformed: Any) -> None:
    assert isinstance(outcome_of(faithfulness(CLAIMS, malformed, malformed)), Failed)
    assert isinstance(outcome_of(faithfulness(malformed, malformed, CLAIMS, VERDICTS)), Failed)
    scored = outcome_of(faithfulness(malformed, CLAIMS, malformed, VERDICTS))
    assert isinstance(scored, Score)
    assert scored.value == 0.5  # the blank claim counts


def test_an_answer_in_a_fence_or_in_prose_is_read() -> None:
    wrapped = f"```json\n{json.dumps(CLAIMS)}\n```", f"Here it is: {json.dumps(VERDICTS)}"
    assert isinstance(outcome_of(faithfulness(*wrapped)), Score)


def test_verdicts_on_many_claims_are_given_batch_by_batch() -> None:
    many = {"claims": [f"Ada wrote note {n}." for n in range(60)]}, {"verdicts": VERDICTS["verdicts"] * 30}
    output = {"output": "In the year of 1843 Ada wrote many long notes on it."}
    scored = outcome_of(faithfulness(many[0], "no JSON", many[1]) | output)
    assert isinstance(scored, Score)
    assert scored.value == 0.5
    failed = outcome_of(faithfulness(many[0], VERDICTS) | output)
    assert isinstance(failed, Failed)
    assert failed.error.startswith("25 claims, 2 verdicts")


def test_recorded_texts_become_as_many_texts_in_words_of_the_source() -> None:
    source = "Ada wrote three long\nnotes."
    assert in_words_of(source, ["x", " ", "z"]) == ["Ada", "Ada wrote", "Ada wrote three"]
    many = in_words_of(source, ["x"] * 15)
    assert len(set(many)) == 15
    assert all(is_quoted(text, source) and not not_grounded(text, source) for text in many)
    assert in_words_of("Ada", ["x", "y"]) == ["Ada", "Ada"]
    assert [type(text) for text in in_words_of("Ada", ["x", "y"])] == [str, Repeated]
    assert in_words_of(source, []) == []
    assert in_words_of(" ", ["x", " "]) == ["x", "(blank)"]
    assert [type(text) for text in in_words_of(" ", ["x", " "])] == [Invented, Invented]


def test_what_a_judge_made_up_must_be_refused_and_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    opinions = {"opinions": ["It is good."]}
    verdicts = {"results": [{"result": "yes", "reason": "r"}]}
    case = {**faithfulness(opinions, verdicts, scorer="bias"), "score": 1}
    refused, broken = check_all(
        [{**case, "output": ""}, {**case, "output": "", "judge_answers": ["no JSON", "no JSON"]}], edge=False
    )
    assert [refused.equal, broken.equal] == [True, False]
    assert refused.invention is INVENTIONS[0]
    taken = [
        Said(ListOpinions, [{"opinions": [Invented("It is good.")]}]),
        Said(JudgeOpinions, [{"verdicts": [{"verdict": "yes", "reason": "r"}]}]),
    ]
    monkeypatch.setitem(ADAPTERS, "bias", lambda case: (Bias(), Sample(output="It is good."), taken))  # type: ignore[arg-type]
    (scored,) = check_all([case], edge=False)
    assert not scored.equal
    assert INVENTIONS[0].what in scored.told


def test_a_refusal_for_something_that_no_judge_made_up_is_different() -> None:
    case = {**faithfulness({"claims": ["x"]}, {"verdicts": [{"verdict": "yes", "reason": "the text"}]}), "score": 1}
    (verdict,) = check_all([case], edge=False)
    assert not verdict.equal
    assert verdict.invention is None


def summarization(coverage: int) -> dict[str, Any]:
    alignment = [{"claim": f"Ada wrote note {n}.", "supported": True, "reason": "r"} for n in range(3)]
    answered = [{"answered": True, "reason": "r", "question": "?"}] * coverage
    answers = [{"alignment": alignment, "questions": ["Who?", "What?"]}, {"coverage": answered}]
    return {**faithfulness(*answers, scorer="summarization"), "options": {}}


def test_each_question_gets_what_was_recorded_for_it_whatever_is_asked_before() -> None:
    scored, failed = outcome_of(summarization(2)), outcome_of(summarization(1))
    assert isinstance(scored, Score)
    assert scored.value == 1
    assert isinstance(failed, Failed)
    assert failed.error.startswith("2 questions, 1 verdict")  # the second try is not given the claims, which come later


def test_a_question_that_nothing_was_recorded_for_is_no_outcome() -> None:
    judge = RecordedJudge([Said(ListClaims, [{"claims": []}], {"text": "a"})])
    assert judge(ListClaims(text="a")) == {"claims": []}
    assert judge(ListClaims(text="a")) is None
    assert judge.unrecorded == []
    assert judge(ListClaims(text="b")) is None
    assert judge.unrecorded == [ListClaims(text="b")]


def test_a_case_whose_scorer_asks_something_unrecorded_is_different(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {**faithfulness(CLAIMS, VERDICTS), "policy": "failed"}
    monkeypatch.setitem(ADAPTERS, "faithfulness", lambda case: (Faithfulness(), sample_of(case, context=["A"]), []))  # type: ignore[arg-type]
    (verdict,) = check_all([case], edge=True)
    assert not verdict.equal
    assert "not asked this" in verdict.told


def test_a_scale_of_0_is_1_or_measures_nothing() -> None:
    as_one = {**faithfulness(CLAIMS, VERDICTS, scale=0), "score": 0.5}
    stated = {"verdicts": [{**verdict, "claim": "c"} for verdict in VERDICTS["verdicts"]]}
    stays = {**faithfulness(CLAIMS, stated, scorer="legacy-faithfulness", scale=0), "score": 0}
    assert [verdict.told for verdict in check_all([as_one, stays], edge=False)] == ["", ""]


def test_a_case_that_an_adapter_breaks_on_is_different_and_the_others_are_told() -> None:
    broken: dict[str, Any] = {"id": "broken", "scorer": "faithfulness", "score": 1, "options": {}}
    whole = {**faithfulness(CLAIMS, VERDICTS), "score": 0.5}
    verdicts = check_all([broken, whole], edge=False)
    assert [verdict.equal for verdict in verdicts] == [False, True]
    assert "broken: KeyError" in verdicts[0].told


@pytest.mark.parametrize(
    ("source", "flags", "text", "found"),
    [
        ("a$", "", "a\n", False),
        ("a$", "m", "a\u2028b", True),
        ("[$]5", "", "$5", True),
        (r"\$5", "", "$5", True),
        (r"(?<x>a)\k<x>", "", "aa", True),
        (r"\s", "", "\ufeff", True),
        (r"[^\S]", "", "\x1c", False),
        (".", "", "\u2028", False),
        (".", "s", "\u2028", True),
        ("^.$", "", "\U0001f600", False),
        ("^.$", "u", "\U0001f600", True),
        ("b", "y", "ab", False),
        ("[^]", "", "\n", True),
        ("x{,2}", "", "x{,2}", True),
    ],
)
def test_a_javascript_pattern_means_here_what_it_means_there(source: str, flags: str, text: str, found: bool) -> None:
    case = {"id": "p", "scorer": "check-matches", "options": {"args": [source, flags]}, "output": text}
    assert [verdict.told for verdict in check_all([{**case, "score": int(found)}], edge=False)] == [""]


def test_adapters_choose_a_definition_and_no_other_option_of_their_own() -> None:
    chosen: dict[str, set[str]] = defaultdict(set)
    for case in read_cases(BUNDLED / "scores.jsonl"):
        scorer, _, _ = ADAPTERS[case["scorer"]](case)
        if not case["options"]:
            chosen[case["scorer"]] |= {name for name, _ in scorer.changed_parameters()}
    extra = {name: options - {"definition"} for name, options in chosen.items() if options - {"definition"}}
    # A tagger's lists, and the criteria of which the judge's copy decides.
    assert extra == {
        "completeness": {"elements"},
        "legacy-completeness": {"elements"},
        "rubric": {"criteria"},
    }


def untagged(file: Path) -> tuple[int, int]:
    """How many recorded completeness scores come out of the texts alone, and how many there are."""
    cases = [case for case in read_cases(file) if case["scorer"].endswith("completeness")]
    equal = [not verdict.told for verdict in check_all([{**case, "details": None} for case in cases], edge=False)]
    return sum(equal), len(equal)


def test_completeness_without_a_tagger_gives_most_scores() -> None:
    assert untagged(BUNDLED / "scores.jsonl") == (18, 22)


@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"the whole set of recorded cases is not at {WHOLE}")
def test_the_whole_set_holds_and_the_documentation_names_each_invention_with_its_number_of_cases() -> None:
    page = (ROOT / "docs" / "parity.md").read_text("utf-8")
    verdicts = [v for name, edge in SETS for v in check_all(read_cases(WHOLE / f"{name}.jsonl"), edge=edge)]
    assert [verdict.told for verdict in verdicts if not verdict.equal] == []
    for invention in INVENTIONS:
        assert f"| {invention.what} | {sum(v.invention is invention for v in verdicts)} |" in page


@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"the whole set of recorded cases is not at {WHOLE}")
def test_the_documented_share_of_completeness_is_the_measured_one() -> None:
    equal, cases = untagged(WHOLE / "scores.jsonl")
    assert f"{equal} of {cases}" in (ROOT / "docs" / "parity.md").read_text("utf-8")
    assert f"{equal} of {cases}" in (Completeness.__doc__ or "")
    assert f"equal in {equal / cases:.0%} of" in (ROOT / "README.md").read_text("utf-8")
