"""promptfoo's assertions as checks of a sample, as criteria for a judge, and as scorers of all samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalstone._core.guards import is_array, is_number, is_object
from evalstone.compat.configs.config_files import CODE, DATA, SCHEME, ConfigFiles, kind_of
from evalstone.compat.configs.gaps import Gaps
from evalstone.compat.configs.nunjucks import UnsupportedTemplate, as_text, rendered
from evalstone.compat.configs.yaml_files import read_yaml
from evalstone.compat.imports.promptfoo import KNOWN, RED_TEAM, SET
from evalstone.errors import ConfigError
from evalstone.scorers.other_systems import table
from evalstone.scorers.registry import parse_scorer

CRITERIA = frozenset(("llm-rubric", "model-graded-closedqa"))
"""The types whose value a judge says yes or no to."""
SCORERS: Mapping[str, str] = {
    "answer-relevance": "answer_relevancy",
    "context-faithfulness": "faithfulness",
    "context-relevance": "context_statement_relevancy",
    "context-recall": "context_recall",
    "factuality": "answer_correctness",
    "model-graded-factuality": "answer_correctness",
}
"""The types with a scorer of all samples."""
REFERENCED = frozenset(("context-recall", "factuality", "model-graded-factuality"))
"""Those of them whose value is the reference."""
COMPARABLE = frozenset(("context-faithfulness", "context-relevance", "context-recall"))
"""Those of them whose scores are shares of the same things, so that a threshold means the same."""
_CHECKED = frozenset(
    (
        *("contains", "icontains", "contains-all", "icontains-all", "contains-any", "icontains-any", "starts-with"),
        *("equals", "regex", "latency", "cost"),
    )
)
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\s", "D": "^0-9", "W": "^A-Za-z0-9_", "S": r"\S"}


@dataclass
class Converted:
    """What the assertions of a test become."""

    checks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    criteria: dict[str, bool] = field(default_factory=dict[str, bool])
    """What a judge says yes or no to, and whether the test fails by a no."""
    scorers: dict[str, float | None] = field(default_factory=dict[str, "float | None"])
    """The scorers of all samples, with the score that the test must reach."""
    gradings: list[str] = field(default_factory=list[str])
    """The criteria of `g-eval`, which are those of one scorer of all samples."""
    reference: str | None = None


@dataclass(frozen=True)
class Assertions:
    """Converts the assertions of a test.

    Attributes:
        files: The files of the configuration.
        variables: The variables of the test.
        place: The test, for the gaps.
        line: The line of the test, for errors.
        into: Where the checks and criteria go.
        has_calls: Whether a target is called, which latency and cost are of.
    """

    files: ConfigFiles
    gaps: Gaps
    variables: Mapping[str, Any]
    place: str
    line: int | None
    into: Converted
    has_calls: bool

    def add(self, assertion: object, checks: list[dict[str, Any]] | None = None) -> None:
        """Convert an assertion. checks: those of the set that it is in."""
        within = self.into.checks if checks is None else checks
        if not is_object(assertion) or not isinstance(kind := assertion.get("type"), str):
            self.gaps.add("an assertion", "it has no type", self.place)
            return
        if kind == SET:
            self._add_set(assertion, within)
            return
        base, inverted = kind.removeprefix("not-"), kind.startswith("not-")
        if used := [name for name in ("transform", "contextTransform") if assertion.get(name)]:
            self.gaps.add(kind, f"{used[0]} is code, which isn't run", self.place)
            return
        try:
            value = self._value(assertion.get("value"))
        except UnsupportedTemplate as error:
            self.gaps.add(kind, f"its value has a template with more than a name: {error}", self.place)
            return
        if value is _CODE:
            self.gaps.add(kind, "its value is code, which isn't run", self.place)
            return
        if base in CRITERIA or base in SCORERS or base == "g-eval":
            if inverted:
                self.gaps.add(kind, "a judged assertion can't be inverted; write a criterion that says it", self.place)
                return
            self._add_judged(base, value, assertion, in_set=checks is not None)
            return
        made = self._check(base, value, assertion, kind)
        if made is not None:
            self._append(within, made, assertion, kind, inverted=inverted)

    def _append(
        self,
        within: list[dict[str, Any]],
        made: dict[str, Any],
        assertion: Mapping[str, Any],
        kind: str,
        *,
        inverted: bool,
    ) -> None:
        try:
            parse_scorer(made)
        except ConfigError as error:
            self.gaps.add(kind, str(error), self.place)
            return
        entry = {**made, **({"invert": True} if inverted else {}), **self._weight_and_label(assertion)}
        within.append(entry)

    def _add_set(self, assertion: Mapping[str, Any], within: list[dict[str, Any]]) -> None:
        inner: list[dict[str, Any]] = []
        for each in assertion["assert"] if is_array(assertion.get("assert")) else ():
            self.add(each, inner)
        if inner:
            threshold = assertion.get("threshold")
            at_least = {"at_least": threshold} if is_number(threshold) else {}
            within.append({"checks": inner, **at_least, **self._weight_and_label(assertion)})

    def _weight_and_label(self, assertion: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        weight, metric = assertion.get("weight"), assertion.get("metric")
        if is_number(weight) and weight >= 0 and weight != 1:
            kept["weight"] = weight
        if isinstance(metric, str) and metric.strip():
            try:
                kept["label"] = rendered(metric, self.variables, self.files.limit)
            except UnsupportedTemplate:
                kept["label"] = metric
        return kept

    def _value(self, value: Any) -> Any:
        """The value of an assertion, with the content of its file and the variables of the test in it."""
        if isinstance(value, str) and value.startswith(SCHEME):
            if kind_of(value) in CODE:
                return _CODE
            path = self.files.path(value, self.line)
            if path.suffix.lower() in DATA:
                return self.files.data(path, self.line)
            return rendered(self.files.text(path, self.line).strip(), self.variables, self.files.limit)
        return self._filled(value)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return rendered(value, self.variables, self.files.limit)
        if is_array(value):
            return [self._filled(each) for each in value]
        if is_object(value):
            return {name: self._filled(each) for name, each in value.items()}
        return value

    def _add_judged(self, base: str, value: Any, assertion: Mapping[str, Any], *, in_set: bool) -> None:
        threshold, weight = assertion.get("threshold"), assertion.get("weight")
        counts = not (is_number(weight) and weight == 0)
        has_threshold = base in COMPARABLE and is_number(threshold) and 0 <= threshold <= 1
        unmapped = {
            "assert-set": in_set,
            "threshold": threshold is not None and not has_threshold,
            "weight": weight not in (None, 0, 1),
            "metric": assertion.get("metric") is not None,
        }
        for name in (name for name, is_gap in unmapped.items() if is_gap):
            self.gaps.add(f"{base}: {name}", _APART[name], self.place)
        if assertion.get("rubricPrompt"):
            self.gaps.add(f"{base}: rubricPrompt", "the prompt of the judge is evalstone's", self.place)
        text = as_text(value)
        if base in CRITERIA:
            if not text.strip():
                self.gaps.add(base, "it has no criterion", self.place)
            else:
                self.into.criteria[text] = counts or self.into.criteria.get(text, False)
            return
        if base == "g-eval":
            self.into.gradings.append("\n".join(map(as_text, value)) if is_array(value) else text)
            return
        if base in REFERENCED:
            if self.into.reference not in (None, text):
                self.gaps.add(base, "a sample has one reference, and another assertion has another one", self.place)
                return
            self.into.reference = text
        before = self.into.scorers.get(SCORERS[base])
        required = float(threshold) if counts and has_threshold and is_number(threshold) and threshold > 0 else before
        self.into.scorers[SCORERS[base]] = required if before is None or required is None else max(before, required)

    def _check(self, base: str, value: Any, assertion: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
        """The check that an assertion becomes; None, with a gap, if there is none."""
        threshold = assertion.get("threshold")
        if base in ("latency", "cost") and not self.has_calls:
            self.gaps.add(kind, "the answers are in the file, and no target is called", self.place)
            return None
        match base:
            case "contains" | "icontains" if (text := as_text(value)) and not is_array(value):
                return {"name": "contains", "expected": text, **({} if base == "icontains" else {"ignore_case": False})}
            case "contains-all" | "icontains-all" | "contains-any" | "icontains-any":
                if texts := [*_texts(value)]:
                    return _of_several(texts, every=base.endswith("all"), ignore_case=base.startswith("i"))
            case "starts-with" if isinstance(value, str) and value:
                return {"name": "regex", "pattern": rf"\A{re.escape(value)}"}
            case "equals" if is_object(value) or is_array(value):
                return {"name": "json_schema", "schema": {"const": value}}
            case "equals" if value is not None:
                return {"name": "exact_match", "expected": as_text(value), "ignore_case": False}
            case "regex" if isinstance(value, str) and value:
                return {"name": "regex", "pattern": python_pattern(value)}
            case "is-json" | "contains-json":
                if base == "contains-json":
                    why = "only the whole answer, or a fenced block around all of it, is read as JSON"
                    self.gaps.add(kind, why, self.place)
                fenced = {"fenced": True} if base == "contains-json" else {}
                schema = read_yaml(value, self.place) if isinstance(value, str) and value.strip() else value
                if is_object(schema) and schema:
                    return {"name": "json_schema", "schema": schema, **fenced}
                return {"name": "json_valid", **fenced}
            case "latency" if is_number(threshold):
                return {"name": "latency", "limit": threshold / 1000}
            case "cost" if is_number(threshold):
                return {"name": "cost", "limit": threshold}
            case _:
                pass
        mapped = base in _CHECKED
        self.gaps.add(kind, "it has no value, or one of another type" if mapped else _why_absent(base), self.place)
        return None


_CODE = object()
_APART = {
    "assert-set": "judged assertions are scored apart from the checks, and all of a sample count",
    "threshold": "the judge's scores are others, so that it means something else: set [pass_rate]",
    "weight": "all criteria of a sample count alike; those with the weight 0 are judged without counting",
    "metric": "its name is that of the scorer",
}
"""Why judged assertions are converted without a part of what they say."""


def _texts(value: Any) -> Iterator[str]:
    """The texts of a list, or those in a text that are separated by commas."""
    if isinstance(value, str):
        for match in re.finditer(r'\s*(?:"((?:[^"\\]|\\.|"")*)"|([^,]*))\s*(?:,|$)', value):
            quoted, plain = match[1], (match[2] or "").strip()
            text = plain if quoted is None else re.sub(r'\\(["\\])|""', lambda found: found[1] or '"', quoted)
            if text:
                yield text
    elif is_array(value):
        yield from map(as_text, value)


def _of_several(texts: list[str], *, every: bool, ignore_case: bool) -> dict[str, Any]:
    escaped = [re.escape(text) for text in texts]
    pattern = "(?s)" + "".join(rf"(?=.*{text})" for text in escaped) if every else "|".join(escaped)
    if every:
        pattern = pattern.replace("(?s)", r"(?s)\A", 1)
    return {"name": "regex", "pattern": pattern, **({"ignore_case": True} if ignore_case else {})}


def python_pattern(pattern: str) -> str:
    """A regular expression of JavaScript, without flags, in Python's syntax.

    `$` is the end only, digits and word characters are ASCII, and groups have names in Python's form. What Python can't
    read stays as it is, and is an error when it is compiled.
    """
    parts: list[str] = []
    in_class = False
    position = 0
    while position < len(pattern):
        char, following = pattern[position], pattern[position + 1 : position + 2]
        taken = 1
        if char == "\\" and following:
            taken = 2
            negated = following in "DW"
            if following == "k" and (name := re.match(r"<(\w+)>", pattern[position + 2 :])):
                parts.append(f"(?P={name[1]})")
                taken += name.end()
            elif following == "u" and re.match(r"[0-9a-fA-F]{4}", pattern[position + 2 :]):
                parts.append("\\u")
            elif following in "sS" or (following not in _CLASSES and following not in "/-"):
                parts.append(char + following)
            elif following in "/-":
                parts.append(re.escape(following))
            elif in_class and negated:
                parts.append(char + following)
            else:
                parts.append(_CLASSES[following] if in_class else f"[{_CLASSES[following]}]")
        elif in_class:
            in_class = char != "]"
            parts.append("\\[" if char == "[" else char)
        elif char == "[":
            in_class = True
            parts.append("[^" if following == "^" else "[")
            taken = 2 if following == "^" else 1
        elif char == "$":
            parts.append(r"\Z")
        elif pattern.startswith("(?<", position) and pattern[position + 3 : position + 4] not in ("=", "!"):
            parts.append("(?P<")
            taken = 3
        else:
            parts.append(char)
        position += taken
    return "".join(parts)


def _why_absent(kind: str) -> str:
    """Why a type of assertion isn't converted: what there is instead."""
    if kind.startswith(RED_TEAM):
        return "attacks aren't generated"
    if kind not in KNOWN:
        return "this type of assertion isn't known"
    row = next((each for each in table("promptfoo") if each.kind == "scorer" and each.theirs == kind), None)
    if row is None:
        return "it has no counterpart"
    nearest = f"nearest: {row.ours}" if row.ours else "it has no counterpart"
    return "; ".join(filter(None, (nearest, row.difference)))
