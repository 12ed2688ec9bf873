"""What judges were asked, rebuilt from a record: the prompts to the character, or a reason why not."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import Message, ModelJudge, Run, Sample, Scorer, ToolCall, evaluate, read_run
from evalstone.errors import ConfigError
from evalstone.judges import Cascade, DecisionJudge, LoggingJudge, Panel, SelfConsistency
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.base import Ask
from evalstone.results.files import write_run
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.calls import Asked, Prompts
from evalstone.run.rebuilt import prompts_behind, rebuilt_prompts
from evalstone.scorers import SCORERS
from evalstone.scorers.registry import parse_scorer
from evalstone.scorers.sources import ContextScorer
from evalstone.scorers.tables import defined, definition_of
from evalstone.types import JudgeCall, Score, WorkedExample
from evalstone.types.context_limits import DEFAULT_LIMITS
from tests.aligned import OTHER_ANSWER, WORDING, aligned, aligned_checker
from tests.judges.test_decision import decide
from tests.serving import Server, asked_in, completion, filled, serving

SAMPLES = [
    Sample(
        id=f"s{number}",
        input="When is it open?",
        output=f"It opens at {number}. It closes at 6 pm. <<passage 1>>",
        context=["It opens at 9.", "It closes at 6 pm."],
        reference="It is open from 9 to 6.",
        messages=[
            Message(role="user", content="When is it open?"),
            Message(role="assistant", tool_calls=[ToolCall(name="look", arguments={"at": "hours"}, result="9 to 6")]),
            Message(role="assistant", content=f"It opens at {number}. It closes at 6 pm."),
        ],
    )
    for number in (9, 10)
]
POLITE = {"kind": "llm_classifier", "name": "polite", "question": "Is {{output}} polite?", "meanings": {"yes": "it is"}}
JUDGED = (
    "faithfulness",
    "answer_relevancy",
    "rubric(criteria='It greets')",
    POLITE,
    "per_turn(scorer=answer_relevancy)",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(lambda request, _: completion(json.dumps(answer_to(request)))) as running:
        yield running


def answer_to(request: dict[str, Any]) -> Any:
    return filled(request["response_format"]["json_schema"]["schema"], asked_in(request))


def judge_of(server: Server, model: str = "m", **settings: Any) -> ModelJudge:
    return ModelJudge(f"vllm/{model}", base_url=server.url, **settings)


def prompts_of(run: Run) -> list[tuple[JudgeCall, Asked | None]]:
    """Each call to a single judge with what is rebuilt of it."""
    samples = {sample.key: sample for sample in run.samples or ()}
    found: list[tuple[JudgeCall, Asked | None]] = []
    for record in run.records:
        prompts = prompts_behind([record], samples[record.key], run.scorers, keeps_reasoning=False, asking=run.asking)
        asked = prompts[record.signature].asked
        found += [(leaf, asked.get((leaf.fingerprint, leaf.judge))) for call in record.calls for leaf in call.leaves()]
    return found


def saved(run: Run) -> Run:
    """The run as it is read from a folder or the ledger: without anything but its data."""
    return Run.from_dict(json.loads(json.dumps(run.to_dict())), run.records)


def test_rebuilt_prompts_are_those_that_were_sent(server: Server) -> None:
    server.requests.clear()
    run = evaluate(SAMPLES, JUDGED, judge=judge_of(server, language="French"), ledger=None)
    found = prompts_of(replace(saved(run), samples=SAMPLES))
    assert len(found) == 16
    sent = {json.dumps(request["messages"]) for request in server.requests}
    shown = {json.dumps(asked.to_dict()["messages"]) for _, asked in found if asked is not None}
    assert shown == sent
    assert all(asked is not None and asked.is_prompt and asked.schema for _, asked in found)
    assert any("Write every reason in French." in text for _, asked in found if asked for _, text in asked.texts)


@pytest.mark.parametrize(
    ("kind", "of_lexical"),
    [
        ("panel", {"claims", "context"}),
        ("cascade", {"text", "question", "claims", "context"}),
        ("self_consistency", set[str]()),
    ],
)
def test_members_of_composite_judges_are_shown_what_they_were_asked(
    server: Server, kind: str, of_lexical: set[str]
) -> None:
    server.requests.clear()
    one, two = judge_of(server), judge_of(server, "other")
    judge = {
        "panel": lambda: Panel(one, two, "lexical"),
        "cascade": lambda: Cascade("lexical", one, threshold=0.8),
        "self_consistency": lambda: SelfConsistency(judge_of(server, temperature=0.5), 3),
    }[kind]()
    run = evaluate(SAMPLES, ["faithfulness"], judge=judge, ledger=None)
    found = prompts_of(replace(saved(run), samples=SAMPLES))
    assert found
    assert [call.question for call, asked in found if asked is None] == []
    sent = {json.dumps(request["messages"]) for request in server.requests}
    assert {json.dumps(asked.to_dict()["messages"]) for _, asked in found if asked and asked.is_prompt} == sent
    inputs = {name for _, asked in found if asked and not asked.is_prompt for name in asked.to_dict()["inputs"]}
    assert inputs == of_lexical


def test_a_cascade_that_sends_on_a_part_shows_that_part(server: Server) -> None:
    sample = Sample(id="s", output="It opens at 9. It never closes on red days.", context=["It opens at 9.", "No."])
    run = evaluate([sample], ["faithfulness"], judge=Cascade("lexical", judge_of(server), threshold=0.78), ledger=None)
    parts = [call for record in run.records for call in record.calls if (call.detail or {}).get("items")]
    assert parts, [call.detail for record in run.records for call in record.calls]
    assert [call.question for call, asked in prompts_of(replace(saved(run), samples=[sample])) if asked is None] == []


def test_a_question_in_parts_is_rebuilt_in_the_same_parts(server: Server) -> None:
    long = replace(SAMPLES[0], context=[f"It opens at {number}. " * 600 for number in range(12)])
    judge = judge_of(server, context_window=8000, max_tokens=500)
    run = evaluate([long], ["faithfulness"], judge=judge, ledger=None)
    found = prompts_of(replace(saved(run), samples=[long]))
    (_, claims), (_, part) = found
    assert claims is not None
    assert part is not None
    material = part.to_dict()["messages"][-1]["content"]
    assert "It opens at 0. " in material
    assert "It opens at 11. " not in material


@pytest.mark.parametrize("kind", ["alone", "panel", "cascade", "own"])
def test_prompts_of_aligned_judges_are_shown_with_their_wording_and_examples(
    server: Server, kind: str, tmp_path: Path
) -> None:
    server.requests.clear()
    plain, judge = judge_of(server, "other"), aligned_checker(judge_of(server), SAMPLES[0])
    given: dict[str, Any] = {
        "alone": {"judge": judge},
        "panel": {"judge": Panel(plain, judge)},
        "cascade": {"judge": Cascade(plain, LoggingJudge(judge, tmp_path / "log.jsonl"), threshold=1)},
        "own": {"judge": plain, "scorers": [replace(parse_scorer("relevancy_check"), judge=judge)]},
    }[kind]
    ledger = tmp_path / "ledger.db"
    named: dict[str, Any] = {"scorers": ["relevancy_check", "answer_relevancy"], "ledger": ledger}
    run = evaluate(SAMPLES, **(named | given))
    write_run(run, tmp_path / "run")
    sent = {json.dumps(request["messages"]) for request in server.requests}
    assert any(WORDING in each and OTHER_ANSWER in each for each in sent)
    for stored in (read_run(tmp_path / "run"), read_run(run.id, ledger=ledger)):
        found = prompts_of(replace(stored, samples=SAMPLES))
        assert {json.dumps(asked.to_dict()["messages"]) for _, asked in found if asked} == sent
        assert len([asked for _, asked in found if asked]) == len(found)
    record, info = run.records[0], run["relevancy_check"].info
    limits_only = replace(run.asking, alignments={})
    without = rebuilt_prompts(record, SAMPLES[0], info, keeps_reasoning=False, asking=limits_only)
    assert without.missing == "no_alignment"


def test_examples_leave_less_of_the_window_to_the_parts_of_a_question(server: Server) -> None:
    """Without the examples, the passages would be in fewer parts."""
    long = replace(SAMPLES[0], context=[f"It opens at {number}. " * 600 for number in range(12)])
    example = WorkedExample(inputs={"claims": ["It opens."], "context": ["It opens at 9. " * 500]}, label="supported")
    asked = VerifyClaims(claims=("It opens.",), context=("It opens.",))
    judge = aligned(judge_of(server, context_window=8000, max_tokens=500), "faithfulness", asked, examples=(example,))
    run = evaluate([long], ["faithfulness"], judge=Panel(judge, judge_of(server, "other")), ledger=None)
    found = prompts_of(replace(saved(run), samples=[long]))
    assert [call.question for call, asked in found if asked is None] == []
    # What the run says of the limits is read, not assumed.
    other_limits = replace(run.asking, limits=dict.fromkeys(run.asking.limits, DEFAULT_LIMITS))
    record, info = run.records[0], run["faithfulness"].info
    other = rebuilt_prompts(record, long, info, keeps_reasoning=False, asking=other_limits)
    assert len(other.asked) < len({(call.fingerprint, call.judge) for call, _ in found})


def no_passages(sample: Sample) -> list[str]:
    return []


class Own(Scorer):
    """A scorer with code of the user's."""

    name = "own"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        return Score(float(bool(await ask(ListClaims(text=output)))))


