"""A configuration of promptfoo as a project: `evalstone.toml`, its dataset, and a page of what has no counterpart."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalstone._core.guards import is_array, is_number, is_object
from evalstone._core.project_files import CONFIG, RESULTS
from evalstone._core.redaction import is_credential
from evalstone.compat.configs.assertions import COMPARABLE, SCORERS, Assertions, Converted
from evalstone.compat.configs.nunjucks import (
    VALUE,
    UnsupportedTemplate,
    as_text,
    converted,
    names_in,
    rendered,
    written,
)
from evalstone.compat.configs.promptfoo_config import MOST_TESTS, Config, Prompt, Test, read_config
from evalstone.compat.configs.providers import ECHO, http_target_of, model_of, target_of
from evalstone.compat.configs.yaml_files import read_yaml
from evalstone.compat.imports.cases import as_metadata, case_fields
from evalstone.datasets.cells import storable
from evalstone.errors import DataError
from evalstone.scorers.checks.own import OWN as CHECKS
from evalstone.types.criteria import OWN_RUBRIC as CRITERIA
from evalstone.types.criteria import RUBRICS

DATA, GAPS = "cases.jsonl", "not-converted.md"
JUDGE = "openai/gpt-5.1"
"""The judge if the configuration names none that evalstone knows."""
MOST_TARGETS = 1_000
_OWN_ENTRIES = frozenset((CHECKS, *(path.partition(".")[0] for path in RUBRICS)))
_MOST_LABELS = 20
_RAW = re.compile(r"[^'\x00-\x08\x0b-\x1f\x7f]*")


@dataclass(frozen=True)
class Project:
    """The files of a project.

    Attributes:
        files: Their texts by name.
        samples: How many samples the dataset has.
        targets: How many targets there are.
        scorers: The scorers, as evalstone.toml has them.
        gaps: A line for each thing that has no counterpart.
        has_answers: Whether the samples have answers, so that no target is needed.
        judged: Whether a scorer asks the judge.
    """

    files: Mapping[str, str]
    samples: int
    targets: int
    scorers: Sequence[Any]
    gaps: Sequence[str]
    has_answers: bool
    judged: bool


def project_of(path: Path) -> Project:
    """The project of a configuration of promptfoo. Nothing that it names is run, and nothing is fetched.

    Raises:
        DataError: The configuration, or a file that it names, can't be read; with the file and the line.
        MissingDependency: PyYAML is not installed.
    """
    return _Making(read_config(path)).project()


@dataclass(frozen=True)
class _Target:
    """A prompt in our form."""

    label: str
    system: str
    prompt: str


@dataclass(frozen=True)
class _Gates:
    """What makes a run fail."""

    required: list[str]
    """The scorers that every sample must pass."""
    pass_rates: dict[str, list[float]]
    """Scorers, with the score that all samples must reach."""


class _Making:
    def __init__(self, config: Config) -> None:
        self.config, self.gaps, self.files = config, config.gaps, config.files
        if not config.tests:
            raise DataError(
                f"{config.files.config}: no test can be read: {'; '.join(config.gaps.lines()) or 'it has none'}"
            )
        _ask_constant_prompts(config)
        self.cases = [case_fields(self._named(test.variables)) for test in config.tests]
        self.placeholders: dict[str, str] = {}

    @property
    def echoes(self) -> bool:
        """Whether the answers are the prompt, since the only provider is `echo`."""
        return [each["id"] for each in self.config.providers] == [ECHO] and len(self.config.prompts) == 1

    def project(self) -> Project:
        tests, cases = self.config.tests, self.cases
        results = [self._assertions(test) for test in tests]
        self._decorate()
        prompts = [made for prompt in self.config.prompts if (made := self._prompt(prompt)) is not None]
        targets = self._targets(prompts)
        if self.echoes:
            self._outputs()
        for test, case, result in zip(tests, cases, results, strict=True):
            self._add(test, case, result)
        has_answers = bool(cases) and all("output" in case for case in cases)
        scorers = self._scorers(results)
        gates = self._gates(results, scorers)
        judged = any(result.criteria or result.scorers or (result.gradings and scorers) for result in results)
        texts = {
            CONFIG: self._toml(targets, scorers, gates, judged=judged, has_answers=has_answers),
            DATA: "".join(json.dumps(_ordered(case), ensure_ascii=False) + "\n" for case in cases),
        }
        if len(self.gaps):
            texts[GAPS] = self.gaps.markdown(self.files.config.name)
        return Project(texts, len(cases), len(targets), scorers, [*self.gaps.lines()], has_answers, judged)

    # ---- Samples ----

    def _named(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The variables, without the names of entries that evalstone's scorers read."""
        return {f"{name}_" if name in _OWN_ENTRIES else name: value for name, value in variables.items()}

    def _placeholder(self, name: str) -> str:
        """The placeholder of a variable: the input, or an entry of the metadata, which every sample then has."""
        if name in self.placeholders:
            return self.placeholders[name]
        first, _, path = name.partition(".")
        own = f"{first}_" if first in _OWN_ENTRIES else first
        values = [test.variables.get(first) for test in self.config.tests]
        is_input = not path and all(
            isinstance(value, str) and case.get("input") == value and own not in case["metadata"]
            for value, case in zip(values, self.cases, strict=True)
        )
        entry = as_metadata(own)
        for value, case in zip(values, self.cases, strict=True):
            if not is_input:
                self.files.limit.count_value(value)
                case["metadata"][entry] = storable(value) if isinstance(value, str | dict) else written(value)
        self.placeholders[name] = "input" if is_input else f"metadata.{entry}" + (f".{path}" if path else "")
        return self.placeholders[name]

    def _assertions(self, test: Test) -> Converted:
        into = Converted()
        calls = test.output is None and not self.echoes
        converter = Assertions(self.files, self.gaps, test.variables, test.place, test.line, into, has_calls=calls)
        for assertion in test.assertions:
            converter.add(assertion)
        if test.threshold is not None and (into.criteria or any(into.scorers.values())):
            self.gaps.add("threshold of a test", "it is for the checks; judged assertions are scored apart", test.place)
        if into.criteria and not any(into.criteria.values()):
            why = "no criterion of the test has a weight, and if none counts, all of them do"
            self.gaps.add("llm-rubric: weight", why, test.place)
        return into

    def _add(self, test: Test, case: dict[str, Any], result: Converted) -> None:
        """Put into a sample what its test expects."""
        metadata: dict[str, Any] = case["metadata"]
        about = {"description": test.description or None, **test.metadata}
        for name, value in about.items():
            if value is not None:
                own = f"{name}_" if name in _OWN_ENTRIES else name
                metadata.setdefault(as_metadata(own), storable(value))
        if result.checks:
            checks: Any = result.checks
            if test.threshold is not None:
                checks = {CHECKS: checks, "at_least": test.threshold}
            metadata[CHECKS] = storable(checks)
        if result.criteria:
            metadata[CRITERIA] = [
                text if counts else {"description": text, "required": False} for text, counts in result.criteria.items()
            ]
        if result.reference is not None:
            case["reference"] = result.reference
        if test.output is not None:
            case["output"] = test.output

    # ---- Prompts and targets ----

    def _decorate(self) -> None:
        """Put the prefix and the suffix of all tests into the prompts."""
        prefixes, suffixes = ({getattr(test, name) for test in self.config.tests} for name in ("prefix", "suffix"))
        if len(prefixes) > 1 or len(suffixes) > 1:
            self.gaps.add(
                "options.prefix, options.suffix", "they differ between tests, and prompts are for all", "tests"
            )
        elif prefixes | suffixes != {""}:
            prefix, suffix = prefixes.pop(), suffixes.pop()
            prompts = self.config.prompts
            prompts[:] = [Prompt(each.label, f"{prefix}{each.text}{suffix}", each.place) for each in prompts]

    def _prompt(self, prompt: Prompt) -> _Target | None:
        """A prompt in our form; None, with a gap, if it has none."""
        what = f"the prompt {' '.join(prompt.label.split())[:80] or 'without a label'}"
        messages = _messages(prompt)
        roles = [role for role, _ in messages]
        if roles not in (["user"], ["system", "user"], ["developer", "user"]):
            self.gaps.add(what, "a chat is a system and a user message; put other turns into the dataset", prompt.place)
            return None
        user, system = messages[-1][1], messages[0][1] if len(messages) > 1 else ""
        try:
            names = names_in(user)
            names_in(system)
        except UnsupportedTemplate as error:
            self.gaps.add(what, f"it has a template with more than a name: {error}", prompt.place)
            return None
        if not names:
            self.gaps.add(what, "it has no variable, so that it asks all samples alike", prompt.place)
            return None
        made = converted(user, self._placeholder)
        return _Target(prompt.label, converted(system, self._placeholder), "" if made == "{input}" else made)

    def _targets(self, prompts: Sequence[_Target]) -> list[dict[str, Any]]:
        targets: list[dict[str, Any]] = []
        known: dict[str, str] = {}
        """The names of the targets by what makes them another one."""
        if (number := len(self.config.providers) * len(prompts)) > MOST_TARGETS:
            raise DataError(
                f"{self.files.config}: {number:,} targets, one for each provider and prompt; at most {MOST_TARGETS:,} "
                "are read"
            )
        for provider in self.config.providers:
            place = f"line {provider['line']}"
            identity: str = provider["id"]
            if identity == ECHO:
                if not self.echoes:
                    target_of(provider, self.gaps, place)
                continue
            is_http = identity.startswith(("http://", "https://")) or identity in ("http", "https")
            settings = None if is_http else target_of(provider, self.gaps, place)
            for prompt in prompts:
                texts = {"system": prompt.system, "prompt": prompt.prompt}
                if is_http and prompt.system:
                    self.gaps.add(f"the prompt {prompt.label}", "a target by HTTP gets one text, and no chat", place)
                    continue
                if is_http:
                    made = http_target_of(provider, prompt.prompt or "{input}", self._placeholder, self.gaps, place)
                else:
                    made = settings and {**settings, **{name: text for name, text in texts.items() if text}}
                if made is not None:
                    label = as_text(provider.get("label")) or identity
                    name = " · ".join(filter(None, (label, prompt.label if len(prompts) > 1 else "")))
                    if (same := known.get(distinct := _distinct(made))) is not None:
                        why = f"with what is taken over of it, it is the same as {same}, which is asked once"
                        self.gaps.add(f"the provider {name}", why, place)
                        continue
                    known[distinct] = _unique(" ".join(name.split())[:80], known.values())
                    targets.append({"name": known[distinct], **made})
        return targets

    def _outputs(self) -> None:
        """Put the prompt, with the variables in it, into the samples as their answers."""
        prompts = self.config.prompts
        for test, case in zip(self.config.tests, self.cases, strict=True):
            try:
                case["output"] = rendered(prompts[0].text, test.variables, self.files.limit)
            except UnsupportedTemplate:
                return  # the gap of the prompt says it

    # ---- Scorers ----

    def _scorers(self, results: Sequence[Converted]) -> list[Any]:
        scorers: list[Any] = []
        if any(result.checks for result in results):
            scorers.append("sample_checks")
        labels = dict.fromkeys(label for result in results for label in _labels(result.checks))
        if len(labels) > _MOST_LABELS:
            why = f"evalstone.toml has scorers for the first {_MOST_LABELS} names"
            self.gaps.add(f"{len(labels):,} named metrics", why, "metric")
        names = [*labels][:_MOST_LABELS]
        scorers += [{"name": "sample_checks", "label": label, "share": True} for label in names]
        if any(result.criteria for result in results):
            scorers.append("rubric")
        for name in dict.fromkeys(name for result in results for name in result.scorers):
            if not all(name in result.scorers for result in results):
                self.gaps.add(
                    name, "it scores all samples that have what it needs, not only those of some tests", "scorers"
                )
            scorers.append(name)
        gradings = [tuple(result.gradings) for result in results]
        if any(gradings):
            if len({*gradings}) == 1:
                scorers += [{"name": "geval", "text": text} for text in gradings[0]]
            else:
                why = "its criteria differ between tests, and geval has one for all samples"
                for test, each in zip(self.config.tests, gradings, strict=True):
                    if each:
                        self.gaps.add("g-eval", why, test.place)
        return scorers

    def _judge(self, results: Sequence[Any]) -> str:
        for grader in results:
            identity = grader.get("id") if is_object(grader) else grader
            if isinstance(identity, str) and (model := model_of(identity)) is not None:
                return model
        return JUDGE

    def _gates(self, results: Sequence[Converted], scorers: Sequence[Any]) -> _Gates:
        """What makes a run fail, as a test makes an evaluation of promptfoo fail."""
        required = ["sample_checks"] if "sample_checks" in scorers else []
        with_criteria = [each for each in zip(self.config.tests, results, strict=True) if each[1].criteria]
        if with_criteria and all(
            test.threshold is None and any(result.criteria.values()) for test, result in with_criteria
        ):
            required.append("rubric")
        pass_rates: dict[str, list[float]] = {}
        for name in (SCORERS[kind] for kind in sorted(COMPARABLE)):
            reached = [result.scorers.get(name) for result in results]
            lowest = sorted({each for each in reached if each is not None})
            if not lowest or any(test.threshold is not None for test in self.config.tests):
                continue
            if len(lowest) == 1 and None not in reached:
                pass_rates[name] = [lowest[0], 1.0]
            else:
                why = "it differs between tests, and [pass_rate] has one for all samples"
                self.gaps.add(f"threshold of {name}", why, "scorers")
        return _Gates(required, pass_rates)

    def _toml(
        self,
        targets: Sequence[dict[str, Any]],
        scorers: Sequence[Any],
        gates: _Gates,
        *,
        judged: bool,
        has_answers: bool,
    ) -> str:
        config = self.config
        lines = [f"# Made of {config.files.config.name} of promptfoo by evalstone import."]
        if len(self.gaps):
            lines.append(f"# {GAPS} says what has no counterpart.")
        if config.description.strip():
            lines.append(f"name = {_value(' '.join(config.description.split())[:200])}")
        if config.tags:
            lines.append(f"tags = {_value([*config.tags])}")
        lines.append(f"data = {_value(DATA)}")
        if not scorers:
            lines.append("# No assertion has a counterpart: name scorers, or use --scorer.")
        lines.append(
            "scorers = [" + "".join(f"\n  {_value(each)}," for each in scorers) + "\n]" if scorers else "scorers = []"
        )
        if judged:
            graders = [config.grader, *(each for test in config.tests for each in _graders(test.assertions))]
            lines.append(f"judge = {_value(self._judge(graders))}")
        if config.repeat > 1 and not has_answers:
            lines.append(f"trials = {config.repeat}")
        lines.append(f"out = {_value(RESULTS)}")
        if has_answers or len(targets) == 1:
            if gates.required:
                lines.append(f"require = {_value(gates.required)}   # in every sample")
            if gates.pass_rates:
                lines.append('alpha = "none"   # as in promptfoo: shares of these samples, without a test')
                lines.append("\n[pass_rate]")
                lines += [f"{name} = {_value(share)}" for name, share in gates.pass_rates.items()]
        if len(targets) == 1 and not has_answers:
            lines.append("\n[target]")
            lines += [f"{name} = {_value(value)}" for name, value in targets[0].items() if name != "name"]
        elif targets and not has_answers:
            inner = "".join(f"\n  {_value(each)}," for each in targets)
            lines += ["\n[experiment]", f"targets = [{inner}\n]"]
        return "\n".join(lines) + "\n"


