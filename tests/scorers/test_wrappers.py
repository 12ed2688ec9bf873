"""Scorers per turn, per step and repeated: values computed by hand, what carries over, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    Ask,
    ConfigError,
    Failed,
    Judge,
    JudgeAnswer,
    JudgeError,
    LexicalJudge,
    LLMClassifier,
    Message,
    Question,
    Record,
    Sample,
    Score,
    Scorer,
    ScriptedJudge,
    SelfConsistency,
    Skipped,
    ToolCall,
    Usage,
    evaluate,
    read_run,
    score,
    scorer,
    write_run,
)
from evalstone.errors import JudgeDeclined
from evalstone.questions import ListClaims
from evalstone.questions.base import context_limits_of
from evalstone.report import html, markdown
from evalstone.results.views.run import run_view
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import ContextRelevance, Faithfulness, PerStep, PerTurn, Repeated, parse_scorer
from evalstone.types import Trajectory
from evalstone.types.context_limits import ContextLimits

TURNS: Any = (
    {"input": "Capital of Norway?", "output": "Oslo", "reference": "Oslo"},
    {"input": "Of Sweden?", "output": "Oslo", "reference": "Stockholm"},
    {"input": "Of Spain?", "output": "Madrid"},
)
TALK = Sample(id="c1", turns=TURNS)
EITHER: Any = ({"input": "a", "output": "b"}, {"input": "c", "context": "d"})
ANSWERS: Any = ({"input": "a", "output": "b"}, "c")
VALUES: Mapping[str, float | None] = {"good": 1.0, "fair": 0.5, "bad": 0.0, "unclear": None}
GRADE = LLMClassifier("Is {{output}} good?", name="grade", choices=VALUES)


class Says(Judge):
    """Chooses a word by the text that stands in the question, and by the repetition."""

    words: Mapping[str, Any]
    name: str = "says"
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]], compare=False)

    @property
    def identity(self) -> str:
        return self.name

    def price(self, usage: Usage) -> float:
        return 0.5

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        text = question.render()[1]
        (found,) = [key for key in self.words if key in text]
        self.asked.append((found, repeat))
        words: Any = self.words[found]
        word: Any = words if isinstance(words, str | Exception) else words[repeat]
        if word == "wait":
            await asyncio.sleep(0.02)
            word = "good"
        if isinstance(word, Exception):
            raise word
        reply = json.dumps({"reason": f"It is {word}.", "verdict": word})
        usage = Usage(input=1, output=1, requests=1)
        return JudgeAnswer(value=question.parse(reply), judge=self.name, reply=reply, cost=0.5, usage=usage)


def conversation(*outputs: str | None, **fields: Any) -> Sample:
    turns: Any = [{"input": "And?", "output": output} for output in outputs]
    return Sample(turns=turns, **fields)


def outcome(record: Record) -> Score:
    assert isinstance(record.outcome, Score), record.outcome
    return record.outcome


# ---- Per turn ----


@scorer(scale=5)
def length(*, output: str) -> float:
    return min(5, len(output))


@pytest.mark.parametrize(
    ("inner", "sample", "expected"),
    [
        (
            "exact_match",
            TALK,
            Score(
                0.5,
                "Mean of 2 of 3 turns (turn 1: 1, turn 2: 0). Turn 2: The answer differs from “Stockholm”.",
                scale=1,
                evidence={
                    "turns": [
                        {"turn": 1, "value": 1.0, "reason": "The answer equals “Oslo”.", "evidence": []},
                        {"turn": 2, "value": 0.0, "reason": "The answer differs from “Stockholm”.", "evidence": []},
                        {"turn": 3, "value": None, "reason": "exact_match needs reference (or expected=…)"},
                    ]
                },
            ),
        ),
        (
            length,
            conversation("a", "abc", "abcdefg"),
            Score(
                3.0,
                "Mean of 3 of 3 turns (turn 1: 1, turn 2: 3, turn 3: 5).",
                scale=5,
                evidence={
                    "turns": [
                        {"turn": n, "value": v, "reason": "", "evidence": []} for n, v in ((1, 1), (2, 3), (3, 5))
                    ]
                },
            ),
        ),
    ],
)
def test_the_score_per_turn_is_the_mean_of_the_turns_that_have_one_on_the_scale_of_the_scorer(
    inner: Any, sample: Sample, expected: Score
) -> None:
    assert outcome(score(PerTurn(inner), sample)) == expected


@pytest.mark.parametrize(("turn", "value"), [(1, 1.0), (2, 0.0), (-2, 0.0), (-3, 1.0)])
def test_one_turn_is_chosen_by_its_number(turn: int, value: float) -> None:
    found = outcome(score(PerTurn("exact_match", turn=turn), TALK))
    assert found.value == value
    assert [one["turn"] for one in found.evidence["turns"]] == [turn if turn > 0 else 4 + turn]


def test_a_recorded_conversation_has_the_turns_of_its_messages() -> None:
    talk = Sample(
        messages=[
            Message(role="system", content="Be brief."),
            Message(role="assistant", content="Welcome!"),
            Message(role="user", content="Where is Ada?"),
            Message(role="assistant", tool_calls=[ToolCall(name="find", result="London")]),
            Message(role="assistant", content="In London."),
            Message(role="user", content="And Bob?"),
        ],
        output="In Rome.",
        reference="Rome",
        context=["Bob: Rome"],
    )
    seen: list[Any] = []

    @scorer
    def look(
        *,
        input: str,
        output: str,
        messages: Any,
        instructions: str,
        reference: str | None = None,
        context: Any = None,
    ) -> float:
        seen.append((input, output, len(messages), instructions, reference, context))
        return 1

    assert outcome(score(PerTurn(look), talk)).value == 1
    assert sorted(seen) == [
        ("And Bob?", "In Rome.", 1, "Be brief.", "Rome", ("Bob: Rome",)),
        ("Where is Ada?", "In London.", 3, "Be brief.", None, ("London",)),
    ]


def test_a_turn_has_the_instructions_and_metadata_of_the_conversation_and_its_own_win() -> None:
    @scorer
    def tone(*, instructions: str, metadata: Mapping[str, Any]) -> float:
        assert "target" not in metadata
        return 1.0 if (instructions, metadata["tone"]) == ("Be kind.", "dry") else 0.0

    turns: Any = ["a", {"input": "b", "instructions": "Be rude."}, {"input": "c", "metadata": {"tone": "wet"}}]
    talk = Sample(turns=turns, instructions="Be kind.", metadata={"tone": "dry", "target": {"cost": 1}})
    assert [one["value"] for one in outcome(score(PerTurn(tone), talk)).evidence["turns"]] == [1.0, 0.0, 0.0]


def test_the_lowest_or_highest_turn_gives_the_reason_by_the_direction() -> None:
    @scorer(lower_is_better=True)
    def harm(*, output: str) -> Score:
        return Score(float(output), f"says {output}", scale=1.0)

    wrapped = PerTurn(harm)
    assert wrapped.lower_is_better
    assert outcome(score(wrapped, conversation("0.1", "0.9"))).reason.endswith("Turn 2: says 0.9")


# ---- Judges, costs and failures ----


def test_a_judge_is_asked_for_each_turn_and_equal_turns_are_one_call() -> None:
    judge = Says(words={"alpha": "good", "beta": "fair"})
    record = score(PerTurn(GRADE), conversation("alpha", "beta", "alpha"), judge=judge, ledger=None)
    assert outcome(record).value == pytest.approx(2.5 / 3)
    assert len(record.calls) == 3
    assert sorted(judge.asked) == [("alpha", 0), ("beta", 0)]
    assert record.cost == 1.0


def test_a_turn_that_fails_fails_the_record_and_what_was_paid_is_counted() -> None:
    judge = Says(words={"alpha": "wait", "beta": JudgeError("no", reply="?", cost=0.25)})
    record = score(PerTurn(GRADE), conversation("alpha", "beta"), judge=judge, ledger=None)
    assert record.outcome == Failed("turn 2: no", "?")
    assert record.cost == 0.75
    assert sorted(judge.asked) == [("alpha", 0), ("beta", 0)]


def test_a_turn_that_the_judge_declines_or_leaves_open_is_left_out() -> None:
    judge = Says(words={"alpha": "fair", "beta": JudgeDeclined("not mine"), "gamma": "unclear"})
    found = outcome(score(PerTurn(GRADE), conversation("alpha", "beta", "gamma"), judge=judge, ledger=None))
    assert found.value == 0.5
    assert [one["value"] for one in found.evidence["turns"]] == [0.5, None, None]
    assert [one["reason"] for one in found.evidence["turns"]][1] == "not mine"
    assert score(PerTurn(GRADE), conversation("beta"), judge=judge, ledger=None).outcome == Skipped("turn 1: not mine")


def test_an_error_of_the_user_s_code_is_kept_with_its_type_and_says_the_turn() -> None:
    @scorer
    def strict(*, output: str) -> float:
        return {"a": 1.0}[output]

    record = score(PerTurn(strict), conversation("a", "b"))
    assert isinstance(record.outcome, Failed)
    assert record.outcome.exception == "KeyError"
    assert "in turn 2" in (record.outcome.traceback or "")


def test_an_outcome_off_the_scale_names_the_turn() -> None:
    @scorer
    def off(*, output: str) -> float:
        return float(output)

    failed = score(PerTurn(off), conversation("1", "2")).outcome
    assert isinstance(failed, Failed)
    assert (failed.error[:8], failed.error[-8:]) == ("turn 2: ", " not 2.0")


def test_the_scorer_s_own_judge_answers() -> None:
    own = Says(words={"alpha": "fair"}, name="own")
    wrapped = PerTurn(replace(GRADE, judge=own))
    run = evaluate([conversation("alpha")], wrapped, judge="lexical", ledger=None)
    assert run[wrapped.name].mean == 0.5
    assert run[wrapped.name].judges == (own.identity,)
    assert (wrapped.judges, wrapped.asks_shared_judge) == ((own,), False)


# ---- What carries over ----


def test_the_signature_is_that_of_the_scorer_under_another_name() -> None:
    inner = ContextRelevance(scale=10)
    wrapped = PerTurn(inner)
    assert wrapped.signature == inner.signature.replace(inner.name, wrapped.name)
    assert (wrapped.scale, wrapped.interpretation, wrapped.advice) == (10, inner.interpretation, inner.advice)
    assert (wrapped.questions, wrapped.prompts()) == (inner.questions, inner.prompts())
    assert len({one.signature for one, _ in NAMES}) == len(NAMES)


NAMES = [
    (PerTurn("bias"), "bias per turn"),
    (PerTurn("bias", turn=2), "bias in turn 2"),
    (PerTurn("bias", turn=-1), "bias in the last turn"),
    (PerTurn("bias", turn=-2), "bias in turn 2 from the end"),
    (PerStep("bias"), "bias per step"),
    (PerStep("bias", step="find-it"), "bias in step find-it"),
    (PerStep("bias", step="a(b)@1"), "bias in step 'a(b)@1'"),
    (Repeated("bias"), "bias repeated 3 times"),
    (Repeated(PerTurn("bias"), repeats=5), "bias per turn repeated 5 times"),
]


@pytest.mark.parametrize(("wrapped", "name"), NAMES)
def test_the_name_says_what_is_scored(wrapped: Scorer, name: str) -> None:
    assert wrapped.name == name


def test_wrappers_are_frozen_values_that_survive_pickling() -> None:
    one = Repeated(PerTurn(ContextRelevance(scale=10), turn=2))
    assert one == Repeated(PerTurn(ContextRelevance(scale=10), turn=2)) != Repeated(PerTurn("context_relevance"))
    copy = pickle.loads(pickle.dumps(one))
    assert (copy, hash(copy), copy.signature) == (one, hash(one), one.signature)


@pytest.mark.parametrize(
    "spec",
    [
        "per_turn(scorer=contains(expected=Oslo), turn=2)",
        "per-turn(scorer='contains(expected=Oslo)', turn=2)",
        {"name": "per_turn", "scorer": {"name": "contains", "expected": "Oslo"}, "turn": 2},
    ],
)
def test_a_wrapper_is_named_as_text_or_as_a_table(spec: Any) -> None:
    assert parse_scorer(spec) == PerTurn(parse_scorer("contains(expected=Oslo)"), turn=2)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("per_turn", r"per_turn needs scorer: per_turn\(scorer=…\)"),
        ("per_turn(scorer=fathfulness)", r"per_turn: unknown scorer 'fathfulness'; did you mean .*faithfulness"),
        ("per_turn(scorer=3)", "per_turn: a scorer is a name"),
        ("per_turn(scorer=__import__('os').getpid())", "can't be parsed as a scorer"),
        (
            "per_turn(scorer=rouge_l, scale=10)",
            r"scale, explain and judge are set on the scorer .* scorer=…\(scale=…\)",
        ),
        (
            "per_turn(scorer=rouge_l, turn=0)",
            "turn must be a whole number: 1 for the first turn, -1 for the last, not 0",
        ),
        ("per_turn(scorer=rouge_l, turn=True)", "turn must be a whole number.*, not True"),
        ("per_turn(scorer=per_turn(scorer=rouge_l))", "per_turn can't be applied to rouge_l per turn"),
        ("per_turn(scorer=repeated(scorer=per_turn(scorer=bias)))", "which already applies it"),
        (
            "per_step(scorer=per_turn(scorer=rouge_l))",
            r"which needs turns \(or messages\) and reference: a step has none",
        ),
        ("per_step(scorer=rouge_l)", "per_step can't be applied to rouge_l, which needs reference: a step has none"),
        (
            "per_step(scorer=repeated(scorer=trajectory_judge))",
            r"which needs trajectory \(or messages\): a step has none",
        ),
        ("per_step(scorer=contains(expected=x), step='')", "step must be text that is not blank"),
        ("repeated(scorer=rouge_l)", "repeated: rouge_l doesn't ask a judge, so its score can't vary"),
        ("repeated(scorer=per_turn(scorer=rouge_l))", "rouge_l per turn doesn't ask a judge"),
        ("repeated(scorer=bias, repeats=1)", "repeats must be a whole number from 2 to 1000, not 1"),
        ("repeated(scorer=repeated(scorer=bias))", "which already applies it"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_scorer(spec)


def test_a_wrong_parameter_is_refused_in_python_too() -> None:
    with pytest.raises(ConfigError, match=r"PerTurn: .* 'scale'; .* scorer=…"):
        PerTurn("bias", scale=10)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("sample", "scorer", "told"),
    [
        (
            TALK,
            PerTurn("faithfulness"),
            "turns (or messages), output and context (or tool results in messages); context is absent",
        ),
        (
            Sample(turns=EITHER),
            PerTurn("faithfulness"),
            "turns (or messages), output and context (or tool results in messages); output and context are absent",
        ),
        (
            Sample(turns=ANSWERS),
            PerTurn("faithfulness"),
            "output and context (or tool results in messages); context is absent",
        ),
        (Sample(output="x", context="y"), PerTurn("faithfulness"), "turns is absent"),
        (
            Sample(output="x"),
            PerStep("similarity(expected=x)"),
            "similarity per step needs trajectory (or messages) and output; trajectory is absent",
        ),
        (Sample(input="x"), Repeated(GRADE), "grade repeated 3 times needs output; output is absent"),
    ],
)
def test_a_plan_that_can_score_nothing_says_what_is_absent(sample: Sample, scorer: Scorer, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        evaluate([sample], scorer, judge=THREE, ledger=None)


def test_one_turn_with_all_that_is_needed_is_enough() -> None:
    turns: Any = [{"input": "a", "output": "b", "reference": "b"}, {"input": "c", "output": "d"}]
    wrapped = PerTurn("exact_match")
    assert evaluate([Sample(turns=turns)], wrapped, ledger=None)[wrapped.name].mean == 1


def test_a_target_may_give_the_turns() -> None:
    def agent(*, input: str) -> list[dict[str, str]]:
        return [{"role": "user", "content": input}, {"role": "assistant", "content": "Oslo."}]

    run = evaluate([{"input": "Where?"}], "per_turn(scorer=contains(expected=Oslo))", target=agent, ledger=None)
    assert run["contains per turn"].mean == 1


# ---- Per step ----

STEPS = Trajectory.read(
    [
        {"step_type": "tool_call", "name": "search", "tool_args": {"q": "Ada"}, "tool_result": {"value": "in London"}},
        {"step_type": "tool_call", "name": "search", "tool_args": {"q": "Bob"}, "success": False},
        {
            "step_type": "workflow_step",
            "name": "rewrite",
            "status": "success",
            "output": {"text": "London"},
            "children": [{"step_type": "tool_call", "name": "search", "tool_args": {}, "tool_result": {"n": 1}}],
        },
        {"step_type": "workflow_step", "name": "send", "status": "suspended", "output": "London"},
        {"step_type": "model_generation", "name": "gpt"},
    ]
)


def test_a_step_is_a_sample_with_its_arguments_its_result_and_its_data() -> None:
    seen: list[Any] = []

    @scorer
    async def look(*, input: str, output: str, state: Any) -> float:
        seen.append((input, output, "tool_args" in state))
        return float("London" in output)

    found = outcome(score(PerStep(look), Sample(input="Where?", trajectory=STEPS)))
    assert seen == [
        ('{"q": "Ada"}', "in London", True),
        ("in London", '{"text": "London"}', False),
        ('{"text": "London"}', '{"n": 1}', True),
    ]
    assert found.value == pytest.approx(2 / 3)
    assert [(one["step"], one["name"], one["value"], one["reason"][-7:]) for one in found.evidence["steps"]] == [
        (1, "search", 1.0, ""),
        (2, "search", None, "succeed"),
        (3, "rewrite", 1.0, ""),
        (4, "search", 0.0, ""),
        (5, "send", None, "succeed"),
        (6, "gpt", None, " output"),
    ]


def test_all_steps_of_a_name_are_scored() -> None:
    found = outcome(score("per_step(scorer=contains(expected=London), step=search)", Sample(trajectory=STEPS)))
    assert found.value == 0.5
    assert len(found.evidence["steps"]) == 3


def test_the_tool_calls_of_messages_are_steps() -> None:
    calls = [
        ToolCall(name="find", arguments={"q": 1}, result="Oslo"),
        ToolCall(name="find", state="error", error="down"),
        ToolCall(name="find", state="call"),
    ]
    sample = Sample(messages=[Message(role="assistant", tool_calls=calls)])
    found = outcome(score("per_step(scorer=contains(expected=Oslo), step=find)", sample))
    assert [one["value"] for one in found.evidence["steps"]] == [1.0, None, None]


def test_steps_of_the_turns_of_a_conversation_can_be_scored() -> None:
    def turn(result: str) -> Sample:
        return Sample(
            input="q", messages=[Message(role="assistant", tool_calls=[ToolCall(name="find", result=result)])]
        )

    talk = Sample(turns=[turn("Oslo"), turn("Rome"), Sample(input="none")])
    found = outcome(score(PerTurn(PerStep("contains(expected=Oslo)")), talk))
    assert [one["value"] for one in found.evidence["turns"]] == [1.0, 0.0, None]


# ---- Repeated ----

THREE = Says(words={"alpha": ("good", "bad", "fair"), "beta": ("good", "good", "good")})


def test_a_repeated_scorer_is_the_mean_of_judgments_of_their_own() -> None:
    judge = replace(THREE, asked=[])
    record = score(Repeated(GRADE), output="alpha", judge=judge, ledger=None)
    assert outcome(record).value == 0.5
    assert sorted(judge.asked) == [("alpha", 0), ("alpha", 1), ("alpha", 2)]
    assert [one["value"] for one in outcome(record).evidence["judgments"]] == [1.0, 0.0, 0.5]
    assert sorted(call.repeat_index for call in record.calls) == [0, 1, 2]
    assert record.cost == 1.5


class Whole(Says):
    """A judge that had better be asked about a response at once."""

    @property
    def context_limits(self) -> ContextLimits:
        return ContextLimits(whole=True)


def test_a_repetition_may_hold_as_much_as_any_question() -> None:
    @scorer(questions=(ListClaims,))
    async def whole(*, output: str, ask: Any) -> bool:
        return context_limits_of(ask).whole

    assert outcome(score(Repeated(whole), output="x", judge=Whole(words={}), ledger=None)).value == 1


def test_the_ledger_keeps_repetitions_apart_and_the_first_is_the_ordinary_answer(tmp_path: Path) -> None:
    ledger, judge = tmp_path / "l.db", replace(THREE, asked=[])
    samples = [{"id": "a", "output": "alpha"}, {"id": "b", "output": "beta"}]
    once = evaluate(samples, GRADE, judge=judge, ledger=ledger)
    run = evaluate(samples, [GRADE, Repeated(GRADE)], judge=judge, ledger=ledger)
    assert Counter(judge.asked) == Counter((text, n) for text in ("alpha", "beta") for n in range(3))
    assert once["grade"].mean == 1
    assert run["grade repeated 3 times"].mean == 0.75
    again = evaluate(samples, Repeated(GRADE, repeats=2), judge=judge, ledger=ledger)
    assert again["grade repeated 2 times"].mean == 0.75
    assert len(judge.asked) == 6


def test_every_turn_is_repeated() -> None:
    for wrapped, shape in ((Repeated(PerTurn(GRADE)), "judgments"), (PerTurn(Repeated(GRADE)), "turns")):
        judge = replace(THREE, asked=[])
        found = outcome(score(wrapped, conversation("alpha", "beta"), judge=judge, ledger=None))
        assert found.value == 0.75
        assert len(judge.asked) == 6
        assert [one["value"] for one in found.evidence[shape]] == ([1, 0.5, 0.75] if shape == "judgments" else [0.5, 1])


def test_each_repetition_of_self_consistency_has_answers_of_its_own() -> None:
    words = ("good", "good", "bad", "bad", "bad", "good")
    judge = Says(words={"alpha": words})
    found = outcome(score(Repeated(GRADE, repeats=2), output="alpha", judge=SelfConsistency(judge, 3), ledger=None))
    assert sorted(judge.asked) == [("alpha", n) for n in range(6)]
    assert [one["value"] for one in found.evidence["judgments"]] == [1.0, 0.0]


def test_a_dry_run_counts_every_repetition() -> None:
    plan = plan_for([conversation("alpha", "beta"), conversation("alpha")], Repeated(PerTurn(GRADE)), judge=THREE)
    assert asyncio.run(estimate(plan)).calls == 6  # of two texts
    assert asyncio.run(estimate(replace(plan, scorers=(PerTurn(GRADE),)))).calls == 2


def test_a_judge_that_gives_the_same_answer_each_time_is_refused() -> None:
    sample = {"output": "x", "context": "y"}
    for judge in (LexicalJudge(), SelfConsistency(LexicalJudge())):
        with pytest.raises(ConfigError, match=r"3 times: .* same answer"):
            evaluate([sample], Repeated("faithfulness"), judge=judge, ledger=None)
    with pytest.raises(ConfigError, match=r"lexical@7 .* same answer"):
        score(Repeated("faithfulness"), sample)
    with pytest.raises(ConfigError, match=r"lexical@7 .* same answer"):
        evaluate([sample], PerTurn(Repeated(Faithfulness(judge="lexical"))), judge=THREE, ledger=None)


def test_a_batch_asks_each_question_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="grade repeated 3 times"):
        evaluate([{"output": "x"}], Repeated(GRADE), judge="openai/gpt-5.1", ledger=tmp_path / "l.db", batch=True)


def test_a_repetition_that_fails_fails_the_record_and_one_that_is_declined_is_left_out() -> None:
    judge = Says(words={"alpha": ("good", JudgeError("no"), "bad"), "beta": ("good", JudgeDeclined("not mine"), "bad")})
    assert score(Repeated(GRADE), output="alpha", judge=judge, ledger=None).outcome == Failed("judgment 2: no")
    assert outcome(score(Repeated(GRADE), output="beta", judge=judge, ledger=None)).value == 0.5


def test_a_run_with_trials_reports_the_variance_of_the_judge_apart(tmp_path: Path) -> None:
    # Means by sample and trial: (1, 0.5), (0, 0), (1, 0). The judge differs from itself in one answer of six, by 1, so
    # that its variance is 0.5 / 6. Between trials there is (0.125 + 0 + 0.5) / 3, with half of the judge's in it.
    words = {"a1": ("good", "good"), "a2": ("good", "bad"), "b1": ("bad", "bad"), "b2": ("bad", "bad")}
    words |= {"c1": ("good", "good"), "c2": ("bad", "bad")}

    def agent(*, input: str, trial: int) -> str:
        return f"{input}{trial}"

    samples = [{"id": name, "input": name} for name in "abc"]
    grade = Repeated(GRADE, repeats=2)
    run = evaluate(samples, grade, target=agent, trials=2, judge=Says(words=words), ledger=tmp_path / "l.db")
    write_run(run, tmp_path / "results")
    for one in (run, read_run(tmp_path / "results"), read_run(run.id, ledger=tmp_path / "l.db")):
        (found,) = one.reliability()
        assert found.variance is not None
        variances = {name: each.estimate for name, each in found.variance.variances.items()}
        assert variances["noise"] == pytest.approx(0.5 / 6)
        assert variances["trials"] == pytest.approx(0.625 / 3 - 0.5 / 12)
        for render in (markdown.lines, html.page):
            assert "of the judge" in "".join(render(run_view(one)))


def test_trials_with_the_same_answer_share_their_judgments_and_do_not_differ_by_the_judge() -> None:
    words = {"alpha": ("good", "bad"), "beta": ("bad", "bad"), "gamma": ("good", "good")}

    def agent(*, input: str) -> str:
        return input

    samples = [{"id": name, "input": name} for name in words]
    judge = Says(words=words)
    run = evaluate(samples, Repeated(GRADE, repeats=2), target=agent, trials=3, judge=judge, ledger=None)
    assert len(judge.asked) == 6
    (found,) = run.reliability()
    assert found.variance is not None
    assert {name: each.estimate for name, each in found.variance.variances.items()} == {
        "samples": pytest.approx(0.25 - 0.5 / 3 / 2),
        "trials": 0,
        "noise": pytest.approx(0.5 / 3),
    }
    assert found.variance.notes == ()


class Hasty(Scorer):
    """Asks without waiting for the answer."""

    name = "hasty"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        ask(ListClaims(text=output))  # type: ignore[unused-coroutine]
        return Score(1)


def test_a_question_that_nobody_waits_for_is_noticed_in_every_repetition() -> None:
    record = score(Repeated(Hasty()), output="x", judge=Says(words={}), ledger=None)
    assert isinstance(record.outcome, Failed)
    assert "await (list_claims)" in record.outcome.error


def test_a_reason_shows_the_first_ten_values() -> None:
    found = outcome(score("per_turn(scorer=contains(expected=a))", conversation(*"a" * 12)))
    assert "turn 10: 1, and 2 more)." in found.reason
    found = outcome(score("per_turn(scorer=contains(expected=a))", conversation(*"a" * 10)))
    assert "turn 10: 1)." in found.reason


def test_a_run_whose_budget_ends_within_a_conversation_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    judge, ledger = Says(words={"alpha": "good", "beta": "bad", "gamma": "good"}), tmp_path / "l.db"
    talks = [conversation("alpha", "beta", "gamma", id="c1")]
    first = evaluate(talks, PerTurn(GRADE), judge=judge, ledger=ledger, budget=1.2)
    assert (len(first), len(judge.asked)) == (0, 2)
    assert "budget" in first.stop_reason
    run = evaluate(talks, PerTurn(GRADE), judge=judge, ledger=ledger)
    assert sorted(judge.asked) == [("alpha", 0), ("beta", 0), ("gamma", 0)]
    assert run["grade per turn"].mean == pytest.approx(2 / 3)


@pytest.mark.parametrize("scale", [0.1, 1, 3.3, 10])
def test_a_mean_of_equal_scores_is_that_score_and_stays_on_the_scale(scale: float) -> None:
    @scorer(scale=scale)
    def full(*, output: str) -> float:
        return scale

    for turns in range(1, 12):
        assert outcome(score(PerTurn(full), conversation(*"a" * turns))).value == pytest.approx(scale)


def test_a_dry_run_takes_what_is_expected_of_each_turn_for_the_target_s_answer() -> None:
    def agent(*, input: str, thread: str) -> str:
        raise AssertionError("a dry run calls no target")

    texts: Any = [{"input": "a", "reference": "alpha"}, {"input": "b", "reference": "beta"}]
    talks = [Sample(id="c1", turns=texts), Sample(id="c2", turns=texts[:1]), Sample(id="c3", input="?")]
    plan = plan_for(talks, [PerTurn(GRADE), GRADE], judge=THREE, target=agent, trials=2)
    found = asyncio.run(estimate(plan))
    # c1 has two texts, of which the conversation has the last as its output, and c2 the first.
    assert [line.asked for line in found.scorers] == [4, 0]
    assert found.without_stand_in == 1


def test_a_step_is_judged_by_what_stands_in_for_a_conversation() -> None:
    judge = ScriptedJudge(lambda question: question.example())
    found = score("per_step(scorer=goal_reached, step=search)", Sample(input="Where?", trajectory=STEPS), judge=judge)
    assert isinstance(found.outcome, Score)
    assert any("London" in str(question) for question in judge.asked)
    with pytest.raises(ConfigError, match=r"needs messages \(or trajectory\) and expected_trajectory \(or order=…"):
        parse_scorer("per_step(scorer=tool_call_accuracy)")
