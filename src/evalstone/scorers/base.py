"""What a scorer is: a frozen value with one method, whose keyword parameters name the sample fields it needs."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, cast

from evalstone._core.json import content_hash, to_jsonable
from evalstone.agents import messages
from evalstone.errors import ConfigError, OutcomeError, unknown
from evalstone.questions.base import Ask, Question
from evalstone.questions.claims import ClaimVerdict
from evalstone.questions.explanation import Explain
from evalstone.questions.relevance import PassageVerdict
from evalstone.types import SAMPLE_FIELDS, Outcome, Sample, Score, Skipped, passages

FIELDS = SAMPLE_FIELDS


class Described:
    """What a scorer tells of itself: class attributes where the class is one scorer, fields where scorers are data.

    This is no dataclass, so that what is declared here is no field by itself. asks: the kinds of question. bands: from
    which score on to read it how. definitions: by the name of each system whose formula can be taken, that formula.
    """

    name: str
    version: int = 1
    lower_is_better: bool = False
    asks: tuple[type[Question[Any]], ...] = ()
    bands: tuple[tuple[float, str], ...] = ()
    advice: str = ""
    definitions: ClassVar[Mapping[str, str]] = {}


@dataclass(frozen=True, kw_only=True)
class Scorer(Described, ABC):
    """Scores one sample: asks a judge typed questions, and does plain arithmetic on the answers.

    A subclass is a frozen dataclass with a `name` and one method `score`, written `def` or `async def`. The keyword
    parameters of `score` are the sample fields it needs (a default makes one optional); a first parameter `ask` is
    given where questions are asked. A sample that lacks a needed field is Skipped before anything is asked.

    scale: the score of a perfect answer; values lie in [0, scale]. explain: have the judge write the reason, in one
    more call; otherwise it is built from the evidence. Raises ConfigError for a scale that is no positive number.
    """

    unsigned: ClassVar[tuple[str, ...]] = ("name", "version")

    scale: float = 1.0
    explain: bool = False

    @abstractmethod
    def score(self, *args: Any, **fields: Any) -> Score | Skipped | Awaitable[Score | Skipped]:
        """The score of one sample, or why it has none."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "score" in cls.__dict__:
            _parameters(cls)

    def __post_init__(self) -> None:
        scale = cast(object, self.scale)
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= sys.float_info.max:
            raise ConfigError(f"{self.name}: scale must be a positive number, not {shortened(repr(scale), 40)}")
        if not isinstance(self.explain, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"{self.name}: explain must be True or False, not {self.explain!r}")

    @property
    def needs(self) -> tuple[str, ...]:
        """The sample fields without which there is no score."""
        return self.required()

    @classmethod
    def required(cls) -> tuple[str, ...]:
        """The sample fields that the class's `score` needs."""
        return tuple(name for name, optional in _parameters(cls).items() if not optional)

    @functools.cached_property
    def signature(self) -> str:
        """Name, changed parameters, prompt fingerprints and version: `faithfulness(scale=10; 5c1d77b2, 9a0e41c3)@1`.

        Two scores may be compared when their signatures are equal.
        """
        changed = [f"{name}={brief(value)}" for name, value in self.changed()]
        asked = [prompt.fingerprint for prompt in self._prompts()]
        parts = [", ".join(changed)] * bool(changed) + [", ".join(asked)] * bool(asked)
        return f"{self.name}({'; '.join(parts)})@{self.version}" if parts else f"{self.name}@{self.version}"

    def changed(self) -> Iterator[tuple[str, Any]]:
        """The parameters that have another value than their default, but those in `unsigned`, which show elsewhere."""
        yield from changed_fields(self, self.unsigned)

    def _prompts(self) -> list[Any]:
        kinds = (*self.asks, Explain) if self.explain else self.asks
        return [next(f.default for f in fields(kind) if f.name == "prompt") for kind in kinds]

    def values(self, sample: Sample) -> dict[str, Any]:
        """What `score` is called with, from the sample."""
        return {name: getattr(sample, name) for name in _parameters(type(self))}

    async def run(self, ask: Ask, sample: Sample) -> Outcome:
        """Score one sample. Errors of the judge, and of a scorer's own code, are raised."""
        values = self.values(sample)
        if absent := [n for n in self.needs if values[n] is None or _empty_messages(n, values[n])]:
            return Skipped(f"{self.name} needs {' and '.join(absent)}")
        given = {name: value for name, value in values.items() if value is not None}
        result = self.score(ask, **given) if _takes_ask(type(self)) else self.score(**given)
        outcome = await result if inspect.isawaitable(result) else result
        if not isinstance(outcome, Score | Skipped):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OutcomeError(f"{self.name} must return a Score or Skipped, not {type(outcome).__name__}")
        if self.explain and isinstance(outcome, Score):
            return replace(outcome, reason=await ask(self._explanation(outcome)))
        return outcome

    def meaning(self) -> str:
        """What is measured, in a sentence."""
        return summary(type(self))

    def _explanation(self, score: Score) -> Explain:
        direction = "lower is better" if self.lower_is_better else "higher is better"
        return Explain(
            measure=f"{self.name}: {score.value:.4g} out of {score.scale:g} ({direction}).\n{self.meaning()}",
            evidence=score.reason + "\n" + json.dumps(to_jsonable(score.evidence), ensure_ascii=False),
        )


def summary(kind: type[Scorer]) -> str:
    """The first line of a scorer's docstring."""
    return (inspect.getdoc(kind) or "").partition("\n")[0]


