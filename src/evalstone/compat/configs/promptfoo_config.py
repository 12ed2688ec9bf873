"""A configuration of promptfoo, as it is written: its prompts, providers and tests, with all files that it names.

Nothing in it is run: prompts, providers, variables and assertions in code are gaps.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, NamedTuple

from evalstone._core.display import excerpt, listed, quoted
from evalstone._core.guards import is_array, is_number, is_object
from evalstone.compat.configs.config_files import CODE, DATA, MOST_FILES, NOT_TEXT, SCHEME, YAML, ConfigFiles, kind_of
from evalstone.compat.configs.gaps import Gaps
from evalstone.compat.configs.nunjucks import UnsupportedTemplate, as_text, rendered
from evalstone.compat.configs.yaml_files import MOST_VALUES, TOO_MUCH, Items, Table, line_of, read_yaml, size_of
from evalstone.compat.imports.promptfoo import KNOWN
from evalstone.errors import DataError

MOST_TESTS = 100_000
_MOST_REFERENCES = 50
_MOST_ROUNDS = 5
"""The most times that variables are filled into each other."""
_PROMPT_FILE = re.compile(r"[^\n{}]+\.(?:txt|md|j2|json|jsonl|ya?ml|csv|py|[cm]?js|[cm]?ts|sh|rb)(?::\w+)?")
_EXPECTED = re.compile(
    rf"(?s)(?P<type>(?:not-)?(?:{'|'.join(sorted(map(re.escape, KNOWN), key=len, reverse=True))}))"
    r"(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?"
)
_WITH_THRESHOLD = frozenset(
    (
        *("answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance", "cost"),
        *("latency", "levenshtein", "perplexity", "perplexity-score", "rouge-n", "similar", "starts-with"),
    )
)
_PARTS = ("prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "redteam")
"""What makes a mapping a configuration."""
_READ = (
    *("description", "prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "evaluateOptions"),
    *("assertionTemplates", "tags", "$schema", "outputPath", "commandLineOptions", "writeLatestResults"),
)


@dataclass(frozen=True)
class Prompt:
    """A prompt: a text, or the messages of a chat, each with its role and text."""

    label: str
    text: str
    place: str


@dataclass
class Test:
    """A test, with the values of one combination of its variables."""

    place: str
    line: int | None
    variables: dict[str, Any]
    assertions: list[Any]
    description: str = ""
    threshold: float | None = None
    output: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    prefix: str = ""
    suffix: str = ""


@dataclass
class Config:
    """What a configuration says."""

    files: ConfigFiles
    gaps: Gaps
    description: str
    tags: tuple[str, ...]
    prompts: list[Prompt]
    providers: list[dict[str, Any]]
    """Tables with an `id`, and perhaps a `label` and a `config`."""
    tests: list[Test]
    repeat: int
    grader: Any
    """The provider of the graders of all tests."""


def read_config(path: Path) -> Config:
    """What a configuration says. Raises DataError, with the file and the line, for one that can't be read."""
    files, gaps = ConfigFiles(path), Gaps()
    root = read_yaml(files.text(path, None), str(path))
    if not isinstance(root, Table):
        raise DataError(f"{path}: a configuration is a mapping with prompts, providers and tests")
    root = _dereferenced(root, root, files, {})
    if not any(name in root for name in _PARTS):
        raise DataError(f"{path}: no configuration of promptfoo: it has none of {listed(_PARTS)}")
    return _Reading(files, gaps, root).config()