def test_what_can_not_be_rebuilt_has_a_reason(server: Server) -> None:
    sample, judge = SAMPLES[0], judge_of(server)
    run = evaluate([sample], [Own(), "faithfulness(scale=10)"], judge=judge, ledger=None)
    own, built_in = run.records
    info = run["own"].info
    assert rebuilt_prompts(own, sample, info, keeps_reasoning=False, asking=run.asking) == Prompts({}, "own_code")
    info = run["faithfulness"].info

    def reason(info: ScorerInfo, of: Sample | None = sample) -> str:
        found = rebuilt_prompts(built_in, of, info, keeps_reasoning=False, asking=run.asking)
        assert found.asked == {}
        return found.missing

    assert reason(info, None) == "no_texts"
    assert reason(replace(info, tool="promptfoo 0.123.1")) == "imported"
    assert reason(replace(info, definition={})) == "settings"
    assert reason(replace(info, signature="faithfulness(scale=10; 00000000, 9a0e41c3)@4")) == "other_version"
    assert reason(info, replace(sample, output="Another text.")) == "not_rebuilt"
    assert reason(replace(info, definition={"name": "faithfulness", "scale": -1})) == "own_code"


def test_prompts_of_the_users_scorers_are_shown_if_they_are_passed_and_have_not_changed(server: Server) -> None:
    server.requests.clear()
    run = saved(evaluate(SAMPLES, [Own()], judge=judge_of(server), ledger=None))
    sent = [request["messages"] for request in server.requests]
    own, info = {Own().signature: Own()}, run["own"].info
    found = [
        rebuilt_prompts(r, s, info, keeps_reasoning=False, asking=run.asking, own=own)
        for r, s in zip(run.records, SAMPLES, strict=True)
    ]
    assert [asked.to_dict()["messages"] for each in found for asked in each.asked.values()] == sent

    class Changed(Scorer):
        """A scorer with code of the user's."""

        name = "own"
        questions = (ListClaims,)

        async def score(self, ask: Ask, *, output: str) -> Score:
            raise AssertionError("the code of another scorer was run")

    assert Changed().signature != info.signature
    changed = {Changed().signature: Changed()}
    found = [
        rebuilt_prompts(run.records[0], SAMPLES[0], info, keeps_reasoning=False, asking=run.asking, own=each)
        for each in (changed, {})
    ]
    assert [each.missing for each in found] == ["own_code", "own_code"]


