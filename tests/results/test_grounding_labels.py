from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evalstone import Run, Sample, evaluate, read_run, write_run
from evalstone.report.html import page
from evalstone.report.markdown import lines
from evalstone.report.terminal import show
from evalstone.results.grounding_labels import check_grounding, grounding_label
from evalstone.results.views.run import run_view

SUPPORTED = ["The museum opens at nine.", "Tickets cost four euros.", "The garden is behind the house."]
INVENTED = ["Whales sing under water.", "Honolulu has many beaches."]


def labeled(answers: Sequence[str], labels: Sequence[Any], scorers: Any, **options: Any) -> Run:
    """A run by the lexical judge. A label of None is left out."""
    data = [
        Sample(
            input="What is it?",
            output=answer,
            context=SUPPORTED,
            metadata={} if label is None else {"label": label},
        )
        for answer, label in zip(answers, labels, strict=True)
    ]
    return evaluate(data, scorers, judge="lexical", ledger=None, **options)


@pytest.mark.parametrize(
    ("label", "grounded"),
    [
        ("grounded", True),
        (" Supported ", True),
        ("ungrounded", False),
        ("not_grounded", False),
        ("Not-Faithful", False),
        ("Hallucinated", False),
        ("good", None),
        (1, None),
        (None, None),
    ],
)
def test_only_words_of_grounding_are_labels_of_grounding(label: Any, grounded: bool | None) -> None:
    assert grounding_label(Sample(metadata={"label": label})) is grounded
    assert grounding_label(None) is None


def test_scores_of_either_direction_are_compared_with_the_labels_in_every_report(tmp_path: Path) -> None:
    labels = ["grounded", "grounded", "ungrounded", "ungrounded"]
    answers = [*SUPPORTED, INVENTED[0]]
    run = labeled(answers, labels, ["faithfulness", "hallucination", "context_relevance"])
    check = check_grounding(run)
    assert check is not None
    assert (check.grounded, check.ungrounded) == (2, 2)
    assert list(check.auroc.values()) == [0.75, 0.75]
    note = "labels of the data: 2 grounded, 2 not; faithfulness, hallucination: AUROC 0.75"
    saved = read_run(write_run(run, tmp_path / "run"))
    for each in (run, saved):
        view = run_view(each)
        assert note in view.sections[0].notes
        screen = io.StringIO()
        show(view, Console(file=screen, width=500))
        for report in (screen.getvalue(), "".join(page(view)), "\n".join(lines(view)).replace("\\", "")):
            assert note in report
            assert "ungrounded" in report


def test_the_worst_samples_have_their_label() -> None:
    run = labeled([SUPPORTED[0], *INVENTED], ["grounded", "grounded", "ungrounded"], "faithfulness")
    worst = run_view(run).examples[0].samples
    assert [(sample.answer, sample.label) for sample in worst] == [
        (INVENTED[0], "grounded"),
        (INVENTED[1], "ungrounded"),
    ]


def test_with_one_kind_of_label_there_is_no_auroc() -> None:
    run = labeled(SUPPORTED[:2], ["grounded", "grounded"], "faithfulness")
    assert any(note.endswith(": 2 grounded, 0 not") for note in run_view(run).sections[0].notes)


def test_samples_without_a_label_are_left_out_of_the_comparison() -> None:
    check = check_grounding(labeled([*SUPPORTED[:2], INVENTED[0]], ["grounded", None, "ungrounded"], ["faithfulness"]))
    assert check is not None
    assert (check.grounded, check.ungrounded, *check.auroc.values()) == (1, 1, 1.0)


@pytest.mark.parametrize(
    ("labels", "scorers"),
    [
        (["good", "bad"], ["faithfulness"]),
        ([None, None], ["faithfulness"]),
        (["grounded", "ungrounded"], ["context_relevance"]),
    ],
)
def test_other_labels_and_other_scorers_are_not_compared(labels: Sequence[Any], scorers: Sequence[str]) -> None:
    run = labeled([SUPPORTED[0], INVENTED[0]], labels, scorers)
    assert check_grounding(run) is None
    assert not any(" grounded, " in note for note in run_view(run).sections[0].notes)
