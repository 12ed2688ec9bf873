"""The base class of scorers: a frozen dataclass with one method, whose keyword parameters are sample fields."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeAlias, cast

from evalstone._core import sync
from evalstone._core.code_identity import brief, class_hash, is_own_code
from evalstone._core.declarations import NAME, TEXTS, Range, Rule, check_argument, check_settings
from evalstone._core.display import joined
from evalstone._core.guards import is_mapping, is_sequence, python_value
from evalstone._core.json import to_jsonable
from evalstone._core.plugins import distributions_of
from evalstone._core.prompts import Prompt
from evalstone._core.read_as import NOTHING, ReadAs
from evalstone._core.sizes import MOST_SCALE
from evalstone._core.text import is_blank
from evalstone._core.values import Value
from evalstone.errors import ConfigError, JudgeError, OutcomeError, unknown
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.questions.base import Ask, Question, QuestionSpec
from evalstone.questions.explanation import Explain
from evalstone.scorers.needs import (
    METADATA,
    Need,
    check_declarations,
    in_words,
    listed_needs,
    need_of,
    needs_of,
    root_of,
    value_of,
)
from evalstone.types import FIELD_ROLES, LISTS, SAMPLE_FIELDS, Message, Sample, Score, Skipped, metadata_at


class Scalar(Protocol):
    """A number of numpy, of any type."""

    def item(self) -> Any:
        """The number of Python."""
        ...


class AsScorer(Protocol):
    """An object that can be used as a scorer, such as an evaluator."""

    def as_scorer(self) -> Scorer:
        """The scorer."""
        ...


def _parse_judge(value: Any) -> Any:
    from evalstone.judges.parse import parse_judge  # noqa: PLC0415 - most scorers name no judge

    return None if value is None else parse_judge(value)


def _are_questions(value: object) -> bool:
    return is_sequence(value) and all(isinstance(kind, type) and issubclass(kind, Question) for kind in value)


def _complete_questions(value: Sequence[type[Question[Any]]]) -> tuple[type[Question[Any]], ...]:
    for kind in value:
        require_complete(kind)
    return tuple(value)


JUDGE = Rule("a judge: a name, a table or a Judge", lambda _: True, _parse_judge)
QUESTIONS = Rule("a tuple of kinds of question, such as (ListClaims,)", _are_questions, _complete_questions)
_TABLE = Rule(
    "a table with a list of texts for each field",
    lambda value: is_mapping(value) and TEXTS.holds([*value]) and all(map(TEXTS.holds, value.values())),
    lambda value: {name: tuple(names) for name, names in value.items()},
)
_DECLARED = {
    "case_metadata": TEXTS,
    "questions": QUESTIONS,
    "required_fields": TEXTS,
    "reads_blank": TEXTS,
    "alternatives": _TABLE,
    "supplied_by": _TABLE,
}
"""What a class may declare."""
_NAME = re.compile(r"[^\W\d]\w*")
SCORER_NAME = Rule(
    "letters, digits and underscores", lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value))
)


class Scorer(Value):
    """Scores one sample: asks a judge typed questions, and computes the score from the answers.

    A subclass has a `name` and one method `score`, written `def` or `async def`. Its parameters are its fields: it is a
    frozen dataclass, without a decorator and without an `__init__`. The keyword parameters of `score` are the sample
    fields that it requires; a default makes a field optional. If the first parameter is `ask`, it is passed too. It
    returns a number in [0, scale], True (the scale) or False (0), a Score, or Skipped if the score is undefined. A
    sample is Skipped, before any judge call, if a required field is missing or blank. A blank optional field is not
    passed.

    Attributes:
        scale: The highest score; scores are in [0, scale].
        explain: Have the judge write the reason, in one more call. Otherwise, it is built from the evidence.
        judge: The judge of this scorer: a name, a table or a Judge. By default, the run's judge.

    Raises:
        ConfigError: The scale is not a positive number.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Increase it with every change that can change a score."""
    lower_is_better: ClassVar[bool] = False
    interpretation: ClassVar[tuple[tuple[float, str], ...]] = ()
    """How to read a score: lower bounds on a scale of 1, highest first, each with the meaning of scores from there."""
    advice: ClassVar[str] = ""
    """What to do about a bad score."""
    reads_blank: ClassVar[tuple[str, ...]] = ()
    """The fields whose blank text is scored as it is. In any other field, blank text is absent."""
    excluded_from_signature: ClassVar[tuple[str, ...]] = ("name", "version", "judge")
    """Parameters that are not listed in the signature."""

    required_fields: ClassVar[tuple[str, ...]] = ()
    """The required sample fields: by default, the parameters of `score` without a default. `metadata.NAME` is an entry
    of the metadata."""
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """For a required field, those that may stand in for it: one is enough."""
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """For a required field, the parameters that supply it for all samples: one is enough."""
    questions: ClassVar[tuple[type[Question[Any]], ...]] = ()
    """The kinds of question that `score` asks: one entry for each judge call. A judge is asked no other kind."""
    case_metadata: ClassVar[tuple[str, ...]] = ()
    """The entries of the metadata that answers are held against, such as `goal`, or paths of names in one. Runs in
    which they differ are not comparable."""
    extractors: ClassVar[Mapping[str, str]] = {}
    """Sample fields that a function of the sample can supply, and the parameters that take such a function."""
    _fields: ClassVar[tuple[str, ...]] = ()
    _arguments: ClassVar[tuple[str, ...]] = ()
    """The fields without which `score` can't be called."""
    _takes_ask: ClassVar[bool] = False

    scale: Annotated[float, Range(0, MOST_SCALE, exclusive=True)] = 1.0
    explain: bool = False
    judge: Annotated[ReadAs[JudgeSpec | None, Judge | None], JUDGE] = NOTHING

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse an unknown parameter with the command line's message, which suggests the nearest name."""
        if unknown_names := kwargs.keys() - {name for name, field in cls.__dataclass_fields__.items() if field.init}:
            accepted = inspect.signature(cls.__init__).parameters
            if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in accepted.values()):
                require_known(cls.__name__, "parameter", sorted(unknown_names - accepted.keys()), cls)
        unnamed = not hasattr(cls, "name") and not inspect.isabstract(cls)
        if unnamed and "name" not in {field.name for field in fields(cls)}:
            kind = cls.__name__
            raise ConfigError(f'the scorer {kind} has no name; add one to the class, such as name = "{kind.lower()}"')
        return super().__new__(cls)

    @abstractmethod
    def score(self, *args: Any, **fields: Any) -> Scored | Awaitable[Scored]:
        """Return the score of one sample, or Skipped with the reason if it is undefined.

        A score is a number in [0, scale], True (the scale), False (0), or a Score, which also has a reason.
        """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls).keys() - {field.name for field in fields(cls)} and not isinstance(cls.name, property):
            check_argument("name", cls.name, Annotated[str, SCORER_NAME], cls.__name__)
        for name, rule in _DECLARED.items():
            if name not in cls.__dict__ or isinstance(value := cls.__dict__[name], property):
                continue
            read = check_argument(name, value, Annotated[Any, rule], cls.__name__)
            if read is not value:
                setattr(cls, name, read)
        if all(cls.score is not base.score for base in cls.__mro__[1:] if issubclass(base, Scorer)):
            cls._read_parameters()
        if not inspect.isabstract(cls) and not any(isinstance(getattr(cls, name), property) for name in _DECLARED):
            passed = cls._arguments if cls._fields else cls.required_fields
            check_declarations(cls, passed if cls.values is Scorer.values else ())

    @classmethod
    def _read_parameters(cls) -> None:
        """Read the sample fields from the parameters of `score`. Raises ConfigError for any other parameter.

        A `score` with `**fields` takes the `required_fields` that the scorer declares.
        """
        parameters = list(inspect.signature(cls.score).parameters.values())[1:]
        cls._takes_ask = bool(parameters) and parameters[0].name == "ask"
        parameters = parameters[cls._takes_ask :]
        cls._fields = cls._arguments = ()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return
        for parameter in parameters:
            if parameter.name not in SAMPLE_FIELDS:
                message = unknown("sample field", parameter.name, SAMPLE_FIELDS)
                raise ConfigError(f"{cls.__name__}.score: ", message, " (fields are keyword-only parameters)")
            if parameter.kind is not parameter.KEYWORD_ONLY:
                names = ", ".join(["self", *["ask"] * cls._takes_ask, "*", *(p.name for p in parameters)])
                message = f"sample fields are keyword-only parameters; write def score({names})"
                raise ConfigError(f"{cls.__name__}.score takes {parameter.name} by position; {message}")
        cls._fields = tuple(parameter.name for parameter in parameters)
        cls._arguments = tuple(p.name for p in parameters if p.default is p.empty)
        if "required_fields" not in cls.__dict__:
            cls.required_fields = cls._arguments

    def __post_init__(self) -> None:
        check_argument("name", self.name, Annotated[str, NAME], type(self).__name__)
        self._read_tables()
        check_settings(self, self.name)

    def _read_tables(self) -> None:
        """Convert a table to the dataclass of the parameter that it was passed for."""
        for field in fields(self):
            kind = field.default_factory
            if isinstance(kind, type) and is_dataclass(kind) and is_mapping(getattr(self, field.name)):
                table = getattr(self, field.name)
                require_known(f"{self.name}: {field.name}", "parameter", table, kind)
                try:
                    object.__setattr__(self, field.name, kind(**table))
                except ConfigError as error:
                    raise ConfigError(f"{self.name}: ", error) from None

    @functools.cached_property
    def needs(self) -> tuple[Need, ...]:
        """What a sample must have: the required fields, without those that a parameter supplies."""
        return tuple(need for need in needs_of(self) if not self._supplies(need))

    def _supplies(self, need: Need) -> bool:
        """Whether a parameter supplies a field: one that was passed."""
        return any(self._is_changed(self.__dataclass_fields__[name]) for name in need.parameters)

    def _is_changed(self, field: Field[Any]) -> bool:
        """Whether a parameter differs from its default."""
        default = field.default if field.default_factory is MISSING else field.default_factory()
        return getattr(self, field.name) != default

    @property
    def judges(self) -> tuple[Judge, ...]:
        """The judges that this scorer uses instead of the run's."""
        return () if self.judge is None else (self.judge,)

    @property
    def asks_shared_judge(self) -> bool:
        """Whether it asks the run's judge."""
        return self.may_ask and self.judge is None

    @property
    def may_ask(self) -> bool:
        """Whether scoring may ask a judge."""
        return bool(self.questions) or self.explain

    @property
    def is_immediate(self) -> bool:
        """Whether `run` never waits: for a judge, another process, or the user's own code."""
        return False

    @property
    def asked_kinds(self) -> tuple[type[Question[Any]], ...]:
        """The kinds of question that it may ask."""
        return (*self.questions, Explain) if self.explain else self.questions

    def questions_to(self, judge: Judge | None) -> Sequence[QuestionSpec]:
        """What it may ask of one of its `judges`, or of the run's judge (None), as far as runs know it beforehand."""
        return self.asked_kinds

    def require_declared(self, question: Question[Any]) -> None:
        """Raise ConfigError for a kind of question that the scorer doesn't declare."""
        if not isinstance(question, self.asked_kinds):
            kinds = dict.fromkeys(kind.__name__ for kind in (*self.questions, type(question)))
            line = f"questions = ({', '.join(kinds)}{',' * (len(kinds) == 1)})"
            raise ConfigError(
                f"{self.name} asks {type(question).__name__}, which it doesn't declare; {self._declares(line)}"
            )

    def _declares(self, line: str) -> str:
        """The place where the questions are declared. line: the declaration."""
        return f"add to the class {type(self).__name__}: {line}"

    @property
    def asks_again(self) -> bool:
        """Whether it asks each question several times, for independent answers."""
        return False

    @functools.cached_property
    def signature(self) -> str:
        """Name, changed parameters, fingerprints and version: `faithfulness(scale=10; 5c1d77b2, 9a0e41c3)@1`.

        The fingerprints are those of the prompts and, for a user's own scorer, of its code. A scorer of a plug-in also
        has the version of its package: `polite(5c1d77b2, acme-eval==1.2.0)@1`. Two scores are comparable if their
        signatures are equal.
        """
        parameters = [*self.changed_parameters()]
        changed = ", ".join(f"{name}={brief(value)}" for name, value in parameters)
        fingerprints = [prompt.fingerprint for prompt in self.prompts()]
        if code := class_hash(type(self)):
            fingerprints.append(code[:8])
        fingerprints += distributions_of([*type(self).__mro__, *(value for _, value in parameters if callable(value))])
        content = "; ".join(filter(None, (changed, ", ".join(fingerprints))))
        return f"{self.name}({content})@{self.version}" if content else f"{self.name}@{self.version}"

    def changed_parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and value of each parameter that differs from its default and is part of the signature."""
        for field in fields(self):
            if field.name not in self.excluded_from_signature and self._is_changed(field):
                yield field.name, getattr(self, field.name)

    def frozen(self) -> Scorer:
        """The scorer for a dataset that has what this one lets the judge write for a sample, as the first entry of
        `case_metadata`. By default, the scorer itself: nothing is written."""
        return self

    def check_case(self, metadata: Mapping[str, Any]) -> None:
        """Raise DataError if an entry of a sample's metadata that answers are held against isn't what it must be. By
        default, nothing is checked. It is called for each sample before anything is asked."""

    @property
    def checks_cases(self) -> bool:
        """Whether `check_case` checks anything. Otherwise, the samples need no reading before the run."""
        return type(self).check_case is not Scorer.check_case

    def prompts(self) -> tuple[Prompt, ...]:
        """Return the prompts of this scorer's questions. Their fingerprints are in the signature."""
        kinds = self.asked_kinds
        own = getattr(self, "prompt", None)  # for kinds of question that have no prompt of their own
        return tuple(prompt for kind in kinds if isinstance(prompt := getattr(kind, "prompt", own), Prompt))

    def values(self, sample: Sample) -> dict[str, Any]:
        """Return the arguments of `score` for this sample; None for an absent field."""
        return {name: value_of(sample, name) for name in self._fields or self.required_fields}

    async def run(self, ask: Ask, sample: Sample) -> Score | Skipped:
        """Score one sample. Errors of the judge and of the scorer's own code are raised.

        A user's own `score` that is a plain function runs in a thread, so that it doesn't block other samples.
        """
        outcome = self.scaled(await self._outcome_of(ask, sample))
        if self.explain and isinstance(outcome, Score):
            return replace(outcome, reason=await self._explained(ask, outcome))
        return outcome

    async def _outcome_of(self, ask: Ask, sample: Sample) -> Score | Skipped:
        """What `score` returns for a sample, or its outcome without that."""
        if self.extracts:
            sample = await self._extracted(sample)
        values = self.values(sample)
        if self.questions and sample.messages and (unseen := self._unseen(sample, values)):
            return Skipped(unseen)
        present = self.present(values, sample)
        if not isinstance(present, dict):
            return present
        arguments = (ask,) if self._takes_ask else ()
        if self._runs_user_code:
            # The code may modify these values, which other scorers and trials get too.
            present |= {name: copy.deepcopy(present[name]) for name in ("metadata", "state") if name in present}
            outcome = await sync.call(self.score, *arguments, **present)
        else:
            outcome = self.score(*arguments, **present)
            if inspect.isawaitable(outcome):
                outcome = await outcome
        return self._read_outcome(outcome)

    def _read_outcome(self, result: object) -> Score | Skipped:
        """What `score` returned as an outcome: a number is the score, True the scale, and False 0.

        Raises:
            OutcomeError: It is something else, or a number that is no score.
        """
        result = python_value(result)
        if isinstance(result, Score | Skipped):
            return result
        if isinstance(result, bool):
            return Score(result, str(result))
        if isinstance(result, int | float):
            return Score(result)
        expected = "a number, True or False, a Score or Skipped"
        undefined = " (if undefined, return Skipped(reason): from evalstone import Skipped)" if result is None else ""
        raise OutcomeError(f"{self.name} must return {expected}, not {type(result).__name__}{undefined}")

    def scaled(self, outcome: Score | Skipped) -> Score | Skipped:
        """Return an outcome of this scorer with its scale.

        Raises:
            OutcomeError: The score has another scale, or exceeds this one.
        """
        if not isinstance(outcome, Score):
            return outcome
        if outcome.scale is None:
            return Score(outcome.value, outcome.reason, scale=self.scale, evidence=outcome.evidence)
        if outcome.scale != self.scale:
            raise OutcomeError(f"{self.name}: the scale of the score is {outcome.scale:g}, the scorer's {self.scale:g}")
        return outcome

    @functools.cached_property
    def extracts(self) -> bool:
        """Whether a function of the sample supplies one of its fields."""
        return any(getattr(self, name) is not None for name in self.extractors.values())

    def lacks(self, sample: Sample, filled: Collection[str] = ()) -> list[Need]:
        """What a sample lacks. filled: the fields that a target may fill, except what answers are held against."""
        absent = self.absent(self.values(sample), sample)
        cases = [METADATA + name for name in self.case_metadata]
        missing = (need for need in self.needs if need.field in absent)
        return [need for need in missing if not any(root_of(n) in filled and n not in cases for n in need.fields)]

    def absent(self, values: Mapping[str, Any], sample: Sample | None = None) -> list[str]:
        """The required fields that have neither a value nor an alternative.

        values: By field, what `score` takes. sample: The sample that has the other fields.
        """
        required = ((name, _value(values, sample, name)) for name in self._required(values, sample))
        return [name for name, value in required if value is None or (name in LISTS and not value)]

    def _required(self, values: Mapping[str, Any], sample: Sample | None) -> Iterable[str]:
        """The required fields for which nothing else stands in."""
        if not any(self._checked.values()):
            return self._checked
        own = values if sample is None else vars(sample)
        required: list[str] = []
        for name, alternatives in self._checked.items():
            others = (_value(own, sample, other) for other in alternatives)
            if all(other == () or is_absent(other) for other in others):
                required.append(name)
        return required

    @functools.cached_property
    def _checked(self) -> Mapping[str, tuple[str, ...]]:
        """The required fields that no parameter supplies, with their alternatives. A field without which `score` can't
        be called has none: `values` has read them."""
        passed = self._arguments if self._fields else self.required_fields
        alternatives = {need.field: need.alternatives for need in self.needs} | dict.fromkeys(passed, ())
        return {name: alternatives[name] for name in self.required_fields if name in alternatives}

    @functools.cached_property
    def _takes_all(self) -> bool:
        """Whether all required fields are passed to `score`."""
        return all(name in self._arguments for name in self.required_fields)

    def present(self, values: Mapping[str, Any], sample: Sample | None = None) -> dict[str, Any] | Score | Skipped:
        """Return the fields that have a value, or the outcome of a sample that lacks a required field.

        Blank text and passages that are all blank don't count as values; an empty list of passages does. The arguments
        are those of `absent`.
        """
        present = {n: v for n, v in values.items() if not (v is None if n in self.reads_blank else is_absent(v))}
        if len(present) == len(values) and self._takes_all and not any(name in present for name in LISTS):
            return present
        absent = self.absent(values, sample)
        blank = [
            name
            for name in self._required(values, sample)
            if name not in absent and name not in self.reads_blank and is_absent(_value(values, sample, name))
        ]
        if not absent and not blank:
            return present
        reasons = [self.needs_text(absent)] * bool(absent)
        shown = joined([in_words(name) for name in blank])
        reasons += [f"the {shown} {'is' if len(blank) == 1 else 'are'} blank"] * bool(blank)
        return self.lacking("; ".join(reasons))

    def needs_text(self, fields: Iterable[str]) -> str:
        """Why a sample that lacks required fields has no score."""
        return f"{self.name} needs {listed_needs([need_of(self, name) for name in fields])}"

    def lacking(self, reason: str) -> Score | Skipped:
        """Return the outcome of a sample that lacks a required field."""
        return Skipped(reason)

    def read_messages(self, sample: Sample, field: str) -> Sequence[Message]:
        """Return the messages whose contents are a field of the sample, as this scorer reads it."""
        if field == "messages":
            return sample.messages
        role = FIELD_ROLES.get(field)
        return [message for message in sample.messages if message.role == role][-1:]

    def _unseen(self, sample: Sample, fields: Iterable[str]) -> str:
        """A reason that names the first field with an attachment, such as an image; empty if there is none."""
        for field in fields:
            kinds = [kind for message in self.read_messages(sample, field) for kind in message.attachments]
            if kinds:
                article = "an" if kinds[0][:1] in "aeiou" else "a"
                return f"the {field} contains {article} {kinds[0]}, which a text judge can't see"
        return ""

    async def _extracted(self, sample: Sample) -> Sample:
        """The sample with the fields that functions of the user supply.

        Raises what a function raises, and OutcomeError for a wrong type: either concerns this sample alone.
        """
        for field, name in self.extractors.items():
            if (function := getattr(self, name)) is not None:
                try:
                    value = await sync.call(function, sample)
                except ConfigError as error:
                    raise OutcomeError(f"{self.name}: {name}: ", error) from None
                try:
                    sample = replace(sample, **{field: value})
                except ConfigError as error:
                    raise OutcomeError(f"{self.name}: {name} returned a wrong value: ", error) from None
        return sample

    @functools.cached_property
    def _runs_user_code(self) -> bool:
        own_functions = (callable(getattr(self, field.name)) for field in fields(self))
        return is_own_code(type(self)) or any(own_functions)

    def description(self) -> str:
        """Return one sentence on what is measured."""
        return summary(type(self))

    async def _explained(self, ask: Ask, score: Score) -> str:
        """The judge's explanation of a score. If it fails, the score, which has been paid for, still stands."""
        try:
            return await ask(self._explanation(score))
        except JudgeError as error:
            return f"{score.reason} The explanation failed: {error}".strip()

    def _explanation(self, score: Score) -> Explain:
        direction = "lower is better" if self.lower_is_better else "higher is better"
        return Explain(
            measure=f"{self.name}: {score.value:.4g} out of {self.scale:g} ({direction}).\n{self.description()}",
            evidence=f"{score.reason}\n{json.dumps(to_jsonable(score.evidence), ensure_ascii=False)}",
        )