def _dereferenced(value: Any, root: Table, files: ConfigFiles, sizes: dict[int, int], depth: int = 0) -> Any:
    """The value with what each `$ref: "#/…"` in it refers to in place of it.

    sizes: How many values each of those by ID that have it are, with everything written out.
    """
    if depth > _MOST_REFERENCES:
        raise DataError(f"{files.place(line_of(value))}a $ref refers to itself, or they are nested too deeply")
    if not isinstance(value, Table | Items) or id(value) in sizes:
        return value
    if isinstance(value, Table):
        if isinstance(reference := value.get("$ref"), str) and (reference.startswith("#/") or len(value) == 1):
            return _dereferenced(_at(root, reference, value, files), root, files, sizes, depth + 1)
        value.update({name: _dereferenced(inner, root, files, sizes, depth + 1) for name, inner in value.items()})
    else:
        value[:] = [_dereferenced(inner, root, files, sizes, depth + 1) for inner in value]
    inside = value.values() if isinstance(value, Table) else value
    size = 1 + sum(sizes.get(id(inner)) or size_of(inner) for inner in inside)
    if size > MOST_VALUES:
        raise DataError(f"{files.place(value.line)}with its references written out, it has {TOO_MUCH}")
    sizes[id(value)] = size
    return value


def _at(root: Table, reference: str, table: Table, files: ConfigFiles) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ("",):
        found = found.get(part) if isinstance(found, Table) else None
    if found is None:
        problem = "is no part of the configuration, such as #/assertionTemplates/polite"
        raise DataError(f"{files.place(line_of(table, '$ref'))}$ref: {quoted(reference)} {problem}")
    return found


class _Entry(NamedTuple):
    """A test as the configuration or one of its files has it."""

    test: Mapping[str, Any]
    place: str
    """What gaps call it."""
    line: int | None
    """Its line in the configuration, or that of the file that it is in."""


