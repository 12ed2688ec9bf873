"""docs/json.md has the fields of the JSON of results: those that the results have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    LexicalJudge,
    Panel,
    Run,
    ScriptedJudge,
    audit,
    calibrate,
    compare,
    drift,
    evaluate,
    gate,
    power,
)
from evalstone.judges import align
from evalstone.results import compare_judges
from evalstone.results.human_labels import load_labels
from evalstone.results.several_runs import Experiment
from evalstone.results.views.one_sample import one_sample
from tests.birds import labeled, strict, unsure
from tests.schemas import problems

PAGE = (Path(__file__).parents[1] / "docs/json.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
LINK = re.compile(r"\[(\w+)\]\(#\w+\)")
LINKED = re.compile(rf"(?:{LINK.pattern}(?: or )?)+$")
"""The objects that a field holds, of one kind or of one of several."""
TABLES = {
    title: dict(ROW.findall(table)) for title, _, table in (part.partition("\n") for part in PAGE.split("\n## ")[1:])
}


def scored(hit: int) -> Run:
    samples = [
        {"id": str(n), "output": "yes" if n % hit else "no", "reference": "yes", "lang": "de" if n % 2 else "en"}
        for n in range(24)
    ]
    return evaluate(samples, "exact_match", ledger=None)


RUN, OTHER, THIRD = scored(3), scored(4), scored(5)
ROWS = [{"id": str(n), "label": float(n % 2)} for n in range(16)]
SUPPORTED = {"verdicts": {"1": {"reason": "", "passages": [1], "verdict": "supported"}}}
CARELESS = ScriptedJudge({"list_claims": {"claims": ["x"]}, "verify_claims": SUPPORTED}, name="careless")
FACTS = [
    {
        "output": f"{'Paris' if n % 2 else 'Rome'} is in France.",
        "context": ["Paris is in France."],
        "label_1": "yes" if n % 3 else "no",
        "label_2": "yes" if n % 4 else "no",
        "metadata": {"lang": "de" if n % 5 else "en"},
    }
    for n in range(30)
]
LABELS = {
    letter: {"exact_match": load_labels(run, "exact_match", ROWS)} for letter, run in {"A": RUN, "B": OTHER}.items()
}
RESULTS = {
    "report of one sample": one_sample(RUN, "3"),
    "compare": compare(RUN, OTHER, THIRD, slice_by="lang", margin=0.1),
    "compare with labels": compare(RUN, OTHER, labels=LABELS),
    "gate": gate(
        OTHER,
        min={"exact_match": 0.5},
        max_regression={"exact_match": 0.1},
        require=["exact_match"],
        baseline=RUN,
    ),
    "power": power(RUN, baseline=OTHER),
    "drift": drift(RUN, RUN),
    "run with an experiment": Experiment(runs={"a": RUN}),
    "calibrate": calibrate(FACTS, judge=Panel(LexicalJudge(), CARELESS), slice_by="lang", ledger=None, per_judge=True),
    "calibrate with labels": calibrate(FACTS, judge="lexical", calibrator="platt", ledger=None),
    "calibrate of several judges": compare_judges(
        [calibrate(FACTS, judge=judge, ledger=None) for judge in (LexicalJudge(), CARELESS)]
    ),
    "align": align(labeled(60), "relevancy_check", judge=ScriptedJudge(strict), examples=2, ledger=None),
    "align with labels": align(labeled(60), "relevancy_check", judge=ScriptedJudge(unsure), ledger=None),
    "audit": audit(FACTS, perturbations=("repeat", "bold"), ledger=None),
}


def unlike_page(data: Mapping[str, Any], title: str) -> Iterator[str]:
    """The fields of an object that differ from those of its table, and those of the objects in it."""
    table = TABLES[title]
    yield from (f"{title}: {name}" for name in {*data} ^ {*table})
    for name in {*data} & {*table}:
        if (linked := LINKED.search(table[name])) and data[name]:
            titles = LINK.findall(linked[0])
            for each in objects_in(data[name], TABLES[titles[-1]]):
                yield from unlike_page(each, min(titles, key=lambda title: len({*each} ^ {*TABLES[title]})))


def objects_in(value: Any, table: Mapping[str, str]) -> list[Any]:
    """The objects with the fields of a table: of a list, of a mapping by name, or the value itself."""
    if hasattr(value, "values"):
        value = [value] if {*value} & {*table} else value.values()
    return [each for each in value if each is not None]


@pytest.mark.parametrize("name", RESULTS)
def test_the_page_has_the_fields_of_the_result(name: str) -> None:
    title = f"evalstone {name.removesuffix(' with labels')}"
    assert [*unlike_page(data := RESULTS[name].to_dict(), title)] == []
    assert problems(json.loads(json.dumps(data))) == []
    assert TABLES[title]["format"] == f"`{data['format']}`"