def _ask_constant_prompts(config: Config) -> None:
    """If no prompt has a variable, make each of them what is asked: a sample for each test and prompt."""
    if not all(_is_constant(prompt) for prompt in config.prompts):
        return
    number = len(config.tests) * len(config.prompts)
    if number > MOST_TESTS:
        raise DataError(
            f"{config.files.config}: {number:,} tests, one for each prompt; at most {MOST_TESTS:,} are read"
        )
    config.files.limit.count(len(config.tests) * sum(len(prompt.text) + VALUE for prompt in config.prompts))
    config.tests[:] = [
        replace(
            test,
            variables={**test.variables, "prompt": f"{test.prefix}{prompt.text}{test.suffix}"},
            prefix="",
            suffix="",
        )
        for test in config.tests
        for prompt in config.prompts
    ]
    config.prompts[:] = [Prompt("", "{{prompt}}", config.prompts[0].place)]


def _is_constant(prompt: Prompt) -> bool:
    messages = _messages(prompt)
    try:
        return [role for role, _ in messages] == ["user"] and not names_in(messages[0][1])
    except UnsupportedTemplate:
        return False


def _messages(prompt: Prompt) -> list[tuple[str, str]]:
    """The roles and texts of a prompt: of a chat in JSON or YAML, its messages; of a text, one message."""
    text = prompt.text.strip()
    if text.startswith(("[", "- role:")):
        try:
            value = json.loads(text) if text.startswith("[") else read_yaml(text, prompt.place)
        except (ValueError, DataError):
            return [("user", prompt.text)]
        if is_array(value) and value and all(is_object(each) and isinstance(each.get("role"), str) for each in value):
            texts = [_content(each.get("content")) for each in value]
            known = [(each["role"], text) for each, text in zip(value, texts, strict=True) if text is not None]
            return known if len(known) == len(texts) else []
    return [("user", prompt.text)]