Scored: TypeAlias = float | Scalar | Score | Skipped
"""What a scorer returns: a number in [0, scale], True (the scale), False (0), a Score, or Skipped."""
ScorerFunction: TypeAlias = Callable[..., Scored | Awaitable[Scored]]
"""A function of sample fields, `def` or `async def`."""
ScorerSpec: TypeAlias = str | Mapping[str, Any] | Scorer | type[Scorer] | ScorerFunction | AsScorer
"""A name such as "faithfulness" or "context_relevance(scale=10)", a table of name and parameters, a Scorer, or a
function of sample fields."""


def docstring(kind: type[Scorer]) -> str:
    """A scorer's docstring, or that of the scorer that it derives from; its name if it has none."""
    text = inspect.getdoc(kind)
    if text and text != inspect.getdoc(Scorer):
        return text
    return kind.name if isinstance(kind.name, str) else kind.__name__  # pyright: ignore[reportUnnecessaryIsInstance]


def summary(kind: type[Scorer]) -> str:
    """The first line of a scorer's docstring."""
    return docstring(kind).partition("\n")[0]


def _value(values: Mapping[str, Any], sample: Sample | None, name: str) -> Any:
    """The value of a field among the arguments of `score`, else that of the sample."""
    if name in values:
        return values[name]
    if name.startswith(METADATA) and "metadata" in values:
        return metadata_at(values["metadata"] or {}, name.removeprefix(METADATA))
    return None if sample is None else value_of(sample, name)


