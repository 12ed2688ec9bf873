"""JSON Schemas of the formats: of files, and of what `--json` prints.

A class of results describes its JSON: the fields that its `to_dict` gives, with the annotations and docstrings of its
attributes, as on the page of JSON. Other objects are described in `file_shapes`. New fields and new kinds may appear
(docs/stability.md), so that objects are open and the words of a `Literal` are examples.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import tomllib
import types
import typing
from collections.abc import Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import file_shapes as shapes
import json_page

from evalstone import Run
from evalstone._core import file_format
from evalstone._core.file_format import FileFormat
from evalstone.ledger.copy import KINDS
from evalstone.results.alignment import Alignment, AlignmentEstimate
from evalstone.results.audit import Audit, Effect
from evalstone.results.calibration import Calibration
from evalstone.results.compare import Comparison, ScorerComparison
from evalstone.results.data_check import DataCheck, DataProblem
from evalstone.results.drift import DriftResult
from evalstone.results.estimate import Estimate
from evalstone.results.gate import Gate
from evalstone.results.judge_comparison import JudgeComparison
from evalstone.results.looks import Look
from evalstone.results.power_analysis import PowerAnalysis
from evalstone.results.several_runs import Experiment
from evalstone.results.summary import ScorerSummary
from evalstone.results.views.one_sample import OneSample
from evalstone.types import Note

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FORMATS: Mapping[FileFormat, type] = {
    file_format.RECORD_FORMAT: shapes.RecordLine,
    file_format.RUN_FORMAT: shapes.RunSummary,
    file_format.SAMPLE_FORMAT: shapes.SampleRow,
    file_format.LABEL_FORMAT: shapes.LabelRow,
    file_format.PLAN_FORMAT: shapes.PlanFile,
    file_format.IMPORT_FORMAT: shapes.Import,
    file_format.LOOK_FORMAT: Look,
    file_format.DATASET_EDITS_FORMAT: shapes.DatasetEdits,
    file_format.CALIBRATION_FORMAT: Calibration,
    file_format.ALIGNMENT_FORMAT: Alignment,
    file_format.JUDGES_FORMAT: JudgeComparison,
    file_format.TOOL_CALLS_FORMAT: shapes.ToolCalls,
    file_format.JUDGE_CALL_FORMAT: shapes.JudgeCallLine,
    file_format.TEST_SCORE_FORMAT: shapes.TestScore,
    file_format.AUDIT_FORMAT: Audit,
    file_format.DATA_CHECK_FORMAT: DataCheck,
    file_format.COMPARISON_FORMAT: Comparison,
    file_format.COUNTERPARTS_FORMAT: shapes.Counterparts,
    file_format.AUDIT_ESTIMATE_FORMAT: shapes.AuditEstimate,
    file_format.ESTIMATE_FORMAT: Estimate,
    file_format.ALIGNMENT_ESTIMATE_FORMAT: AlignmentEstimate,
    file_format.EXPERIMENT_ESTIMATE_FORMAT: shapes.ExperimentEstimate,
    file_format.EXPERIMENT_FORMAT: Experiment,
    file_format.GATE_FORMAT: Gate,
    file_format.DRIFT_FORMAT: DriftResult,
    file_format.LEDGER_FORMAT: shapes.LedgerContents,
    file_format.LIVE_COVERAGE_FORMAT: shapes.LiveCoverage,
    file_format.LIVE_DRIFT_FORMAT: shapes.LiveDriftResult,
    file_format.POWER_FORMAT: PowerAnalysis,
    file_format.SCORE_LIST_FORMAT: shapes.ScorePage,
    file_format.SCORED_SAMPLE_FORMAT: OneSample,
    file_format.SCORER_FORMAT: shapes.ScorerDescription,
}
"""The class that describes each format; the rows of a ledger are described by its tables."""
ROWS = file_format.LEDGER_ROW_FORMAT
WRITTEN: Mapping[Any, Any] = {
    Run: shapes.RunSummary,
    ScorerSummary: shapes.ScorerLine,
    DataProblem: shapes.Problem,
    datetime.datetime: str,
}
"""What a class is in JSON, where it isn't its own fields."""
TYPES: Mapping[tuple[type, str], Any] = {
    (OneSample, "sample"): shapes.SampleRow | None,
    (OneSample, "records"): list[shapes.RecordLine],
    (OneSample, "asked"): Mapping[str, Mapping[str, Mapping[str, shapes.Asked]]],
    (ScorerComparison, "slice"): shapes.SliceKey | None,
    (Gate, "run"): str,
    (Gate, "baseline"): str | None,
    (PowerAnalysis, "run"): str,
    (PowerAnalysis, "baseline"): str | None,
    (DriftResult, "before"): str,
    (DriftResult, "now"): str,
    (Effect, "family"): str,
    (Effect, "why"): str,
    (Effect, "direction"): int,
}
"""The types of fields that are no attributes, or another form of them."""
WORDS: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def schemas() -> Mapping[Path, str]:
    """The text of each schema, by its path. Raises KeyError or TypeError for a field that nothing describes."""
    made = {name: _Definitions().schema(name, kind) for name, kind in FORMATS.items()} | {ROWS: _rows()}
    return {path_of(name): json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in made.items()}