@dataclass
class _Reading:
    files: ConfigFiles
    gaps: Gaps
    root: Table
    open_files: list[Path] = field(default_factory=list[Path])
    """The files that are being read, each named by the one before it."""
    n_files: int = 0

    def config(self) -> Config:
        root = self.root
        default = self._table(root.get("defaultTest"), "defaultTest")
        options = _table_in(default, "options")
        self._settings(default)
        prompts = [*self._prompts(root["prompts"])] if root.get("prompts") else []
        tests = [*self._tests(default)]
        tags = root.get("tags")
        description = root.get("description")
        repeat = _table_in(root, "evaluateOptions").get("repeat", 1)
        return Config(
            files=self.files,
            gaps=self.gaps,
            description=description if isinstance(description, str) else "",
            tags=tuple(f"{name}={as_text(value)}" for name, value in tags.items()) if is_object(tags) else (),
            prompts=prompts or [Prompt("", "{{prompt}}", "the default prompt")],
            providers=[*self._providers()],
            tests=tests,
            repeat=repeat if isinstance(repeat, int) and repeat > 0 else 1,
            grader=options.get("provider") or default.get("provider"),
        )

    def _settings(self, default: Mapping[str, Any]) -> None:
        """Note the settings that aren't taken over."""
        for name in self.root:
            if name not in _READ:
                line = line_of(self.root, name)
                self.gaps.add(name, "this setting isn't taken over", f"line {line}" if line else "the configuration")
        for name in _table_in(self.root, "evaluateOptions"):
            if name != "repeat":
                why = "this setting isn't taken over; options of evalstone run are keys of evalstone.toml"
                self.gaps.add(f"evaluateOptions.{name}", why, "evaluateOptions")
        self._options(default, "defaultTest")

    def _options(self, test: Mapping[str, Any], place: str) -> None:
        for name in _table_in(test, "options"):
            if name in ("transform", "postprocess", "transformVars"):
                self.gaps.add(f"options.{name}", "it is code, which isn't run: answers are scored as they are", place)
            elif name not in ("provider", "prefix", "suffix", "disableVarExpansion", "disableDefaultAsserts", "repeat"):
                self.gaps.add(f"options.{name}", "this setting isn't taken over", place)
        if test.get("assertScoringFunction"):
            self.gaps.add("assertScoringFunction", "it is code, which isn't run", place)

    def _table(self, value: Any, what: str) -> dict[str, Any]:
        """A mapping, or that in the file that a text names."""
        if isinstance(value, str) and value.startswith(SCHEME):
            line = line_of(self.root, what)
            path = self.files.path(value, line)
            value = self.files.data(path, line)
        return value if is_object(value) else Table()

    @contextmanager
    def _opened(self, path: Path, line: int | None) -> Generator[None]:
        """While what a file names is read. Raises DataError for a file that names itself, and for too many files."""
        self.n_files += 1
        if path in self.open_files:
            raise DataError(f"{self.files.place(line)}{self.files.shown(path)} names itself")
        if self.n_files > MOST_FILES:
            raise DataError(f"{self.files.place(line)}more than {MOST_FILES:,} files")
        self.open_files.append(path)
        yield
        self.open_files.pop()

    # ---- Prompts ----

    def _prompts(self, value: Any) -> Iterator[Prompt]:
        if isinstance(value, Table) and not {"id", "raw"} & value.keys():
            for name, label in value.items():  # an old form: file to label
                yield from self._prompt(name, as_text(label), line_of(value, name))
            return
        for number, each in enumerate(value if is_array(value) else [value]):
            line = line_of(value, number) or line_of(self.root, "prompts")
            if isinstance(each, str):
                yield from self._prompt(each, "", line)
            elif is_object(each) and isinstance(text := each.get("raw") or each.get("id"), str):
                yield from self._prompt(text, as_text(each.get("label")), line)
            elif is_object(each) or is_array(each):
                yield Prompt(f"prompt {number + 1}", json.dumps(each), f"line {line}")
            else:
                raise DataError(
                    f"{self.files.place(line)}prompts: a prompt is a text or a table with id, raw and label"
                )

    def _prompt(self, text: str, label: str, line: int | None) -> Iterator[Prompt]:
        place = f"line {line}"
        if text.startswith(("exec:", "langfuse://", "portkey://", "helicone://")):
            self.gaps.add(f"the prompt {excerpt(text)}", "it is made by a command or a service", place)
            return
        if not (text.startswith(SCHEME) or _PROMPT_FILE.fullmatch(text)):
            yield Prompt(label or text, text, place)
            return
        if kind_of(text) in CODE:
            self.gaps.add(f"the prompt {excerpt(text)}", "it is code, which isn't run", place)
            return
        if not text.startswith(SCHEME) and "*" not in text and not self.files.path(text, line).is_file():
            yield Prompt(label or text, text, place)  # a text that ends like a file's name
            return
        for path in self.files.paths(text, line):
            kind = path.suffix.lower()
            if kind in CODE:
                self.gaps.add(f"the prompt {self.files.shown(path)}", "it is code, which isn't run", place)
                continue
            for number, each in enumerate(self._in_file(self.files.text(path, line), kind, path), start=1):
                shown = label or self.files.shown(path)
                yield Prompt(shown if number == 1 else f"{shown} {number}", each, f"{place}, {self.files.shown(path)}")

    def _in_file(self, text: str, kind: str, path: Path) -> Iterator[str]:
        """The prompts in a file."""
        if kind == ".txt":
            part: list[str] = []
            for row in [*text.splitlines(), "---"]:
                if row.strip() != "---":
                    part.append(row)
                    continue
                if joined := "\n".join(part).strip():
                    yield joined
                part.clear()
        elif kind == ".jsonl":
            yield from (row for row in text.splitlines() if row.strip())
        elif kind == ".csv":
            for row in _csv(text, self.files.shown(path)):
                if prompt := row.get("prompt"):
                    yield prompt
        elif kind in YAML:
            value = read_yaml(text, self.files.shown(path))
            yield text if isinstance(value, str) or value is None else json.dumps(value)
        else:
            yield text

    # ---- Providers ----

    def _providers(self) -> Iterator[dict[str, Any]]:
        name = "targets" if "targets" in self.root else "providers"
        value = self.root.get(name)
        for number, each in enumerate(value if is_array(value) else [value] if value else []):
            yield from self._provider(each, line_of(value, number) or line_of(self.root, name))

    def _provider(self, value: Any, line: int | None) -> Iterator[dict[str, Any]]:
        if isinstance(value, str) and value.startswith(SCHEME) and kind_of(value) in DATA:
            for path in self.files.paths(value, line):
                inner = self.files.data(path, line)
                with self._opened(path, line):
                    for each in inner if is_array(inner) else [inner]:
                        yield from self._provider(each, line)
        elif isinstance(value, str):
            yield {"id": value, "line": line}
        elif is_object(value) and isinstance(value.get("id"), str):
            yield {**value, "line": line}
        elif is_object(value) and len(value) == 1:
            (identity, settings), *_ = value.items()
            yield {"id": identity, **(settings if is_object(settings) else {}), "line": line}
        else:
            raise DataError(
                f"{self.files.place(line)}a provider is a name such as openai:gpt-5.1, or a table with an id"
            )

    # ---- Tests ----

    def _tests(self, default: Mapping[str, Any]) -> Iterator[Test]:
        tests = self.root.get("tests")
        number = 0
        scenarios = self.root.get("scenarios")
        every = chain(self._cases(tests, line_of(self.root, "tests")), self._scenarios(scenarios))
        found = [*islice(every, MOST_TESTS + 1)]
        if not found and not tests and not scenarios:
            if "redteam" in self.root:
                raise DataError(f"{self.files.config}: it has no tests; attacks (redteam) aren't generated")
            found = [_Entry(Table(), "the test without variables", None)]
        for test, place, line in found:
            for one in self._combinations(default, test, place, line):
                number += 1
                if number > MOST_TESTS:
                    raise DataError(f"{self.files.place(line)}more than {MOST_TESTS:,} tests")
                yield one

    def _scenarios(self, scenarios: Any, line: int | None = None, file: str = "") -> Iterator[_Entry]:
        """The tests of scenarios. line, file: as for `_cases`, if they aren't in the configuration."""
        for number, scenario in enumerate(scenarios if is_array(scenarios) else [], start=1):
            at = line if file else line_of(scenarios, number - 1)
            if isinstance(scenario, str):
                for path in self.files.paths(scenario, at):
                    inner = self.files.data(path, at)
                    with self._opened(path, at):
                        yield from self._scenarios(inner if is_array(inner) else [inner], at, self.files.shown(path))
                continue
            if not is_object(scenario):
                raise DataError(f"{self.files.place(at)}a scenario is a table with config and tests")
            configs, tests = scenario.get("config"), scenario.get("tests")
            of_tests = at if file else line_of(scenario, "tests")
            cases = [*self._cases(tests, of_tests, file)] if tests else [_Entry(Table(), "", at)]
            for data in configs if is_array(configs) else [Table()]:
                for test, place, of_test in cases:
                    merged = {**data, **test}
                    for name in ("vars", "options", "metadata"):
                        merged[name] = {**_table_in(data, name), **_table_in(test, name)}
                    merged["assert"] = [*_items_in(data, "assert"), *_items_in(test, "assert")]
                    yield _Entry(merged, f"scenario {number}" + (f", {place}" if place else ""), of_test)

    def _cases(self, tests: Any, line: int | None, file: str = "") -> Iterator[_Entry]:
        """The tests of a list, of a file, or of files.

        line: Where the configuration has them. file: The file that they are in, if it isn't the configuration.
        """
        if isinstance(tests, str):
            yield from self._of_reference(tests, line)
            return
        if is_object(tests):
            if isinstance(tests.get("path"), str) and "vars" not in tests:
                yield from self._of_reference(tests["path"], line)
                return
            tests = [tests]
        for number, each in enumerate(tests if is_array(tests) else [], start=1):
            at = line if file else line_of(tests, number - 1) or line
            if isinstance(each, str):
                yield from self._of_reference(each, at)
            elif is_object(each) and isinstance(each.get("path"), str) and not {"vars", "assert"} & each.keys():
                yield from self._of_reference(each["path"], at)
            elif is_object(each):
                description = each.get("description")
                shown = f" ({excerpt(description)})" if isinstance(description, str) and description else ""
                yield _Entry(each, f"test {number}{shown}" + ("" if file else f", line {at}"), at)
            else:
                place = f"{self.files.place(at)}{f'{file}: test {number}: ' if file else ''}"
                raise DataError(f"{place}a test is a table with vars and assert, or a file")

    def _of_reference(self, reference: str, line: int | None) -> Iterator[_Entry]:
        kind = kind_of(reference)
        if "://" in reference.removeprefix(SCHEME):
            self.gaps.add(f"the tests {excerpt(reference)}", "nothing is fetched", f"line {line}")
        elif kind in CODE:
            self.gaps.add(f"the tests {excerpt(reference)}", "they are made by code, which isn't run", f"line {line}")
        elif kind in (".xlsx", ".xls"):
            self.gaps.add(f"the tests {excerpt(reference)}", "save the sheet as CSV", f"line {line}")
        else:
            for path in self.files.paths(reference, line):
                with self._opened(path, line):
                    for entry in self._in_test_file(path, line):
                        test = self._from_folder(entry.test, path)
                        yield _Entry(test, f"{self.files.shown(path)}, {entry.place}", line)

    def _from_folder(self, test: Mapping[str, Any], file: Path) -> Mapping[str, Any]:
        """A test of a file with its files of variables, whose names start at the folder of that file."""
        named = test.get("vars")
        folder = Path(self.files.shown(file)).parent
        if is_object(named) or named is None or folder == Path():
            return test
        paths = [
            (folder / each.removeprefix(SCHEME)).as_posix() if isinstance(each, str) else each
            for each in (named if is_array(named) else [named])
        ]
        return {**test, "vars": paths}

    def _in_test_file(self, path: Path, line: int | None) -> Iterator[_Entry]:
        text, kind, shown = self.files.text(path, line), path.suffix.lower(), self.files.shown(path)
        if kind == ".csv":
            for number, row in enumerate(_csv(text, shown), start=1):
                yield _Entry(self._of_row(row, f"{shown}: row {number}"), f"row {number}", line)
        elif kind == ".jsonl":
            rows = ((number, row) for number, row in enumerate(text.splitlines(), start=1) if row.strip())
            values = [read_yaml(row, f"{shown}: line {number}") for number, row in rows]
            tests = [test for value in values for test in (value if is_array(value) else [value])]
            yield from self._cases(tests, line, shown)
        elif kind in DATA:
            value = read_yaml(text, shown)
            root = value if isinstance(value, Table) else Table()
            if value is not None:
                yield from self._cases(_dereferenced(value, root, self.files, {}), line, shown)
        else:
            raise DataError(f"{self.files.place(line)}{shown}: tests are CSV, JSON, JSONL or YAML")

    def _of_row(self, row: Mapping[str, str], place: str) -> dict[str, Any]:
        """A test of a row of a CSV file, by promptfoo's names of columns."""
        test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}, "metadata": {}}
        limits: dict[int, float] = {}
        for name, cell in row.items():
            name = name.strip()
            if name.startswith("__expected"):
                if cell.strip():
                    test["assert"].append(_of_cell(cell.strip()))
            elif name in ("__prefix", "__suffix"):
                test["options"][name[2:]] = cell
            elif name in ("__description", "__providerOutput", "__metric"):
                test[name[2:]] = cell
            elif name == "__threshold":
                test["threshold"] = _number(cell)
            elif name.startswith("__metadata:"):
                _add_metadata(test["metadata"], name.removeprefix("__metadata:"), cell)
            elif match := re.fullmatch(r"__config:__expected(\d{0,6}):threshold", name):
                if (number := _number(cell)) is not None:
                    limits[int(match[1] or 1) - 1] = number
            elif name.startswith("__"):
                self.gaps.add(f"the column {name}", "this column isn't known", place)
            else:
                test["vars"][name] = cell
        for number, assertion in enumerate(test["assert"]):
            assertion |= {"metric": test["metric"]} if test.get("metric") else {}
            assertion |= {"threshold": limits[number]} if number in limits else {}
        return test

    def _combinations(
        self, default: Mapping[str, Any], test: Mapping[str, Any], place: str, line: int | None
    ) -> Iterator[Test]:
        self._options(test, place)
        for name in ("provider", "providers", "prompts"):
            if test.get(name):
                self.gaps.add(f"{name} of a test", "every test is for all prompts and providers", place)
        options = {**_table_in(default, "options"), **_table_in(test, "options")}
        variables = {**self._variables(default, "defaultTest", None), **self._variables(test, place, line)}
        assertions = self._assertions(test, line)
        if options.get("disableDefaultAsserts") is not True:
            assertions = [*self._assertions(default, None), *assertions]
        threshold = test["threshold"] if test.get("threshold") is not None else default.get("threshold")
        output = test.get("providerOutput")
        choices = {name: self._values(name, value, options, place, line) for name, value in variables.items()}
        if math.prod(map(len, choices.values())) > MOST_TESTS:
            at = line_of(test, "vars") or line
            raise DataError(f"{self.files.place(at)}the combinations of its vars are more than {MOST_TESTS:,} tests")
        repeat = options.get("repeat")
        if isinstance(repeat, int) and repeat != 1:
            self.gaps.add("options.repeat", "trials are for all samples: trials = N, or --trials N", place)
        shared = [assertions, _table_in(default, "metadata"), _table_in(test, "metadata"), output, options]
        for values in product(*choices.values()):
            self.files.limit.count_value([*values, shared])
            yield Test(
                place=place,
                line=line,
                variables=self._filled(dict(zip(choices, values, strict=True)), place),
                assertions=assertions,
                description=as_text(test.get("description")),
                threshold=float(threshold) if is_number(threshold) else None,
                output=as_text(output) if output not in (None, "") else None,
                metadata={**_table_in(default, "metadata"), **_table_in(test, "metadata")},
                prefix=as_text(options.get("prefix")),
                suffix=as_text(options.get("suffix")),
            )

    def _assertions(self, test: Mapping[str, Any], line: int | None) -> list[Any]:
        value = test.get("assert")
        if isinstance(value, str) and value.startswith(SCHEME):
            value = self._loaded(value, line)
        if value is None:
            return []
        if not is_array(value):
            raise DataError(f"{self.files.place(line_of(test, 'assert') or line)}assert must be a list of assertions")
        found: list[Any] = []
        for each in value:
            if isinstance(each, str) and each.startswith(SCHEME):
                inner = self._loaded(each, line)
                found += inner if is_array(inner) else [inner]
            else:
                found.append(each)
        return found

    def _loaded(self, reference: str, line: int | None) -> Any:
        path = self.files.path(reference, line)
        return self.files.data(path, line)

    def _variables(self, test: Mapping[str, Any], place: str, line: int | None) -> Mapping[str, Any]:
        """The variables of a test, which may be in files."""
        value = test.get("vars")
        if value is None:
            return {}
        if is_object(value):
            return value
        found: dict[str, Any] = {}
        for reference in value if is_array(value) else [value]:
            if not isinstance(reference, str):
                raise DataError(f"{self.files.place(line_of(test, 'vars') or line)}vars must be a table, or files")
            if kind_of(reference) in CODE:
                self.gaps.add("vars", "they are made by code, which isn't run", place)
                continue
            for path in self.files.paths(reference, line):
                inner = self.files.data(path, line)
                if not is_object(inner):
                    raise DataError(f"{self.files.place(line)}{self.files.shown(path)}: vars must be a table")
                found |= inner
        return found

    def _values(self, name: str, value: Any, options: Mapping[str, Any], place: str, line: int | None) -> list[Any]:
        """The values of a variable: a list of texts, or the files of a pattern, is one value for each test."""
        if isinstance(value, str) and value.startswith(SCHEME):
            if kind_of(value) in CODE or kind_of(value) in NOT_TEXT:
                self.gaps.add(f"the variable {name}", "its file isn't text, or is code, which isn't run", place)
                return [""]
            return [self._of_file(path, line) for path in self.files.paths(value, line)]
        expands = is_array(value) and bool(value) and isinstance(value[0], str)
        if not expands or options.get("disableVarExpansion") is True:
            return [value]
        return [each for inner in value for each in self._values(name, inner, options, place, line)]

    def _of_file(self, path: Path, line: int | None) -> str:
        text = self.files.text(path, line)
        if path.suffix.lower() in YAML:
            return as_text(read_yaml(text, self.files.shown(path)))
        return text.strip()

    def _filled(self, variables: dict[str, Any], place: str) -> dict[str, Any]:
        """The variables, with those in each other's texts."""
        values = {
            name: value.removesuffix("\n") if isinstance(value, str) else value for name, value in variables.items()
        }
        for name, value in values.items():
            rounds = 0
            while isinstance(value, str) and ("{{" in value or "{%" in value) and rounds < _MOST_ROUNDS:
                rounds += 1
                try:
                    new = rendered(value, values, self.files.limit)
                except UnsupportedTemplate as error:
                    self.gaps.add(f"the variable {name}", f"it has a template with more than a name: {error}", place)
                    break
                if new == value:
                    break
                values[name] = value = new
        return values