def is_absent(value: object) -> bool:
    """Whether a field has no value: None, blank text, or passages that are all blank. An empty list is a value."""
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, tuple):
        return value is None
    return texts != () and all(isinstance(text, str) and is_blank(text) for text in cast("tuple[object, ...]", texts))


def require_known(label: str, what: str, names: Iterable[object], kind: type[Any]) -> None:
    """Raise ConfigError, with the nearest name, for a name in a table that is not a field of a dataclass.

    For an option of another system, the message names its counterpart here.
    """
    known = [field.name for field in fields(kind) if field.init]
    for name in map(str, names):
        if name not in known:
            counterpart = ""
            if issubclass(kind, Scorer):
                from evalstone.scorers.other_systems import hint  # noqa: PLC0415 - only errors need these tables

                counterpart = hint(name, kind.__name__, getattr(kind, "name", ""), known)
            if name in (inner := [field.name for field in fields(kind) if not field.init]):
                counterpart = f"{joined(inner)} are set on the scorer that it is applied to: scorer=…({name}=…)"
            if _is_constant(kind, name):
                counterpart = f"{name} is a constant of {kind.__name__}; a parameter has a type: {name}: TYPE = VALUE"
            if name in SAMPLE_FIELDS and not counterpart:  # it is no misspelling of a parameter
                counterpart = f"known: {', '.join(sorted(known))}"
            message = unknown(what, name, known)
            if counterpart:
                message = replace(message, parts=(f"unknown {what} {name!r}; {counterpart}",))
            raise ConfigError(f"{label}: ", message)


