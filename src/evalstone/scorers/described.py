"""What a scorer is, as `evalstone scorers` and the pages of scorers show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, NamedTuple

from evalstone._core.addresses import built
from evalstone._core.file_format import SCORER_FORMAT
from evalstone._core.json import to_jsonable
from evalstone._core.plugins import Plugin
from evalstone._core.prompts import Prompt
from evalstone.questions.base import Question
from evalstone.scorers.base import Scorer, summary
from evalstone.scorers.definitions import Defined
from evalstone.scorers.needs import Need, needs_of
from evalstone.scorers.parameters import Parameter, applies_another, documentation, parameters_of
from evalstone.scorers.registry import SCORERS, TEMPLATES, added


class AskedPrompt(NamedTuple):
    """The prompt of a question that a scorer asks."""

    kind: str
    """The kind of question, such as `list_claims`."""
    prompt: Prompt


@dataclass(frozen=True)
class Described:
    """A kind of scorer, or a scorer of a plug-in: see `plugged_in`."""

    name: str
    scorer: type[Scorer] | Scorer
    plugin: Plugin | None = None

    @property
    def kind(self) -> type[Scorer]:
        """The class."""
        return self.scorer if isinstance(self.scorer, type) else type(self.scorer)

    @property
    def summary(self) -> str:
        """What it measures, in one line."""
        if isinstance(self.scorer, type):
            return summary(self.scorer)
        return self.scorer.description()

    @property
    def text(self) -> str:
        """Its definition."""
        return documentation(self.scorer) if isinstance(self.scorer, type) else self.summary

    @property
    def applies_another(self) -> bool:
        """Whether it applies another scorer, which decides its direction and judge calls."""
        return applies_another(self.kind)

    @property
    def direction(self) -> str:
        """Which scores are better, in words; "" if another scorer decides that."""
        if self.applies_another:
            return ""
        return "↓ lower is better" if self.scorer.lower_is_better else "↑ higher is better"

    @property
    def needs(self) -> tuple[Need, ...]:
        """What a sample must have; none if its parameters decide that."""
        return needs_of(self.scorer) if isinstance(self.scorer, type) else self.scorer.needs

    @property
    def parameters(self) -> list[Parameter]:
        """Its parameters; none for one that has them already."""
        return parameters_of(self.scorer) if isinstance(self.scorer, type) else []

    @property
    def signature(self) -> str:
        """Its signature with the default parameters, or its form if some are required."""
        required = [each.name for each in self.parameters if each.default is MISSING]
        if required:
            return f"{self.name}({', '.join(f'{name}=…' for name in required)})@{self.kind.version}"
        scorer = self.scorer
        return (built(scorer.name, scorer, {}) if isinstance(scorer, type) else scorer).signature

    @property
    def definitions(self) -> Mapping[str, str]:
        """The formulas to choose from, by name."""
        kind = self.kind
        return {key: one.formula for key, one in kind.definitions.items()} if issubclass(kind, Defined) else {}

    @property
    def questions(self) -> tuple[type[Question[Any]], ...]:
        """The kinds of question that it asks the judge; none if another scorer decides that."""
        return () if self.applies_another else self.scorer.questions

    @property
    def prompts(self) -> Iterator[AskedPrompt]:
        """The prompts of its questions. Those that a parameter sets are missing."""
        for question in self.questions:
            if isinstance(prompt := getattr(question, "prompt", None), Prompt):
                yield AskedPrompt(question.kind, prompt)

    def to_dict(self) -> dict[str, Any]:
        """It as data. What another scorer that it applies decides is null, and the package of a built-in one."""
        kind, is_open = self.kind, self.applies_another
        parameters: dict[str, Any] = {}
        for name, default, allowed, description in self.parameters:
            value = {"required": True} if default is MISSING else {"required": False, "default": to_jsonable(default)}
            parameters[name] = {"description": description, "allowed": allowed, **value}
        return {
            "format": SCORER_FORMAT,
            "name": self.name,
            "package": None if self.plugin is None else self.plugin.package,
            "summary": self.summary,
            "version": self.scorer.version,
            "needs": [need.to_dict() for need in self.needs],
            "range": None if is_open else [0, self.scorer.scale],
            "lower_is_better": None if is_open else self.scorer.lower_is_better,
            "judge_calls": None if is_open else [question.kind for question in self.questions],
            "parameters": parameters,
            "definitions": self.definitions,
            "interpretation": [{"from": floor, "meaning": meaning} for floor, meaning in kind.interpretation],
            "advice": kind.advice,
        }


def plugged_in(plugin: Plugin) -> Described:
    """A plug-in's scorer. Raises ConfigError if it can't be used, and for what its own properties raise."""
    described = Described(plugin.name, added(plugin), plugin)
    built(str(plugin), described.to_dict, {}, "described")
    return described


def built_in() -> list[Described]:
    """The built-in scorers, by name."""
    return [Described(name, SCORERS[name]) for name in SCORERS]


def built_in_named(name: str) -> Described | None:
    """A built-in scorer, or a kind that a table defines, by its name, which may be written with hyphens."""
    key = name.replace("-", "_")
    known = next((each for each in (SCORERS, TEMPLATES) if key in each), None)
    return None if known is None else Described(key, known[key])