def _table_in(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name)
    return value if is_object(value) else {}


def _items_in(table: Mapping[str, Any], name: str) -> list[Any]:
    value = table.get(name)
    return value if is_array(value) else []


def _number(cell: str) -> float | None:
    match = re.fullmatch(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?\s*", cell)
    return float(cell) if match else None


def _add_metadata(metadata: dict[str, Any], name: str, cell: str) -> None:
    if not cell.strip():
        return
    if name.endswith("[]"):
        metadata[name[:-2]] = [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", cell)]
    else:
        metadata[name] = cell


def _csv(text: str, place: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file, by its header. Raises DataError, with the line, for a row that has other cells."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            if not cells:
                continue
            if header is None:
                header = cells
                continue
            if len(cells) != len(header):
                number = f"{len(cells)} cells, the header {len(header)}"
                raise DataError(f"{place}: line {reader.line_num}: the row has {number}")
            yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise DataError(f"{place}: line {reader.line_num}: not CSV: {error}") from None


def _of_cell(text: str) -> dict[str, Any]:
    """The assertion in a cell of `__expected`: `contains:Paris`, `similar(0.9):Paris`, or the text to be equal to."""
    for start, kind in (("javascript:", "javascript"), ("fn:", "javascript"), ("eval:", "javascript")):
        if text.startswith(start):
            return {"type": kind, "value": text.removeprefix(start).strip()}
    if text.startswith(SCHEME) and kind_of(text) in CODE:
        return {"type": "python" if kind_of(text) == ".py" else "javascript", "value": text}
    if text.startswith(("grade:", "llm-rubric:")):
        return {"type": "llm-rubric", "value": text.partition(":")[2]}
    match = _EXPECTED.fullmatch(text)
    if match is None:
        return {"type": "equals", "value": text}
    kind, value = match["type"], match["value"]
    base = kind.removeprefix("not-")
    assertion: dict[str, Any] = {"type": kind}
    if value is not None:
        assertion["value"] = value if base in ("is-json", "contains-json") else value.strip()
    if base in _WITH_THRESHOLD:
        assertion["threshold"] = float(match["threshold"]) if match["threshold"] else 0.75
    return assertion