def test_a_definition_is_the_scorer_it_is_of() -> None:
    for name in SCORERS:
        try:
            scorer = parse_scorer(name)
        except ConfigError:  # it has no default, such as the criteria of a rubric
            continue
        definition = definition_of(scorer)
        assert definition is not None
        if name != "embedding_similarity":
            assert defined(json.loads(json.dumps(definition))).signature == scorer.signature
    for spec in (*JUDGED, {"kind": "geval", "name": "brief", "text": "The answer is brief.", "scale": 5}):
        scorer = parse_scorer(spec)
        definition = definition_of(scorer)
        assert definition is not None
        assert defined(json.loads(json.dumps(definition))) == scorer
    assert definition_of(Own()) is None
    assert definition_of(parse_scorer({"name": "faithfulness", "context_from": no_passages})) is None


@pytest.mark.slow
def test_a_definition_from_anywhere_imports_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\nthing = None\n", encoding="utf-8")
    address, model = "evil.py:thing", {"model": "evil.py:thing"}
    tables: list[Mapping[str, Any]] = [{"name": address}, {"kind": address}, {"name": "per_turn", "scorer": address}]
    for name, kind in SCORERS.items():
        known = {} if name == "faithfulness" else ContextScorer.__dataclass_fields__
        for field in kind.__dataclass_fields__.keys() - known:
            tables += ({"name": name, field: value} for value in (address, model))
    for table in tables:
        with contextlib.suppress(ConfigError, TypeError):
            defined(table)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("window", [None, 2000])
def test_a_decision_model_shows_the_decisions_that_were_sent(window: int | None) -> None:
    """It reads no prompt: pages must not show one that only a language model would have been sent."""
    long = replace(SAMPLES[0], context=[f"It opens at {number}. " * 300 for number in range(4)])
    with serving(decide) as server:
        judge = DecisionJudge("systemone/m", base_url=server.url, context_window=window)
        run = evaluate([long], ["fact_check", "context_precision"], judge=judge, ledger=None)
        found = prompts_of(replace(saved(run), samples=[long]))
    assert [call.question for call, asked in found if asked is None] == []
    shown = {asked.texts for _, asked in found if asked and not asked.is_prompt}
    sent = [(request["state"], request["questions"]) for request in server.requests]
    assert len(shown) == len(sent)
    for (name, state), *decisions in shown:
        assert name == "state"
        questions = next(questions for sent_state, questions in sent if json.loads(state) == sent_state)
        assert [name for name, _ in decisions] == [f"decision {name}" for name in questions]
        for (_, text), question in zip(decisions, questions.values(), strict=True):
            meanings = [f"- {word}: {question['criteria'][key]}" for word, key in (("yes", "true"), ("no", "false"))]
            assert text == "\n".join([question["instructions"], "", *meanings])