def path_of(name: FileFormat) -> Path:
    """The file of a format's schema: record-1.schema.json."""
    return SCHEMAS / f"{name.replace('/', '-')}.schema.json"


@cache
def _base() -> str:
    """The address of the schemas, which their names follow; "" until the package names its documentation."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    site = project.get("urls", {}).get("Documentation", "")
    return f"{site.rstrip('/')}/schemas/" if site else ""


def _head(name: FileFormat, description: str) -> dict[str, Any]:
    return {
        "$schema": DIALECT,
        "$id": f"{_base()}{path_of(name).name}",
        "title": str(name),
        "description": description,
    }


def _rows() -> dict[str, Any]:
    """The schema of the rows of a ledger: by type, the columns of a table."""
    kinds: list[dict[str, Any]] = []
    for kind, table in KINDS.items():
        columns: dict[str, Any] = {}
        for name, (column, nullable) in table.types.items():
            is_data = name in ("metadata", "body")
            words = [WORDS[str if column is bytes else column], *["null"] * nullable]
            columns[name] = {} if is_data else {"type": words if nullable else words[0]}
        then = {"properties": columns, "required": list(columns)}
        kinds.append({"if": {"properties": {"type": {"const": kind}}}, "then": then})
    return {
        **_head(ROWS, "A row of a ledger, as `ledger export` writes it."),
        "type": "object",
        "properties": {"format": {"const": str(ROWS)}, "type": {"type": "string", "examples": list(KINDS)}},
        "required": ["format", "type"],
        "allOf": kinds,
    }


class _Definitions:
    """The schemas of the classes in one format."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}

    def schema(self, name: FileFormat, kind: type) -> dict[str, Any]:
        body = self._object(kind)
        body["properties"] = {"format": {"const": str(name)}, **body["properties"]}
        body["required"] = ["format", *(each for each in body["required"] if each != "format")]
        definitions = {"$defs": dict(sorted(self.known.items()))} if self.known else {}
        return {**_head(name, body.pop("description")), **body, **definitions}

    def _object(self, kind: type) -> dict[str, Any]:
        """An object with the fields of a class."""
        description = " ".join((json_page.first_line(kind)).split())
        properties: dict[str, Any] = {}
        for name in (name for name in json_page.fields_of(kind) if name != "format"):
            owner = json_page.owner_of(kind, name)
            hint = TYPES[kind, name] if (kind, name) in TYPES else json_page.type_of(kind, owner, name)
            if hint is None:
                raise TypeError(f"nothing says what type {kind.__name__}.{name} has")
            meaning = _meanings(kind).get(name) or json_page.meaning_of(kind, owner, name)
            properties[name] = {**self.of(hint), **({"description": meaning} if meaning else {})}
        return {
            "description": description,
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name not in _optional(kind)],
        }

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of a type."""
        hint = WRITTEN.get(hint, hint)
        if hint in (Any, object, Hashable):
            return {}
        if hint in WORDS:
            return {"type": WORDS[hint]}
        if isinstance(hint, typing.NewType):
            return self.of(hint.__supertype__)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self._words(arguments)
        if origin in (Union, types.UnionType):
            return self._either([self.of(each) for each in arguments])
        if origin is tuple and arguments[-1] is not Ellipsis:
            items = [self.of(each) for each in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            values = self.of(arguments[1])
            return {"type": "object", **({"additionalProperties": values} if values else {})}
        if isinstance(origin, type) and issubclass(origin, typing.Collection):
            return {"type": "array", "items": self.of(arguments[0])}
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            if hint is Note:
                return self._note()
            if hint.__name__ not in self.known:
                self.known[hint.__name__] = {}  # a class may contain itself
                self.known[hint.__name__] = self._object(hint)
            return {"$ref": f"#/$defs/{hint.__name__}"}
        raise TypeError(f"{hint!r} has no JSON form here")

    def _note(self) -> dict[str, Any]:
        self.known["Note"] = {
            "description": "What a result says besides its numbers. Other fields depend on the kind.",
            "type": "object",
            "properties": {
                "kind": {"type": "string"},
                "severity": {"type": "string", "examples": ["fact", "caution", "warning"]},
                "scorer": {
                    "type": "string",
                    "description": "The scorer's title; absent if the note is about the whole result",
                },
            },
            "required": ["kind", "severity"],
        }
        return {"$ref": "#/$defs/Note"}

    @staticmethod
    def _words(words: tuple[Any, ...]) -> dict[str, Any]:
        kinds = list(dict.fromkeys(WORDS[type(each)] for each in words))
        return {"type": kinds[0] if len(kinds) == 1 else kinds, "examples": [*words]}

    @staticmethod
    def _either(options: list[dict[str, Any]]) -> dict[str, Any]:
        """One of several schemas. A nullable one stays a single schema where it can."""
        if {} in options:
            return {}
        several = list({json.dumps(each): each for each in options}.values())
        if all(each.keys() == {"type"} for each in several):
            return {"type": [each["type"] for each in several]}
        if len(several) == 2 and {"type": "null"} in several:
            (other,) = (each for each in several if each != {"type": "null"})
            if isinstance(other.get("type"), str):
                return {**other, "type": [other["type"], "null"]}
        return {"anyOf": several}


def _optional(kind: type) -> set[str]:
    """The fields that may be absent."""
    if not issubclass(kind, shapes.Shape):
        return set()
    return {each.name for each in dataclasses.fields(kind) if each.default is not dataclasses.MISSING}  # pyright: ignore


@cache
def _meanings(kind: type) -> Mapping[str, str]:
    """What the fields of a shape mean, by the class and the page that it names, and by its own docstrings."""
    found: dict[str, str] = {}
    if not issubclass(kind, shapes.Shape):
        return found
    if kind.documented is not None:
        found |= {name: json_page.sentence(text) for name, text in json_page.described(kind.documented).items()}
    page, before = kind.page
    if page:
        text = (ROOT / "docs" / page).read_text("utf-8").partition(f"\n{before}\n")[2]
        for row in text[text.index("\n|") :].lstrip("\n").partition("\n\n")[0].splitlines()[2:]:
            cells = re.split(r"(?<!\\)\|", row)[1:-1]
            meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cells[-1].strip())
            found |= dict.fromkeys(re.findall(r"`(\w+)`", cells[0]), meaning)
    return found | {name: json_page.sentence(text) for name, text in json_page.described(kind).items()}