def _is_constant(kind: type[Any], name: str) -> bool:
    """Whether a class has a plain attribute of this name that isn't declared."""
    value = inspect.getattr_static(kind, name, None)
    is_code = callable(value) or isinstance(value, property | functools.cached_property | classmethod | staticmethod)
    return hasattr(kind, name) and not is_code and name not in kind.__dataclass_fields__


def require_complete(kind: type[Question[Any]]) -> None:
    """Raise ConfigError for a kind of question that can't be asked: it has no kind or no prompt."""
    if not isinstance(getattr(kind, "kind", None), str):
        raise ConfigError(f"the question {kind.__name__} has no kind; add a name to the class: kind = …")
    prompt: object = getattr(kind, "prompt", None)
    if prompt is None and "prompt" not in kind.__dataclass_fields__:
        raise ConfigError(f"the question {kind.__name__} has no prompt; add a field: prompt: Prompt = Prompt(…)")
    if isinstance(prompt, str):
        raise ConfigError(
            f"the question {kind.__name__}: prompt must be a Prompt(instructions=…, template=…), not text"
        )


def as_text(value: object) -> str:
    """Text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(to_jsonable(value), ensure_ascii=False)


def share(values: Sequence[bool]) -> float:
    """The share of values that are true, for at least one value."""
    return sum(values) / len(values)
