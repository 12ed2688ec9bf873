"""What is public: where its names and types stand, and what the documents import."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from evalstone._core import file_format
from tests.public import open_types, public_modules, public_names, without_a_home
from tests.test_docs import PAGES, ROOT, blocks

EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
STABILITY = ROOT / "docs" / "stability.md"


def test_every_public_name_is_there() -> None:
    assert all(value is not None for value in public_names().values())


def test_no_public_name_is_that_of_a_module_beside_it() -> None:
    """Importing the module would replace the name in the package."""
    folders = {name: ROOT.joinpath("src", *name.rpartition(".")[0].split(".")) for name in public_names()}
    assert [name for name, at in folders.items() if (at / f"{name.rpartition('.')[2]}.py").exists()] == []


def test_a_public_name_means_one_thing() -> None:
    """Except `evalstone.live.drift`, which is always written with its module."""
    meanings: dict[str, dict[int, str]] = {}
    for public, value in public_names().items():
        meanings.setdefault(public.rpartition(".")[2], {}).setdefault(id(value), public)
    several = [sorted(places.values()) for places in meanings.values() if len(places) > 1]
    assert several == [["evalstone.drift", "evalstone.live.drift"]]


@pytest.mark.slow
def test_the_types_in_public_signatures_are_public() -> None:
    assert without_a_home() == {}


UNTYPED = {
    "JSON data, or what becomes JSON data in files": (
        "*.state *(state) *.trace Answer.__init__(trace) *.example(return) *.from_json(data) *.from_jsonable(data) "
        "HTTPMessage.json(return) JsonCheck.read(return) Record.evidence(return) *.evidence Score.__init__(evidence) "
        "*Call.answer JudgeCall.__init__(answer) ToolCall.result ToolCall.__init__(result) LabeledQuestion.* "
        "*.changed_parameters(return) json_line(obj) write_jsonl(rows) EvaluationRequest.*data_list* "
        "Problem.value Problem.__init__(value) MayOmit.__init__(default) WorstFirst.__init__(labels)"
    ),
    "the answer to a question, whose type the question knows": (
        "*.citation_note(value) PromptStep.*answer* GradedScorer.undecided(answer) MemberCalls.__init__(ask) SoFar.*"
    ),
    "the scorer declares the fields of its score, with their types": "*.score(fields) Scorer.score(args)",
    "one function for any value, which it refuses if it can't read it": (
        "Answer.of(value) parse_target(spec) parse_user(spec) read_transcript(value) Criterion.parse(value) "
        "load_labels(source) Rule.* GateCriteria.of(given)"
    ),
    "a setting by its name": (
        "*.is_usual(value) LanguageModel.request_settings(probabilities) "
        "FactCheckingEvaluator.for_bespoke_minicheck(options)"
    ),
    "what a function of the user's own returns": (
        "FunctionTarget.* Target.call(return) Prepared.__init__(call) Prepared.call Live.__init__(filter) "
        "Live.__init__(on_record) Guard.protect(fallback) Submission.sample(return)"
    ),
    "scorers or their names: the type of a mapping's keys can't be widened": (
        "guard(min) guard(max) Evalstone.*assert_scores(min) Evalstone.*assert_scores(max)"
    ),
    "an array of numpy, which evalstone imports once it needs it": (
        "Columns.sample_numbers(return) Columns.has_score(return)"
    ),
    "a table of a library that need not be installed": (
        "*.to_pandas(return) *.to_polars(return) ScoreBatches.schema(return)"
    ),
    "data of the target, which `score` checks to be a number": "*.measured(return)",
    "any question, by what its answers have in common": "Quotes.*(question) Restates.*(question)",
    "the result is not used": "*.opened(return)",
    "any model, or what asyncio declares so": (
        "DecisionProvider.__init__(model) DecisionProvider.connect(model) DecisionProvider.decide(return) "
        "Embeddings.__init__(model) endpoint_of(model) ChatProvider.complete(return)"
    ),
    "columns of any type, and the results of any formula": "CodeScorer.score_columns(columns) Defined.compute(*)",
}
"""Where Any or object stands in public signatures, by the reason."""


@pytest.mark.slow
def test_public_signatures_say_their_types() -> None:
    reasons = {pattern: reason for reason, patterns in UNTYPED.items() for pattern in patterns.split()}
    found = open_types()
    without = {place: of for place, of in found.items() if not any(fnmatchcase(place, each) for each in reasons)}
    assert without == {}
    assert [each for each in reasons if not any(fnmatchcase(place, each) for place in found)] == []


VALUES = {"Note", "LabeledScore", "Perturbation"}
"""Classes of results that people write themselves."""


def test_results_are_made_by_name() -> None:
    kinds = [
        value for name, value in public_names().items() if name.startswith(("evalstone.results.", "evalstone.live."))
    ]
    results: list[Any] = [kind for kind in kinds if dataclasses.is_dataclass(kind)]
    assert [
        (kind.__name__, field.name)
        for kind in results
        for field in dataclasses.fields(kind)
        if field.init and not field.kw_only and kind.__name__ not in VALUES
    ] == []


def imported(code: str) -> Iterator[tuple[str, str]]:
    """The modules of evalstone that code imports, each with the name that it imports from it; "" for the module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "evalstone":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "evalstone")


def not_public(code: str) -> list[str]:
    public = {*public_names(), *public_modules(), "evalstone.__version__", "evalstone.compat"}
    return [f"{module} {name}" for module, name in imported(code) if f"{module}.{name}".rstrip(".") not in public]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_a_page_imports_public_names_only(page: Path) -> None:
    assert [name for code in blocks(page, "python") for name in not_public(code)] == []


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.relative_to(ROOT)))
def test_an_example_imports_public_names_only(file: Path) -> None:
    assert not_public(file.read_text("utf-8")) == []


@pytest.mark.slow
def test_examples_in_docstrings_import_public_names_only() -> None:
    shown = re.compile(r"^ *(?:>>> )?(from evalstone[\w.]* import [\w, ]+|import evalstone[\w.]*)$", re.MULTILINE)
    documented = [
        (file, ast.get_docstring(node) or "")
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    deep = {file.name: not_public(code) for file, text in documented for code in shown.findall(text)}
    assert {name: found for name, found in deep.items() if found} == {}


def test_the_page_on_stability_lists_the_formats() -> None:
    formats = {value for value in vars(file_format).values() if isinstance(value, file_format.FileFormat)}
    assert {*re.findall(r"`([a-z_]+/\d)`", STABILITY.read_text("utf-8"))} == formats


def test_the_page_on_stability_lists_the_public_modules() -> None:
    rows = re.findall(r"^\| `(evalstone[\w.]*)` \|", STABILITY.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(public_modules())
