"""Names and titles from signatures."""

from __future__ import annotations

import pytest

from evalstone.types.scorer_names import is_named, scorer_name, titles, without_fingerprints


@pytest.mark.parametrize(
    ("signature", "name", "parameters"),
    [
        ("contains@1", "contains", "contains"),
        ("contains(expected=a@b)@1", "contains", "contains(expected=a@b)"),
        ("faithfulness(5c1d77b2, 9a0e41c3)@12", "faithfulness", "faithfulness"),
        ("faithfulness(scale=10; 5c1d77b2, acme-eval==1.2.0)@1", "faithfulness", "faithfulness(scale=10)"),
        ("contains(expected=5c1d77b2)@1", "contains", "contains(expected=5c1d77b2)"),
        ("contains per turn(expected=York)@1", "contains per turn", "contains per turn(expected=York)"),
        ("recall@5(ragas==0.4.3)@1", "recall@5", "recall@5"),
        ("acc(filter=strict; lm-eval==0.4.13)@1", "acc", "acc(filter=strict)"),
    ],
)
def test_a_signature_has_a_name_and_parameters(signature: str, name: str, parameters: str) -> None:
    assert (scorer_name(signature), without_fingerprints(signature)) == (name, parameters)


def test_a_title_is_the_shortest_text_that_no_other_scorer_has() -> None:
    names = ["f(a=1; 5c1d77b2)@1", "f(a=1; 9a0e41c3)@1", "f(a=2; 9a0e41c3)@1", "g(a=1; 5c1d77b2)@1"]
    assert titles({name: scorer_name(name) for name in names}) == {
        names[0]: names[0],
        names[1]: names[1],
        names[2]: "f(a=2)",
        names[3]: "g",
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("f", True),
        ("f(a=1)", True),
        ("f( a = 1 )", True),
        ("f(a=1; 5c1d77b2)@1", True),
        ("f(a=2)", False),
        ("f(a=1, b=2)", False),
        ("f()", True),
        ("g", False),
        ("f(a=1", False),
    ],
)
def test_a_stored_scorer_is_named_by_its_name_or_by_just_its_parameters(text: str, named: bool) -> None:
    assert is_named("f(a=1; 5c1d77b2)@1", text) is named