def _content(value: Any) -> str | None:
    """The text of a message; None if it has other parts than text."""
    if isinstance(value, str):
        return value
    if is_array(value) and all(is_object(part) and isinstance(part.get("text"), str) for part in value):
        return "\n".join(part["text"] for part in value)
    return None


def _labels(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    found: list[str] = []
    for check in checks:
        found += [check["label"]] if "label" in check else []
        found += _labels(check.get(CHECKS, ()))
    return found


def _graders(assertions: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for each in assertions:
        if is_object(each):
            found += [each["provider"]] if each.get("provider") else []
            found += _graders(each["assert"]) if is_array(each.get("assert")) else []
    return found


def _distinct(target: Mapping[str, Any]) -> str:
    """What makes a target another one: two that only differ in their keys are one system."""
    others = {name: value for name, value in target.items() if name not in ("api_key", "headers")}
    headers = {name: text for name, text in target.get("headers", {}).items() if not is_credential(name)}
    return json.dumps({**others, "headers": headers}, sort_keys=True)


def _unique(name: str, taken: Collection[str]) -> str:
    number, first = 1, name
    while name in taken:
        number += 1
        name = f"{first} ({number})"
    return name


def _ordered(case: Mapping[str, Any]) -> dict[str, Any]:
    order = ("input", "output", "reference", "context", "instructions", "metadata")
    return {name: case[name] for name in order if name in case and case[name] not in (None, {})}


def _value(value: Any) -> str:
    """A value in TOML."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return repr(value)
    if is_array(value):
        return f"[{', '.join(map(_value, value))}]"
    if is_object(value):
        inner = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items() if each is not None)
        return f"{{ {inner} }}" if inner else "{}"
    return _text(as_text(value))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _text(name)


def _text(text: str) -> str:
    if "\n" in text and _RAW.fullmatch(text.replace("\r\n", "\r")) and "\r" not in text:
        return f"'''\n{text}'''"
    escaped = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return re.sub(r"[\ud800-\udfff]", "\ufffd", escaped)
