"""A plain function as a scorer: its parameters name the sample fields that it takes."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY
from operator import attrgetter
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, cast, overload

from evalstone._core import sync
from evalstone._core.declarations import TEXTS
from evalstone.errors import ConfigError, unknown
from evalstone.judges.base import JudgeSpec
from evalstone.questions.base import Ask, Question
from evalstone.scorers.base import QUESTIONS, Scored
from evalstone.scorers.custom import CustomScorer
from evalstone.types import SAMPLE_FIELDS, Sample

P = ParamSpec("P")
R = TypeVar("R", bound=Scored | Awaitable[Scored], covariant=True)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionScorer(CustomScorer, Generic[P, R], kw_only=False):
    """A scorer that is a function: `evaluate(samples, [brevity])`, or decorated with `@scorer`.

        function scorer = what the function returns          range [0, scale]; a value outside is an error

    The parameters of the function are the sample fields that it takes; a default makes a field optional. With a
    parameter `ask`, it can ask a judge its `questions`. It returns a number, True (the scale) or False (0), a Score, or
    Skipped if the score is undefined. An exception makes the outcome Failed. It can be `def`, which runs in a thread,
    or `async def`. The signature has a hash of its code. Calling the scorer calls the function.

    Attributes:
        function: The function.
        reads_blank: The fields whose blank text is scored as it is. In any other field, blank text is absent.
        questions: The kinds of question that the function asks: one entry for each judge call.
        case_metadata: The entries of the metadata that answers are held against. Runs in which they differ are not
            comparable.

    Raises:
        ConfigError: A parameter of the function is not a sample field, the function has no name, or `questions` are not
            kinds of question.
    """

    excluded_from_signature = (*CustomScorer.excluded_from_signature, "questions", "case_metadata")

    function: Callable[P, R]
    _: KW_ONLY
    reads_blank: Sequence[str] = ()  # pyright: ignore[reportIncompatibleVariableOverride] - a field where scorers are data
    questions: Annotated[Sequence[type[Question[Any]]], QUESTIONS] = ()  # pyright: ignore[reportIncompatibleVariableOverride]
    case_metadata: Annotated[Sequence[str], TEXTS] = ()  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        if not self.name and callable(self.function):  # pyright: ignore[reportUnnecessaryComparison]
            name = getattr(self.function, "__name__", "")
            if not str(name).isidentifier():
                kind = "a lambda" if name == "<lambda>" else type(self.function).__name__
                raise ConfigError(f'{kind} has no name to score under; give it one: scorer(name="brevity")(…)')
            object.__setattr__(self, "name", name)
        super().__post_init__()
        parameters = self._parameters()
        fields = tuple(name for name in parameters if name != "ask")
        object.__setattr__(self, "_fields", fields)
        required = tuple(name for name in fields if parameters[name].default is inspect.Parameter.empty)
        object.__setattr__(self, "required_fields", required)
        object.__setattr__(self, "_arguments", required)
        if unexpected := [name for name in self.reads_blank if name not in fields]:
            message = f"reads_blank has {unexpected[0]!r}, which is not a parameter of the function"
            raise ConfigError(f"{self.name}: {message}")

    def _parameters(self) -> dict[str, inspect.Parameter]:
        """The function's parameters. Raises ConfigError for one that is neither a sample field nor `ask`."""
        label = f"{self.name}: the parameters of a scorer's function are sample fields ({', '.join(SAMPLE_FIELDS)})"
        try:
            parameters = dict(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):
            raise ConfigError(f"{label}; those of {self.function!r} are unknown") from None
        for name, parameter in parameters.items():
            if parameter.kind not in _NAMED:
                bare = parameter.replace(annotation=inspect.Parameter.empty)
                raise ConfigError(f"{label}; {bare} can't be passed by name")
            if name not in (*SAMPLE_FIELDS, "ask"):
                raise ConfigError(f"{label}; ", unknown("sample field", name, SAMPLE_FIELDS))
        if not parameters.keys() - {"ask"}:
            raise ConfigError(f"{label}; it has none")
        return parameters

    def _declares(self, line: str) -> str:
        return f"add to its decorator: @scorer({line.replace(' = ', '=', 1)})"

    def description(self) -> str:
        return (inspect.getdoc(self.function) or "").partition("\n")[0] or self.name

    async def score(self, ask: Ask, **fields: Any) -> Scored:
        if "ask" in inspect.signature(self.function).parameters:
            fields["ask"] = ask
        return cast(Any, await sync.call(self.function, **fields))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function returns."""
        return self.function(*args, **kwargs)

    def __reduce__(self) -> str | tuple[Any, ...]:
        module, name = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        value: Any = sys.modules.get(module)
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is self:  # a decorated function: its name refers to the scorer, so pickle can't find the function
            return _named, (module, name)
        return super().__reduce__()


def _named(module: str, name: str) -> Any:
    return attrgetter(name)(importlib.import_module(module))


@overload
def scorer(function: Callable[P, R], /) -> FunctionScorer[P, R]: ...
@overload
def scorer(
    *,
    name: str = "",
    scale: float = 1.0,
    lower_is_better: bool = False,
    version: int = 1,
    reads_blank: Sequence[str] = (),
    questions: Sequence[type[Question[Any]]] = (),
    case_metadata: Sequence[str] = (),
    explain: bool = False,
    judge: JudgeSpec | None = None,
    context: Sequence[str] | None = None,
    context_from: Callable[[Sample], Sequence[str] | Awaitable[Sequence[str]]] | None = None,
) -> Callable[[Callable[P, R]], FunctionScorer[P, R]]: ...
def scorer(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    scale: float = 1.0,
    lower_is_better: bool = False,
    version: int = 1,
    reads_blank: Sequence[str] = (),
    questions: Sequence[type[Question[Any]]] = (),
    case_metadata: Sequence[str] = (),
    explain: bool = False,
    judge: JudgeSpec | None = None,
    context: Sequence[str] | None = None,
    context_from: Callable[[Sample], Sequence[str] | Awaitable[Sequence[str]]] | None = None,
) -> FunctionScorer[P, R] | Callable[[Callable[P, R]], FunctionScorer[P, R]]:
    """Make a function a scorer: `@scorer`, or `@scorer(scale=10, lower_is_better=True)`.

    Args:
        function: Its parameters are sample fields; it returns a number, a bool, a Score or Skipped.
        name: The name of the scorer; by default the function's.
        scale: The highest score.
        lower_is_better: Whether a lower score is better.
        version: Increase it when what the function calls changes its scores; its own code is in the signature.
        reads_blank: The fields whose blank text is scored as it is.
        questions: The kinds of question that the function asks: one entry for each judge call.
        case_metadata: The entries of the metadata that answers are held against.
        explain: Have the judge write the reason, in one more call.
        judge: The judge of this scorer; by default, the run's.
        context: The passages for every sample, instead of the sample's own.
        context_from: A function of the sample that returns its passages. It overrides `context`.

    Raises:
        ConfigError: A parameter of the function is not a sample field, or a parameter of the scorer is invalid.
    """

    def decorate(function: Callable[P, R]) -> FunctionScorer[P, R]:
        return FunctionScorer(
            function,
            name=name,
            scale=scale,
            lower_is_better=lower_is_better,
            version=version,
            reads_blank=reads_blank,
            questions=questions,
            case_metadata=case_metadata,
            explain=explain,
            judge=judge,
            context=context,
            context_from=context_from,
        )

    return decorate if function is None else decorate(function)
