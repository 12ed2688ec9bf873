"""Mistakes in scorers, judges, questions and targets of one's own are errors that name the class and the way."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import pytest

from evalstone import (
    BatchOptions,
    Cascade,
    ConfigError,
    Dataset,
    Failed,
    Judge,
    JudgeAnswer,
    LexicalJudge,
    Limits,
    Message,
    ModelJudge,
    Prompt,
    Question,
    Rubric,
    Sample,
    Score,
    Scorer,
    SelfConsistency,
    Skipped,
    ToolCall,
    Trajectory,
    Usage,
    evaluate,
    score,
    scorer,
)
from evalstone.models import ProviderInfo
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.scorers import Criterion, Penalties, TrajectoryWeights
from evalstone.targets import Answer, AskUser, Target, User
from evalstone.types import ExpectedStep, TrajectoryExpectation, TrajectoryStep

FINE = Prompt(instructions="Is it fine?", template="{{output}}")


@dataclass(frozen=True)
class Verdict:
    verdict: Literal["yes", "no"]


class Fine(Question[Verdict]):
    kind = "fine"
    output: str
    prompt: Prompt = FINE


class Limited(Scorer):
    name = "limited"
    limit: int

    def score(self, *, output: str) -> bool:
        return len(output) <= self.limit


def no_score() -> object:
    class Own(Scorer):
        name = "own"

    return Own()  # pyright: ignore[reportAbstractUsage]


def no_answer() -> object:
    class Own(Judge):
        pass

    return Own()  # pyright: ignore[reportAbstractUsage]


def no_call() -> object:
    class Own(Target):
        pass

    return Own()  # pyright: ignore[reportAbstractUsage]


def answer_without_repeat() -> object:
    class Own(Judge):
        async def answer(self, question: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    return Own


def call_without_trial() -> object:
    class Own(Target):
        async def call(self, sample: Any) -> Any: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    return Own


def of_kind(value: Any) -> object:
    class Own(Question[Verdict]):
        kind = value
        prompt: Prompt = FINE

    return Own()


def prompted(value: Any) -> object:
    class Own(Question[Verdict]):
        kind = "own"
        prompt: Prompt = value

    return Own()


def no_kind() -> object:
    class Own(Question[Verdict]):
        prompt: Prompt = FINE

    return Own()


def no_prompt() -> object:
    class Own(Question[Verdict]):
        kind = "own"

    return Own()


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "no score": (no_score, "Own lacks score, which every Scorer defines"),
    "no answer": (no_answer, "Own lacks answer, which every Judge defines"),
    "no call": (no_call, "Own lacks call and name, which every Target defines"),
    "answer without repeat": (
        answer_without_repeat,
        "Own.answer can't be called: too many positional arguments; write async def answer(self, question, repeat=0)",
    ),
    "call without trial": (
        call_without_trial,
        "Own.call can't be called: got an unexpected keyword argument 'trial'; write async def call(self, sample, *, "
        "trial, thread)",
    ),
    "no kind": (no_kind, 'the question Own has no kind; add one to the class, such as kind = "own"'),
    "no prompt": (no_prompt, "Own: prompt must be a Prompt, with instructions and a template, not None (NoneType)"),
    "a text as prompt": (
        lambda: prompted("Fine?"),
        "Own: prompt must be a Prompt, with instructions and a template, not 'Fine?' (str)",
    ),
    "a kind with a blank": (
        lambda: of_kind("a b"),
        "Own: kind must be English letters, digits and underscores, not 'a b' (str)",
    ),
    "a kind that is no text": (
        lambda: of_kind(5),
        "Own: kind must be English letters, digits and underscores, not 5 (int)",
    ),
    "by position": (
        lambda: Limited(3),  # pyright: ignore[reportCallIssue]
        "Limited takes its parameters by name: write Limited(limit=…), not 1 value without a name",
    ),
    "by position, inherited": (
        lambda: Rubric([], []),  # pyright: ignore[reportCallIssue]
        "Rubric takes its parameters by name: write Rubric(criteria=…), not 2 values without a name",
    ),
    "a sample by position": (
        lambda: Sample("x"),  # pyright: ignore[reportCallIssue]
        "Sample takes its parameters by name: write Sample(input=…, output=…), not 1 value without a name",
    ),
    "a message by position": (
        lambda: Message("user", "hi"),  # pyright: ignore[reportCallIssue]
        "Message takes its parameters by name: write Message(role=…, content=…), not 2 values without a name",
    ),
    "a step by position": (
        lambda: TrajectoryStep("search"),  # pyright: ignore[reportCallIssue]
        "TrajectoryStep takes its parameters by name: write TrajectoryStep(step_type=…, name=…), not 1 value without a "
        "name",
    ),
    "three values of a judge": (
        lambda: Cascade("lexical", "lexical", 0.5, "x", "y"),  # pyright: ignore[reportCallIssue]
        "Cascade takes its parameters by name: write Cascade(primary, fallback, threshold, limits=…), not 5 values "
        "without a name",
    ),
    "a base class": (
        lambda: Scorer("x"),  # pyright: ignore[reportAbstractUsage, reportCallIssue]
        "Scorer is a base class: derive a class that defines score",
    ),
    "passages of a prompt": (
        lambda: Prompt("x", "{{output}}", "output"),  # pyright: ignore[reportArgumentType]
        "passages must be a tuple of placeholders, not 'output'",
    ),
    "rows as a dataset": (
        lambda: Dataset([{"output": "x"}]),  # pyright: ignore[reportArgumentType]
        "Dataset: sample 1 must be a Sample, not dict; evalstone.load reads files, tables and dictionaries",
    ),
    "an answer as a sample": (
        lambda: score("bleu", "x"),  # pyright: ignore[reportArgumentType]
        "sample must be a Sample or a mapping of its fields, not 'x'; a text is given by the name of its field, such "
        "as output=…",
    ),
    "a required parameter": (lambda: Limited(), "Limited needs limit"),  # pyright: ignore[reportCallIssue]
    "a setting of a judge": (
        lambda: ModelJudge("openai/gpt-5.1", temprature=1),  # pyright: ignore[reportCallIssue]
        "ModelJudge: unknown parameter 'temprature'; did you mean temperature?",
    ),
    "a parameter of a composite judge": (
        lambda: SelfConsistency("lexical", n=3),  # pyright: ignore[reportCallIssue]
        "SelfConsistency: unknown parameter 'n'; known: judge, limits, repeats",
    ),
    "an input of a question": (
        lambda: ListClaims(txt="x"),  # pyright: ignore[reportCallIssue]
        "ListClaims: unknown parameter 'txt'; did you mean text?",
    ),
    "a field of a sample": (
        lambda: Sample(outptu="x"),  # pyright: ignore[reportCallIssue]
        "Sample: unknown parameter 'outptu'; did you mean output?",
    ),
    "a field that a message needs": (
        lambda: Message(content="x"),  # pyright: ignore[reportCallIssue]
        "Message needs role",
    ),
    "too many values": (
        lambda: Score(1, "right", "sure"),  # pyright: ignore[reportCallIssue]
        "Score takes its parameters by name: write Score(value, reason, scale=…), not 3 values without a name",
    ),
}


@pytest.mark.parametrize(("make", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        make()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "kind",
    [
        Answer,
        BatchOptions,
        Criterion,
        ExpectedStep,
        Failed,
        JudgeAnswer,
        Limits,
        Message,
        Penalties,
        Prompt,
        ProviderInfo,
        Sample,
        Score,
        Skipped,
        ToolCall,
        Trajectory,
        TrajectoryExpectation,
        TrajectoryStep,
        TrajectoryWeights,
        Usage,
    ],
)
def test_an_unknown_argument_of_what_people_write_is_named(kind: type[Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{kind.__name__}: unknown parameter 'xyz'; known: "):
        kind(xyz="x")


def test_an_argument_that_is_missing_is_said_of_the_function_that_was_called() -> None:
    with pytest.raises(TypeError, match=r"^evaluate\(\) missing 1 required positional argument: 'scorers'$"):
        evaluate("x.jsonl")  # pyright: ignore[reportCallIssue]


def test_a_type_error_in_the_code_of_a_class_stays_one() -> None:
    class Own(Scorer):
        name = "own"

        def __post_init__(self) -> None:
            super().__post_init__()
            len(5)  # pyright: ignore[reportArgumentType]

        def score(self, *, output: str) -> bool:
            return True

    with pytest.raises(TypeError, match="object of type 'int' has no len"):
        Own()


class Answering(Judge):
    """Answers with a value."""

    value: Any
    judge: Any = "own"

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        return JudgeAnswer(self.value, judge=self.judge)


@scorer(questions=(Fine,))
async def fine(ask: Any, output: str) -> bool:
    return (await ask(Fine(output=output))).verdict == "yes"


@scorer(questions=(ListClaims,))
async def claims(ask: Any, output: str) -> bool:
    return bool(await ask(ListClaims(text=output)))


@scorer(questions=(VerifyClaims,))
async def verified(ask: Any, output: str) -> bool:
    return bool(await ask(VerifyClaims(claims=(output,), context=(output,))))


@pytest.mark.parametrize(
    ("asking", "value", "expected"),
    [
        (claims, "text", "the answer to list_claims must be tuple[str, ...], not 'text' (str)"),
        (claims, ["text"], "the answer to list_claims must be tuple[str, ...], not ['text'] (list)"),
        (claims, None, "the answer to list_claims must be tuple[str, ...], not None (NoneType)"),
        (
            claims,
            (1,),
            "the answer to list_claims must be tuple[str, ...] (answer.0: Input should be a valid string), not",
        ),
        (fine, "yes", "the answer to fine must be Verdict, not 'yes' (str)"),
        (fine, {"verdict": "yes"}, "the answer to fine must be Verdict, not {'verdict': 'yes'} (dict)"),
        (
            fine,
            Verdict("maybe"),  # pyright: ignore[reportArgumentType]
            "the answer to fine must be Verdict (answer.verdict: Input should be 'yes' or 'no'), not Verdict(",
        ),
        (verified, ("text",), "the answer to verify_claims must be tuple[ClaimVerdict, ...] ("),
    ],
)
def test_an_answer_of_another_type_is_named_with_judge_question_and_type(
    asking: Scorer, value: object, expected: str
) -> None:
    judge = Answering(value=value)
    outcome = score(asking, output="Ada was born in 1815.", judge=judge, ledger=None).outcome
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(f"{judge.identity}: {expected}")
    assert outcome.exception is None


def test_a_right_answer_of_ones_own_judge_is_taken_as_it_is() -> None:
    assert score(fine, output="x", judge=Answering(value=Verdict("yes")), ledger=None).value == 1
    assert score(claims, output="x", judge=Answering(value=()), ledger=None).value == 0


@pytest.mark.parametrize("judge", [5, None, "", "a\nb", "\x1b[1m"])
def test_the_judge_of_an_answer_is_one_line_and_the_run_goes_on(judge: object) -> None:
    run = evaluate([{"output": "x"}], fine, judge=Answering(value=Verdict("yes"), judge=judge), ledger=None)
    assert run.records[0].reason.startswith("the judge of an answer must be one line of visible text, not ")


class SyncAnswering(Judge):
    def answer(self, question: Any, repeat: int = 0) -> Any:  # not async
        return JudgeAnswer((), judge="own")


class Combining(Judge):
    """A composite judge whose combined answer is none."""

    members: tuple[Judge, ...] = (LexicalJudge(),)

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        raise NotImplementedError

    async def combine(self, question: Any, ask: Any) -> JudgeAnswer[Any]:
        return JudgeAnswer("text", judge="combining")


def test_a_combined_answer_of_another_type_is_named() -> None:
    reason = score(claims, output="Ada was born in 1815.", judge=Combining(), ledger=None).reason
    assert reason.endswith("the answer to list_claims must be tuple[str, ...], not 'text' (str)")


class SyncCombining(Combining):
    def combine(self, question: Any, ask: Any) -> Any:  # not async
        return JudgeAnswer((), judge="combining")


@pytest.mark.parametrize("judge", [SyncCombining(), SyncAnswering()])
def test_a_judge_whose_method_is_not_async_is_named(judge: Judge) -> None:
    method = "combine" if judge.members else "answer"
    with pytest.raises(ConfigError) as raised:
        evaluate([{"output": "Ada was born in 1815."}], claims, judge=judge, ledger=None)
    expected = f"{type(judge).__name__}.{method} must be an async def that returns a JudgeAnswer"
    assert str(raised.value) == f"{expected}; it gave a value of type JudgeAnswer"


class Calling(Target):
    async def call(self, sample: Sample, *, trial: int, thread: str) -> str:
        return "x"


class Talking(User):
    async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
        return None


class Judging(Judge):
    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        raise NotImplementedError


def own(base: type[Any], **body: Any) -> type[Any]:
    """A class of one's own."""
    return types.new_class("Own", (base,), exec_body=lambda namespace: namespace.update(body))