@functools.cache
def _parameters(kind: type[Scorer]) -> Mapping[str, bool]:
    """The sample fields that `score` takes, and whether each is optional. Raises ConfigError for any other name.

    None are read from the signature of a class whose scorers each have their own `needs`.
    """
    found: dict[str, bool] = {}
    if kind.needs is not Scorer.needs:
        return found
    for position, parameter in enumerate(inspect.signature(kind.score).parameters.values()):
        if position == 0 or (position == 1 and parameter.name == "ask"):
            continue
        if parameter.name not in FIELDS or parameter.kind is not parameter.KEYWORD_ONLY:
            told = unknown("sample field", parameter.name, FIELDS)
            raise ConfigError(f"{kind.__name__}.score: {told} (fields are keyword-only parameters)")
        found[parameter.name] = parameter.default is not parameter.empty
    return found


@functools.cache
def _takes_ask(kind: type[Scorer]) -> bool:
    return "ask" in inspect.signature(kind.score).parameters


def _empty_messages(name: str, value: object) -> bool:
    return name == "messages" and not value


def changed_fields(owner: Any, unsigned: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The fields of a dataclass that have another value than their default, but for those in `unsigned`."""
    for field in fields(owner):
        value = getattr(owner, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name not in unsigned and value != default:
            yield field.name, value


def brief(value: Any) -> str:
    """A parameter's value as it stands in a signature: itself if it is short, else the hash of its content."""
    if callable(value):
        return _function(value)
    if isinstance(value, float):
        return text if float(text := f"{value:g}") == value else repr(value)
    if isinstance(value, bool | int | str):
        return str(value)
    return content_hash(value)[:8]


def _function(function: Any) -> str:
    """A function's full name; with the hash of its code where the name alone is shared, as lambdas share theirs."""
    if isinstance(function, functools.partial):
        given = content_hash([to_jsonable(function.args), to_jsonable(function.keywords)])[:8]
        return f"{_function(cast(Any, function).func)}#{given}"
    kind = cast(Any, function if hasattr(function, "__qualname__") else type(function))
    name = f"{getattr(kind, '__module__', 'builtins')}.{kind.__qualname__}"
    code = getattr(function, "__code__", None)
    if code is None or "<" not in kind.__qualname__:
        return name
    return f"{name}#{content_hash([code.co_code.hex(), repr(code.co_consts), code.co_names])[:8]}"


@dataclass(frozen=True, kw_only=True)
class ContextScorer(Scorer):
    """A scorer that looks at passages.

    They come from `context_from(sample)` if given, else from `context`, else from the sample, else from the results of
    the tool calls in the sample's messages, in order.
    """

    context: Sequence[str] | None = None
    context_from: Callable[[Sample], Sequence[str]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "context", passages(self.context))
        if self.context_from is not None and not callable(self.context_from):  # pyright: ignore[reportUnnecessaryComparison]
            raise ConfigError(f"{self.name}: context_from must be a function of a sample, not {self.context_from!r}")

    def values(self, sample: Sample) -> dict[str, Any]:
        return {**super().values(sample), "context": self.passages_for(sample)}

    def passages_for(self, sample: Sample) -> tuple[str, ...] | None:
        """The passages that this sample is judged by; None when there are none to be found."""
        if self.context_from is not None:
            return passages(self.context_from(sample))
        for given in (self.context, sample.context):
            if given is not None:
                return tuple(given)
        return tool_results(sample) or None


def tool_results(sample: Sample) -> tuple[str, ...]:
    """What the sample's tool calls returned, in order; anything but text as JSON."""
    results = [returned.result for returned in messages.tool_results(sample.messages)]
    return tuple(r if isinstance(r, str) else json.dumps(to_jsonable(r), ensure_ascii=False) for r in results)


def require_passages(scorer: ContextScorer) -> None:
    """Raise ConfigError when a scorer that divides by the number of passages is given an empty list of them."""
    if scorer.context is not None and not scorer.context:
        raise ConfigError(f"{scorer.name}: context is an empty list; leave it out to take the sample's passages")


def useful_passages(verdicts: Sequence[PassageVerdict]) -> str:
    """Which passages were useful and which were not."""
    useful = [str(v.passage) for v in verdicts if v.useful]
    rest = [str(v.passage) for v in verdicts if not v.useful]
    told = f"useful: passage {', '.join(useful)}" if useful else "no passage was useful"
    return told + (f"; not useful: {', '.join(rest)}." if useful and rest else ".")


def fallen_claims(verdicts: Sequence[ClaimVerdict]) -> str:
    """Which claims fell, and on which passages; empty when none did."""
    told = ""
    if wrong := [v for v in verdicts if v.verdict == "contradicted"]:
        cited = [f" (by passage {', '.join(map(str, v.passages))})" if v.passages else "" for v in wrong]
        told += f"; contradicted: {listed([v.claim for v in wrong], notes=cited)}"
    if absent := [v.claim for v in verdicts if v.verdict == "not_mentioned"]:
        told += f"; in no passage: {listed(absent)}"
    return told


def listed(texts: Sequence[str], limit: int = 3, *, notes: Sequence[str] = ()) -> str:
    """Texts for a reason: quoted, the first few of them, each with its note, and how many there are beside."""
    first = itertools.zip_longest(texts[:limit], notes[:limit], fillvalue="")
    shown = "; ".join(f"“{shortened(text)}”{note}" for text, note in first)
    return f"{shown}; and {len(texts) - limit} more" if len(texts) > limit else shown


def shortened(text: str, width: int = 120) -> str:
    """Text on one line, at most `width` characters."""
    line = " ".join(text[: width * 4].split())
    return line if len(line) <= width else line[: width - 1] + "…"
