"""What a class of scorers declares about the fields that it requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import new_class
from typing import Any, ClassVar, TypeAlias, cast

import pytest

from evalstone import Scorer, Skipped, score
from evalstone.errors import ConfigError
from evalstone.scorers import Rubric
from evalstone.scorers.needs import TOOL_RESULTS

Table: TypeAlias = Mapping[str, tuple[str, ...]]


class Words(Scorer):
    """How many of the words the answer has."""

    name = "words"
    required_fields = ("output", "metadata.words")
    supplied_by: ClassVar[Table] = {"metadata.words": ("words",)}

    words: list[str] = field(default_factory=list[str])

    def score(self, *, output: str, metadata: Mapping[str, Any]) -> bool:
        return all(word in output for word in self.words or metadata["words"])


def test_a_parameter_with_a_default_factory_supplies_a_field_only_if_it_was_passed() -> None:
    assert [need.field for need in Words().needs] == ["output", "metadata.words"]
    assert score(Words(), output="a").outcome == Skipped("words needs words in metadata (or words=…)")
    assert score(Words(), output="a", metadata={"words": ["a"]}).value == 1
    assert [need.field for need in Words(words=["b"]).needs] == ["output"]
    assert score(Words(words=["b"]), output="a").value == 0


def test_an_alternative_outside_the_metadata_is_told_from_entries() -> None:
    (rubric,) = (need for need in Rubric(generate=True).needs if need.field == "metadata.rubric")
    entries = "rubrics, requestContext.rubric, additionalContext.rubric"
    assert rubric.text == f"rubric in metadata (or {entries}, the input, criteria=…)"


def test_an_optional_parameter_may_be_taken_from_another_field_or_supplied_by_the_scorer() -> None:
    class Equal(Scorer):
        name = "equal"
        required_fields = cast(Any, ["output", "reference"])
        alternatives: ClassVar[Table] = {"reference": ("metadata.expected", TOOL_RESULTS)}
        supplied_by: ClassVar[Table] = {"reference": cast(Any, ["expected"])}

        expected: str = ""

        def score(self, *, output: str, reference: str = "", metadata: Mapping[str, Any]) -> bool:
            return output == (self.expected or reference or metadata["expected"])

    assert (Equal.required_fields, Equal.supplied_by) == (("output", "reference"), {"reference": ("expected",)})
    assert score(Equal(), output="a", metadata={"expected": "a"}).value == 1
    assert score(Equal(expected="a"), output="a").value == 1
    assert score(Equal(), output="a", reference="b").value == 0
    reason = "equal needs reference (or expected in metadata, tool results in messages, expected=…)"
    assert score(Equal(), output="a").outcome == Skipped(reason)


def named(self: Scorer, *, output: str, reference: str) -> float:
    return 1.0


def optional(self: Scorer, *, output: str, reference: str = "") -> float:
    return 1.0


def any_fields(self: Scorer, **fields: Any) -> float:
    return 1.0


BOTH = ("output", "reference")
ALWAYS = (
    ": nothing can stand in for reference, which score is always passed: write it as a parameter with a default, such "
    "as reference=None, and name the field in required_fields"
)


@pytest.mark.parametrize(
    ("function", "declared", "message"),
    [
        (named, {"alternatives": {"reference": ("metadata.expected",)}}, f"Own.alternatives{ALWAYS}"),
        (named, {"supplied_by": {"reference": ("scale",)}}, f"Own.supplied_by{ALWAYS}"),
        (any_fields, {"required_fields": BOTH, "supplied_by": {"reference": ("scale",)}}, f"Own.supplied_by{ALWAYS}"),
        (
            optional,
            {"alternatives": {"reference": ("metadata.expected",)}},
            "Own.alternatives: reference is no required field; add it to required_fields",
        ),
        (
            optional,
            {"required_fields": ("output", "referense")},
            "Own.required_fields: unknown sample field 'referense'; did you mean reference?",
        ),
        (
            optional,
            {"required_fields": BOTH, "alternatives": {"reference": ("metdata.expected",)}},
            "Own.alternatives: unknown sample field 'metdata.expected'; known: context, ",
        ),
        (
            optional,
            {"required_fields": ("output", "metadata.")},
            "Own.required_fields: unknown sample field 'metadata.'; did you mean metadata?",
        ),
        (optional, {"reads_blank": ("outptu",)}, "Own.reads_blank: unknown sample field 'outptu'; did you mean output"),
        (
            optional,
            {"required_fields": BOTH, "supplied_by": {"reference": ("scael",)}},
            "Own.supplied_by: unknown parameter 'scael'; did you mean scale?",
        ),
        (
            optional,
            {"required_fields": BOTH, "supplied_by": {"reference": "scale"}},
            "Own: supplied_by must be a table with a list of texts for each field, not {'reference': 'scale'} (dict)",
        ),
        (
            optional,
            {"required_fields": "output"},
            "Own: required_fields must be a list of texts that are not blank, not 'output' (str)",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_when_the_class_is_defined(
    function: Callable[..., float], declared: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        new_class("Own", (Scorer,), None, lambda body: body.update(name="own", score=function, **declared))
    assert str(raised.value).startswith(message)


def test_a_scorer_with_values_of_its_own_may_replace_what_score_is_always_passed() -> None:
    class Replaced(Scorer):
        name = "replaced"
        alternatives: ClassVar[Table] = {"reference": ("input",)}

        def values(self, sample: Any) -> dict[str, Any]:
            return {"output": sample.output, "reference": sample.reference or sample.input}

        def score(self, *, output: str, reference: str) -> bool:
            return output == reference

    assert score(Replaced(), output="a", input="a").value == 1


def test_a_base_class_may_declare_parameters_of_the_classes_that_derive_from_it() -> None:
    class Base(Scorer):
        supplied_by: ClassVar[Table] = {"reference": ("expected",)}

    with pytest.raises(ConfigError, match=r"^Derived\.supplied_by: unknown parameter 'expected'; "):

        class Derived(Base):  # pyright: ignore[reportUnusedClass]
            name = "derived"
            required_fields = BOTH

            def score(self, *, output: str, reference: str = "") -> float:
                return 1.0
