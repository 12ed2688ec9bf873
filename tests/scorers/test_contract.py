"""What holds for every scorer, whoever wrote it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evalstone.scorers
from evalstone import questions
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError
from evalstone.questions import FindToxicity, ListStatements
from evalstone.questions.base import Ask, Question
from evalstone.questions.conversation import CALL
from evalstone.questions.robustness import DIMENSIONS
from evalstone.scorers import SCORERS, ContextScorer, Scorer
from evalstone.scorers.base import summary
from evalstone.scorers.definitions import Defined
from evalstone.scorers.needs import listed_needs, needs_of
from evalstone.scorers.parameters import documentation, parameters_of
from evalstone.scorers.rag.graded import GradedScorer
from evalstone.scorers.registry import TEMPLATES
from evalstone.scorers.sources import TextSource
from evalstone.scorers.text import CodeScorer
from evalstone.scorers.wrappers import PerTurn
from evalstone.types import Failed, Sample, Score, Skipped
from tests.contributing_page import hunk
from tests.fakes import outcome_of, python, record_of
from tests.refusals import refused
from tests.scorers.variants import FULL, OTHERS, other_passages_of, passages_of, with_one, without
from tests.serving import resolved

pytestmark = pytest.mark.slow

MADE_ALONE = {
    name: kind
    for name, kind in SCORERS.items()
    if not SCORERS.paths[name].startswith(("checks.", "wrappers.")) and name != "embedding_similarity"
}
"""The scorers that need no parameters; those that do have tests of their own in tests/scorers."""

FAMILIES = (
    "alignment", "claims", "context_ranking", "context_relevance", "graded", "plans", "retrieval", "safety",
    "similarity", "statements", "tool_calls", "trajectories", "translation", "word_coverage",
)  # fmt: skip
"""The modules that hold several scorers."""

every = pytest.mark.parametrize("kind", MADE_ALONE.values(), ids=MADE_ALONE)
countable = pytest.mark.parametrize(
    "kind",
    [kind for kind in MADE_ALONE.values() if not issubclass(kind, GradedScorer)],
    ids=lambda kind: kind.name,
)
"""The scorers whose number of judge calls does not depend on the sample or a parameter."""
asking = pytest.mark.parametrize(
    "kind", [kind for kind in SCORERS.values() if kind.questions], ids=lambda kind: kind.name
)
with_context = pytest.mark.parametrize(
    "kind", [kind for kind in SCORERS.values() if issubclass(kind, ContextScorer)], ids=lambda kind: kind.name
)


@pytest.mark.parametrize("value", [object(), b"x"], ids=["object", "bytes"])
@every
def test_every_parameter_refuses_a_value_of_another_type_by_its_name(kind: type[Scorer], value: Any):
    for parameter in dataclasses.fields(kind):
        if parameter.init:
            with pytest.raises(ConfigError, match=parameter.name):
                kind(**{parameter.name: value})


def others(scorer: Scorer, name: str) -> list[Any]:
    """Values of a parameter that differ from its default and from each other."""
    value = getattr(scorer, name)
    if name == "prompt":
        return [" ".join(f"{{{{{hole}}}}}" for hole in scorer.prompts()[0].placeholders)]
    if name == "definition":
        return [definition for definition in cast(Defined, scorer).definitions if definition != value]
    own = f"{scorer.name}.{name}"
    return [other for other in OTHERS[own if own in OTHERS else name] if other != value]


SOURCES = {
    "claims": "text", "opinions": "text", "questions": "text", "statements": "answer", "part": "text",
    "statement": "context", "answer": "answer", "extra": "answer", "reference": "reference", "requests": "conversation",
    "steps": "conversation",
}  # fmt: skip
"""The inputs that the texts of a reply have to come from, by the key of the text or of its list."""


def is_from_input(question: Question[Any], key: str) -> bool:
    return key in SOURCES and hasattr(question, SOURCES[key])


def pieces(question: Question[Any], key: str) -> list[str]:
    """Words of an input that a text of a reply could be: all of one of its texts, its first word, its last ones."""
    material = getattr(question, SOURCES[key])
    worded = [text.split() for text in ([material] if isinstance(material, str) else material)]
    found = [" ".join(part) for words in worded for part in (words, words[:1], words[1:])]
    return [text for text in dict.fromkeys(found) if re.search(r"[^\W_]", text)]


UNDECIDED = {
    "supported": "not_mentioned", "contradicted": "not_mentioned",
    "reached": "not_shown", "failed": "not_shown", "done": "not_done",
}  # fmt: skip
"""The verdicts that must cite a passage, and those that are left without one."""


def passages_in(question: Question[Any]) -> tuple[str, ...]:
    return getattr(question, "context", getattr(question, "conversation", ()))


def evident(reply: dict[str, Any], question: Question[Any]) -> dict[str, Any]:
    """An object of a reply with the evidence that its verdict must have, or with another verdict."""
    if "passages" in reply and reply.get("verdict") in UNDECIDED:
        worded = [number for number, text in enumerate(passages_in(question), start=1) if not is_blank(text)]
        cited = [number for number in reply["passages"] if number in worded] or worded[:1]
        return {**reply, "passages": cited, "verdict": reply["verdict"] if cited else UNDECIDED[reply["verdict"]]}
    if "unplanned" in reply:
        done = {number for verdict in reply["plan"].values() for number in verdict["passages"]}
        calls = [number for number, text in enumerate(passages_in(question), start=1) if text.startswith(CALL)]
        return {**reply, "unplanned": [number for number in reply["unplanned"] if number in set(calls) - done]}
    return {**reply, "match": "missing"} if "match" in reply and not reply["answer"] else reply


def replies(draw: st.DrawFn, schema: Mapping[str, Any], question: Question[Any], key: str = "") -> Any:
    """Any reply that a judge may give by the schema."""
    schema = resolved(schema)
    match schema["type"]:
        case "object":
            members = schema["properties"].items()
            return evident({name: replies(draw, member, question, name) for name, member in members}, question)
        case "array" if schema["items"]["type"] == "integer":
            count = len(passages_in(question))
            return draw(st.lists(st.integers(1, count), max_size=3)) if count else []
        case "array" if "dimension" in schema["items"].get("properties", ()):
            names = draw(st.lists(st.sampled_from(DIMENSIONS), unique=True))
            return [{**replies(draw, schema["items"], question), "dimension": name} for name in names]
        case "array" if key == "contradictions" and not pieces(question, "answer"):
            return []
        case "array" if is_from_input(question, key) and not pieces(question, key):
            return []
        case "array" if any(
            is_from_input(question, name) and not pieces(question, name)
            for name in schema["items"].get("properties", {})
        ):
            return []
        case "array":
            most = 3 if schema["items"]["type"] == "object" else 6
            return [replies(draw, schema["items"], question, key) for _ in range(draw(st.integers(0, most)))]
        case "string" if "enum" in schema:
            return draw(st.sampled_from(schema["enum"]))
        case "string" if is_from_input(question, key):
            return draw(st.sampled_from(pieces(question, key) or [""]))
        case "string":
            return f"Seen: {draw(st.text(max_size=8))}"
        case "number" if "enum" in schema:
            return draw(st.sampled_from(schema["enum"]) | st.floats(0, 1))
        case "number":
            return draw(st.floats(schema["minimum"], schema["maximum"]))
        case "boolean":
            return draw(st.booleans())
        case other:
            raise AssertionError(other)


@st.composite
def some_reply(draw: st.DrawFn, question: Question[Any]) -> str:
    schema = question.json_schema
    if schema is None:
        return draw(st.sampled_from(["Yes", "No"]))
    return json.dumps(replies(draw, schema, question))


@every
def test_a_scorer_is_listed_under_its_name_and_can_be_made_without_parameters(kind: type[Scorer]):
    assert SCORERS[kind().name] is kind
    assert re.fullmatch("[a-z][a-z0-9_]*", kind.name)


@every
def test_the_class_needs_what_a_scorer_without_parameters_needs(kind: type[Scorer]):
    assert needs_of(kind) == kind().needs


@every
def test_a_scorer_lives_in_a_file_of_its_name_or_of_its_family_and_the_class_has_its_name_too(kind: type[Scorer]):
    module = kind.__module__.rpartition(".")[2]
    assert module in FAMILIES or module == kind.name
    assert kind.__name__ == "".join(part.capitalize() for part in kind.name.split("_"))


@every
def test_a_scorer_is_a_frozen_hashable_value(kind: type[Scorer]):
    assert kind() == kind()
    assert hash(kind()) == hash(kind())
    assert kind(scale=10) != kind()
    for field in dataclasses.fields(kind):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(kind(), field.name, 1)


@every
def test_a_scorer_survives_pickling_with_its_parameters(kind: type[Scorer]):
    for scorer in (kind(), kind(scale=10, explain=True)):
        signature = scorer.signature
        copy = pickle.loads(pickle.dumps(scorer))
        assert copy == scorer
        assert copy.signature == signature


@every
def test_every_parameter_has_a_default_and_can_be_given_by_name(kind: type[Scorer]):
    for field in dataclasses.fields(kind):
        for value in others(kind(), field.name):
            given = getattr(kind(**{field.name: value}), field.name)
            assert (given.template if field.name == "prompt" else given) == value


@every
def test_a_signature_begins_with_the_name_and_ends_with_the_version(kind: type[Scorer]):
    assert re.fullmatch(rf"{kind.name}(\(.*\))?@{kind.version}", kind().signature)
    assert kind().signature == kind().signature


@every
def test_a_signature_changes_with_every_parameter(kind: type[Scorer]):
    signatures = [kind().signature]
    for field in dataclasses.fields(kind):
        if field.name == "judge":  # who judges is named beside the signature
            continue
        for value in others(kind(), field.name):
            signature = kind(**{field.name: value}).signature
            assert field.name in signature or field.name == "prompt"
            signatures.append(signature)
    assert len(set(signatures)) == len(signatures)


@every
def test_a_signature_names_the_prompts_that_are_asked(kind: type[Scorer]):
    for question in kind().questions:
        fields: Mapping[str, Any] = {field.name: field.default for field in dataclasses.fields(question)}
        assert fields["prompt"].fingerprint in kind().signature
    assert len(kind(explain=True).signature) > len(kind().signature)


def test_signatures_are_the_same_in_every_process():
    code = (
        "from evalstone.scorers import SCORERS\n"
        f"kinds = [SCORERS[name] for name in {list(MADE_ALONE)}]\n"
        "print(*(kind(scale=0.3).signature for kind in kinds), sep='|')"
    )
    here = "|".join(kind(scale=0.3).signature for kind in MADE_ALONE.values())
    assert {python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")} == {here}


@every
def test_a_sample_without_a_needed_field_is_skipped_before_anything_is_asked(kind: type[Scorer]):
    assert kind().needs
    for need in kind().needs:
        sample = Sample(**without(need.fields))
        record, judge = record_of(kind(), sample, lambda _: pytest.fail("asked"))
        assert record.outcome == Skipped(f"{kind.name} needs {need.text}")
        assert kind().lacks(sample) == [need]
        assert judge.asked == []
        assert record.calls == ()


@every
def test_each_field_that_stands_in_for_another_is_enough(kind: type[Scorer]):
    for scorer in (kind(), *([kind(text="all")] if issubclass(kind, TextSource) else [])):
        for need in scorer.needs:
            for name in need.alternatives:
                sample = with_one(need, name)
                assert scorer.lacks(sample) == []
                outcome = outcome_of(scorer, sample, lambda question: json.dumps(question.example()))
                assert isinstance(outcome, Score), (need, name, outcome)


@every
def test_each_parameter_that_supplies_a_field_is_enough(kind: type[Scorer]):
    for need in kind().needs:
        for parameter in need.parameters:
            scorer = kind(**{parameter: others(kind(), parameter)[0]})
            sample = Sample(**without(need.fields))
            assert scorer.needs == tuple(other for other in kind().needs if other != need)
            assert scorer.lacks(sample) == []
            outcome = outcome_of(scorer, sample, lambda question: json.dumps(question.example()))
            assert not (isinstance(outcome, Skipped) and " needs " in outcome.reason)


@every
def test_a_sample_without_any_field_is_told_all_that_is_needed(kind: type[Scorer]):
    outcome = outcome_of(kind(), Sample(), [])
    assert outcome == Skipped(f"{kind.name} needs {listed_needs(kind().needs)}")


@every
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_score_lies_on_its_scale_whatever_the_judge_says(kind: type[Scorer], data: st.DataObject):
    scale = data.draw(st.floats(min_value=1e-6, max_value=1e6))
    passages = data.draw(st.lists(st.text(max_size=8), max_size=5))

    def script(question: Question[Any]) -> str:
        return data.draw(some_reply(question))

    outcome = outcome_of(kind(scale=scale), dataclasses.replace(Sample(**FULL), id="", context=passages), script)
    assert not isinstance(outcome, Failed), outcome
    if isinstance(outcome, Score):
        assert 0 <= outcome.value <= scale
        assert outcome.scale == scale
        assert outcome.reason


@every
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_scale_multiplies_and_changes_nothing_else(kind: type[Scorer], data: st.DataObject):
    said: dict[str, str] = {}

    def script(question: Question[Any]) -> str:
        if question.fingerprint not in said:
            said[question.fingerprint] = data.draw(some_reply(question))
        return said[question.fingerprint]

    plain, scaled = (outcome_of(kind(scale=scale), Sample(**FULL), script) for scale in (1, 40))
    if isinstance(plain, Score) and isinstance(scaled, Score):
        assert scaled.value == pytest.approx(40 * plain.value)
        assert (scaled.reason, scaled.evidence) == (plain.reason, plain.evidence)
    else:
        assert isinstance(plain, Skipped)
        assert plain == scaled


@every
def test_the_questions_that_are_asked_are_among_those_announced(kind: type[Scorer]):
    record, judge = record_of(kind(), Sample(**FULL), lambda question: json.dumps(question.example()))
    assert isinstance(record.outcome, Score)
    assert {type(question) for question in judge.asked} <= set(kind.questions)
    assert [call.fingerprint for call in record.calls] == [question.fingerprint for question in judge.asked]


@countable
def test_every_question_that_is_announced_is_asked(kind: type[Scorer]):
    _, judge = record_of(kind(), Sample(**FULL), lambda question: json.dumps(question.example()))
    assert [type(question) for question in judge.asked] == list(kind.questions)


@every
def test_explain_costs_one_more_question_and_puts_the_judges_words_in_place(kind: type[Scorer]):
    def script(question: Question[Any]) -> str:
        if question.kind == "explain":
            return '{"explanation": "It says so."}'
        return json.dumps(question.example())

    plain, _ = record_of(kind(scale=10), Sample(**FULL), script)
    explained, judge = record_of(kind(scale=10, explain=True), Sample(**FULL), script)
    assert isinstance(plain.outcome, Score)
    assert explained.outcome == dataclasses.replace(plain.outcome, reason="It says so.")
    assert len(explained.calls) == len(plain.calls) + 1
    asked = judge.asked[-1].render()[1]
    assert kind.name in asked
    assert f"{plain.outcome.value:.4g} out of 10" in asked
    assert ("lower" if kind.lower_is_better else "higher") + " is better" in asked
    assert plain.outcome.reason.split("“")[0] in asked


@every
def test_a_score_stands_where_its_explanation_fails_and_both_are_paid_for(kind: type[Scorer]):
    def script(question: Question[Any]) -> str:
        return "{broken" if question.kind == "explain" else json.dumps(question.example())

    plain, _ = record_of(kind(), Sample(**FULL), script)
    explained, _ = record_of(kind(explain=True), Sample(**FULL), script)
    assert isinstance(plain.outcome, Score)
    assert isinstance(explained.outcome, Score)
    assert dataclasses.replace(explained.outcome, reason=plain.outcome.reason) == plain.outcome
    assert explained.outcome.reason.startswith(f"{plain.outcome.reason} The explanation failed: ")
    assert len(explained.calls) == len(plain.calls) + 1
    assert explained.calls[-1].usage.requests == 1


@asking
def test_a_reply_that_is_none_makes_the_outcome_failed_with_the_reply(kind: type[Scorer]):
    outcome = outcome_of(kind(), Sample(**FULL), ["{broken"])
    assert isinstance(outcome, Failed)
    assert outcome.reply == "{broken"


@every
def test_bands_go_down_to_zero_and_there_is_advice(kind: type[Scorer]):
    limits = [limit for limit, _ in kind.interpretation]
    assert limits == sorted(limits, reverse=True)
    assert len(set(limits)) == len(limits) >= 2
    assert limits[-1] == 0
    assert limits[0] <= 1
    assert all(told for _, told in kind.interpretation)
    assert kind.advice


@pytest.mark.parametrize("kind", [*SCORERS.values(), *TEMPLATES.values()], ids=[*SCORERS, *TEMPLATES])
def test_every_parameter_is_described(kind: type[Scorer]):
    assert [name for name, _, allowed, description in parameters_of(kind) if not (allowed and description)] == []


@every
def test_a_scorer_says_in_one_line_what_it_measures(kind: type[Scorer]):
    assert summary(kind).endswith(".")
    assert summary(kind) != (inspect.getdoc(Scorer) or "").partition("\n")[0]


@every
def test_the_documentation_states_formula_range_direction_and_where_it_is_undefined(kind: type[Scorer]):
    told = documentation(kind)
    words = " ".join(told.split()).lower()
    title = kind.name.replace("_", " ")
    assert re.search(rf"^    {title} += ", told, re.MULTILINE)
    assert "range [0, scale]" in words
    assert f"{'lower' if kind.lower_is_better else 'higher'} is better" in words
    assert "undefined" in words
    count = 1 if issubclass(kind, GradedScorer) else len(kind.questions)
    assert re.search(rf"\b{['no', 'one', 'two', 'three', 'four'][count]} judge call", words)
    assert "source: " in words


@every
@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 10**400, True, "1", None])
def test_a_scale_that_is_no_positive_number_is_refused(kind: type[Scorer], scale: Any):
    with refused("scale", "a number above 0 and up to 1e+100"):
        kind(scale=scale)


@every
def test_explain_is_true_or_false_and_no_word(kind: type[Scorer]):
    with refused("explain", "true or false"):
        kind(explain=cast(Any, "no"))


@with_context
def test_the_passages_come_from_the_function_then_the_scorer_then_the_sample(kind: type[ContextScorer]):
    sample = Sample(**FULL)
    given: Sequence[str] = ("mine",)
    seen: list[Sequence[str]] = []

    class Seen(kind):
        def values(self, sample: Sample) -> dict[str, Any]:
            values = super().values(sample)
            seen.append(values["context"])
            return dict.fromkeys(values)

    async def other(sample: Sample) -> Sequence[str]:
        return other_passages_of(sample)

    for parameters in (
        {},
        {"context": given},
        {"context": given, "context_from": other_passages_of},
        {"context": given, "context_from": other},
        {"context_from": passages_of},
    ):
        outcome_of(cast(Any, Seen)(**parameters), sample, [])
    assert seen == [tuple(FULL["context"]), given, ("other",), ("other",), tuple(FULL["context"])]


@with_context
def test_what_is_no_list_of_passages_is_refused(kind: type[ContextScorer]):
    assert kind(context=cast(Any, "one")).context == ("one",)
    with pytest.raises(ConfigError, match="context must be"):
        kind(context=cast(Any, 5))
    with refused("context_from"):
        kind(context_from=cast(Any, "my_function"))


class Mute(Scorer):
    """Never finished."""


def test_a_scorer_without_a_score_method_cannot_be_made():
    with pytest.raises(ConfigError, match="lacks score, which every Scorer defines"):
        Mute()  # pyright: ignore[reportAbstractUsage]


def test_a_misspelt_field_is_refused_when_the_class_is_defined():
    with pytest.raises(ConfigError, match=r"^Typo.* 'contxt'; .* context\b"):

        class Typo(Scorer):  # pyright: ignore[reportUnusedClass]
            name = "typo"

            async def score(self, ask: Ask, *, contxt: Sequence[str]) -> Score:
                return Score(1)


def test_a_field_that_is_not_keyword_only_is_refused_when_the_class_is_defined():
    told = r"Positional\.score takes output by position; .* write def score\(self, ask, \*, output\)$"
    with pytest.raises(ConfigError, match=told):

        class Positional(Scorer):  # pyright: ignore[reportUnusedClass]
            name = "positional"

            async def score(self, ask: Ask, output: str) -> Score:
                return Score(1)


def test_a_scorer_without_a_name_is_refused_when_it_is_made_and_a_base_may_have_none():
    class Base(Scorer):
        def score(self, *, output: str) -> Score:
            return Score(1)

    class Named(Base):
        name = "named"

    assert Named().signature.startswith("named(")
    with pytest.raises(ConfigError, match=r'scorer Base .* "base"'):
        Base()


class Length(Scorer):
    """One for a short answer."""

    name = "length"

    def score(self, *, output: str, reference: str = "none", messages: Sequence[Any] = ("absent",)) -> Score | Skipped:
        if output == "nan":
            return Score(float("nan"))
        if output == "none":
            return cast(Any, None)
        if output == "five":
            return Score(0.4, scale=5)
        if output == "bug":
            raise ZeroDivisionError("in the scorer")
        return Score(1 / max(1, len(output)), reason=reference, evidence=messages)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("nan", "a score must be finite, not nan"),
        ("none", "length must return a number, True or False, a Score or Skipped, not NoneType"),
        ("five", "length: the scale of the score is 5, the scorer's 1"),
        ("bug", "ZeroDivisionError: in the scorer"),
    ],
)
def test_a_scorer_of_your_own_that_goes_wrong_makes_the_outcome_failed(output: str, told: str):
    outcome = outcome_of(Length(), Sample(output=output), [])
    assert isinstance(outcome, Failed)
    assert outcome.error.partition(" (")[0] == told


def test_a_score_without_a_scale_is_on_the_scale_of_the_scorer_that_returns_it():
    class Five(CodeScorer):
        """Five points."""

        name = "five"

        def score(self, *, output: str) -> Score:
            return Score(5, "so many")

    assert outcome_of(Five(scale=10), Sample(output="a"), []) == Score(5, "so many", scale=10, evidence=[])
    turn = Sample(input="q", output="a")
    of_turns = outcome_of(PerTurn(Five(scale=10)), Sample(turns=[turn]), [])
    assert (cast(Score, of_turns).value, cast(Score, of_turns).scale) == (5, 10)
    assert Five(scale=10).score_columns(output=["a"]) == [Score(5, "so many", scale=10)]
    beyond = outcome_of(Five(), Sample(output="a"), [])
    assert isinstance(beyond, Failed)
    assert "in [0, 1]" in beyond.error


def test_a_scorer_of_your_own_may_ask_nothing_and_leave_fields_optional():
    assert Length().required_fields == ("output",)
    assert re.fullmatch(r"length\([0-9a-f]{8}\)@1", Length().signature)  # the code is in it
    assert outcome_of(Length(), Sample(output="abcd"), []) == Score(0.25, "none", scale=1, evidence=[])
    assert outcome_of(Length(), Sample(output="abcd", reference="r"), []) == Score(0.25, "r", scale=1, evidence=[])


ROOT = Path(evalstone.scorers.__file__).parent
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
SHARED = {
    *("base", "definitions", "needs", "other_systems", "parameters", "reasons", "registry", "sources"),
    *("agents", "checks.base", "custom", "rag", "text"),
}
"""Modules that hold what scorers share. The checks use `text` as well."""


@pytest.mark.parametrize("file", [file for file in FILES if file not in ("__init__.py", "registry.py")])
def test_a_scorer_never_imports_another_scorer(file: str):
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    used = {name.removeprefix("evalstone.scorers.") for name in modules if name.startswith("evalstone.scorers")}
    assert used <= SHARED


def test_every_file_holds_scorers_or_what_they_share():
    modules = {
        path.rpartition(".")[0].replace(".", "/")
        for registry in (SCORERS, TEMPLATES)
        for path in registry.paths.values()
    }
    shared = {f"{name}.py" for name in ("base", "definitions", "described", "needs", "other_systems", "parameters")}
    shared |= {f"{name}.py" for name in ("reasons", "registry", "sources", "tables", "__init__")}
    shared |= {f"{name}/__init__.py" for name in ("agents", "checks", "custom", "rag", "text")}
    shared |= {"checks/base.py", "custom/function.py", "custom/pipeline.py"}
    assert set(FILES) == {f"{module}.py" for module in modules} | shared


def test_the_prompts_of_declared_questions_are_in_the_signature_of_a_scorer_of_your_own():
    kinds = (questions.ListClaims, ListStatements, FindToxicity)

    class Mine(Scorer):
        """Mine."""

        name = "mine"
        questions = kinds

        async def score(self, ask: Ask, *, output: str) -> Score:
            return Score(1.0)

    prompts = ", ".join(kind.prompt.fingerprint for kind in kinds)
    assert re.fullmatch(rf"mine\({prompts}, [0-9a-f]{{8}}\)@1", Mine().signature)


def test_the_registry_hunk_of_the_contributing_page_applies():
    lines = hunk("src/evalstone/scorers/registry.py")
    context = [line[1:] for line in lines if line.startswith(" ")]
    registry = (ROOT / "registry.py").read_text("utf-8").splitlines()
    at = registry.index(context[0])
    assert registry[at : at + len(context)] == context