def key_of(value: Any) -> str:
    return value.key


NAMED = [(Calling, "name"), (Talking, "identity"), (Judging, "identity")]


@pytest.mark.parametrize(("base", "name"), NAMED)
def test_a_name_is_a_class_attribute_a_field_or_a_property(base: type[Any], name: str) -> None:
    def said(value: Any) -> str:
        return getattr(value, name).partition("#")[0]

    keyed = own(base, __annotations__={"key": "str"})
    computed = cached_property(key_of)
    computed.__set_name__(base, name)
    assert said(own(base, **{name: "n"})()) == "n"
    assert said(own(keyed, **{name: property(key_of)})(key="n")) == "n"
    assert said(own(keyed, **{name: computed})(key="n")) == "n"
    default = own(base, **{name: "n", "__annotations__": {name: "str"}})
    assert (said(default()), said(default(**{name: "o"}))) == ("n", "o")


@pytest.mark.parametrize(("base", "name"), NAMED)
def test_a_name_can_be_a_required_field(base: type[Any], name: str) -> None:
    def said(value: Any) -> str:
        return getattr(value, name).partition("#")[0]

    kind = own(base, __annotations__={name: "str"})
    value = kind(**{name: "n"})
    assert (said(value), value == kind(**{name: "n"}), value == kind(**{name: "o"})) == ("n", True, False)
    assert said(replace(value, **{name: "o"})) == "o"
    assert said(own(kind, __annotations__={name: "str"})(**{name: "n"})) == "n"
    with pytest.raises(ConfigError, match=f"^Own needs {name}$"):
        kind()
    with pytest.raises(ConfigError, match=f"the field {name} would not be what Own sets"):
        own(kind, **{name: "n"})


@pytest.mark.parametrize("name", [5, None, "", "a\nb", "\x1b[1m"])
@pytest.mark.parametrize(("base", "attribute"), NAMED[:2])
def test_a_name_that_is_no_line_is_refused_before_the_run(base: type[Any], attribute: str, name: object) -> None:
    value = own(base, **{attribute: name})()
    target, user = (value, None) if base is Calling else (own(Calling, name="app")(), value)
    with pytest.raises(ConfigError, match=f"^Own: {attribute} must be one line of visible text, not "):
        evaluate([{"input": "x"}], "contains(expected=x)", target=target, user=user, ledger=None)


def test_the_identity_of_a_judge_is_not_set_where_it_is_computed() -> None:
    with pytest.raises(AttributeError, match="the identity of a judge can't be set"):
        object.__setattr__(Judging(), "identity", "mine")
