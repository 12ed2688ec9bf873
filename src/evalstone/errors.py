"""The errors that evalstone raises.

    EvalstoneError
    ├── ConfigError            the caller can fix it: an unknown name, a missing key, a bad option; a ValueError too
    │   ├── DataError          a data file or a sample cannot be read; names file, line and field
    │   ├── NotComparable      two runs differ in what they must have in common
    │   ├── UnknownName        a result has nothing of this name, or several things; a KeyError too
    │   ├── PromptError        a template has an unknown or a missing placeholder
    │   └── MissingDependency  an optional library is missing; has the install command; an ImportError too
    ├── OutcomeError           a scorer returned no valid outcome: not finite, or outside its range
    ├── StorageError           results cannot be written or read: a full disk, a lost server
    │   ├── LedgerError        the ledger broke, or was lost
    │   │   ├── LedgerBusyError        another process holds the lock and did not release it in time
    │   │   ├── LedgerConnectionError  the connection to the ledger's server was lost
    │   │   └── LedgerValueError       its database refuses a value: too long, or out of range
    │   └── WriteError         a file or standard output cannot be written to the end
    ├── RunAborted             the run cannot continue; what it has is kept
    │   ├── BudgetExceeded     the next call does not fit into the budget
    │   │   └── RequestLimitReached  max_requests is reached
    │   ├── JudgeRefused       the judge's endpoint refuses the key or the model, requires payment, or redirects
    │   ├── JudgeUnavailable   the judge fails on every question, or has stopped answering
    │   ├── TargetUnavailable  the target fails on every sample, or has stopped answering
    │   ├── AnswerPending      the answer will come from a provider's batch
    │   ├── RunStopped         the run was asked to stop before this question, or its next request, was sent
    │   └── BatchError         a provider did not accept a batch, or cannot report its state
    ├── TargetError            a target gave no usable answer
    │   ├── TargetUnreachable  it could not be reached
    │   └── TargetRefused      it refuses access, or does not exist
    └── JudgeError             a judge gave no usable answer
        ├── JudgeDeclined      this judge cannot answer this question; the outcome is Skipped
        ├── QuestionTooLong    the question is longer than the judge takes, so that it was not asked
        ├── ProviderError      the endpoint refused, failed or could not be reached
        │   ├── ProviderTimeout    no answer before the timeout
        │   ├── PromptTooLong      the question doesn't fit into the model's context window
        │   └── DeliveryUnknown    it is not known whether the request was carried out
        └── ReplyError         the reply is not an answer: no JSON, wrong shape, wrong count, cut off

A ConfigError always reaches the caller. A JudgeError becomes a Failed or Skipped outcome of one sample and scorer; a
calibration or an audit without any score raises one. A TargetError becomes a Failed outcome of one sample and trial.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from evalstone._core.display import excerpt
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting, Wording, WordingPart
from evalstone._core.installed import extra_command
from evalstone._core.json import to_jsonable
from evalstone._core.redaction import masked, redacted

__all__ = [
    "AnswerPending",
    "BatchError",
    "BudgetExceeded",
    "ConfigError",
    "DataError",
    "DeliveryUnknown",
    "ErrorKind",
    "EvalstoneError",
    "EvalstoneWarning",
    "JudgeDeclined",
    "JudgeError",
    "JudgeRefused",
    "JudgeUnavailable",
    "LedgerBusyError",
    "LedgerConnectionError",
    "LedgerError",
    "LedgerValueError",
    "MissingDependency",
    "NotComparable",
    "OutcomeError",
    "Problem",
    "PromptError",
    "PromptTooLong",
    "ProviderError",
    "ProviderTimeout",
    "QuestionTooLong",
    "ReplyError",
    "RequestLimitReached",
    "RunAborted",
    "RunStopped",
    "StorageError",
    "TargetError",
    "TargetRefused",
    "TargetUnavailable",
    "TargetUnreachable",
    "UnknownName",
    "WriteError",
]

ErrorKind: TypeAlias = Literal["unknown", "invalid", "missing", "repeated", "dependency", "unrecognized", ""]
"""What is wrong: a name that nothing has, a value that must be another, a thing that isn't there, one that is there
twice, a library that isn't installed, or data without a column that is a field; "" for anything else."""


@dataclass(frozen=True)
class Problem:
    """A part of an error's message, and the same as values (see `EvalstoneError`)."""

    parts: tuple[WordingPart, ...]
    kind: ErrorKind
    field: str = ""
    # Any: whatever was passed.
    value: Any = None
    allowed: str = ""
    known: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        return PYTHON.written(self.parts)

    def worded(self, text: str, *near: str) -> Problem:
        """The same problem, as this message. near: other names that are most like the unknown one."""
        return replace(self, parts=(text,), near=near or self.near)


class EvalstoneWarning(UserWarning):
    """Something that evalstone does otherwise than it may look: data that are read with a caveat, or a plug-in that is
    not used because its name is a built-in one."""


class EvalstoneError(Exception):
    """The root of all errors raised by evalstone. Secrets in their texts are written as `***`.

    The message is made of parts: texts, settings, and exceptions that it quotes. `str` shows settings as in Python.

    run: if the error ended a run, the `Run` with the results until then. advice: what to do about it, as the last
    part of the message; "" if it needs none.

    What is wrong is also there as values, if it is one of a few common things; an error that quotes another has the
    other's:

    kind: "unknown" (a name that nothing has), "invalid" (a value that must be another), "missing", "repeated",
    "dependency" (a library that isn't installed), "unrecognized" (no column of the data is a field), or "".
    field: the name of the setting, column or other thing that is invalid, missing or repeated; of an unknown name, what
    it should be the name of ("scorer").
    value: the unknown name, or the invalid or repeated value; of anything but text, numbers, true and false, its repr,
    shortened. That of a secret is None.
    allowed: what a value may be ("a number from 0 to 1").
    known: the names that exist. near: those most like the unknown one.
    """

    # Any: Run lives in a layer above this one.
    run: Any = None
    advice: str = ""
    kind: ErrorKind = ""
    field: str = ""
    # Any: whatever was passed.
    value: Any = None
    allowed: str = ""
    known: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def __init__(self, *parts: Wording | Problem | Exception) -> None:
        self.parts = tuple(_parts_of(parts))
        for part in parts:
            if isinstance(part, Problem | EvalstoneError) and part.kind and not self.kind:
                self.kind, self.field, self.value, self.allowed = part.kind, part.field, part.value, part.allowed
                self.known, self.near = part.known, part.near
        super().__init__(masked(PYTHON.written(self.parts)))

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data: `error` (its class), `message`, and the values that it has."""
        names = ("advice", "kind", "field", "value", "allowed", "known", "near")
        values = {name: value for name in names if (value := getattr(self, name)) != getattr(EvalstoneError, name)}
        return {"error": type(self).__name__, "message": self.problem, **to_jsonable(values)}

    def text(self, front_end: FrontEnd) -> str:
        """The message, with settings as users of a front end write them."""
        problem = masked(front_end.written(self.parts))
        return f"{problem}; {self.advice}" if self.advice else problem

    @property
    def problem(self) -> str:
        """The message without the advice."""
        return Exception.__str__(self)  # a KeyError's own text is a repr

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}" if self.advice else self.problem

    def located(self, place: str) -> Self:
        """This error, after the place where it was found."""
        self.parts = (place, *self.parts)
        self.args = (f"{place}{self.problem}",)
        return self

    def advised(self, advice: str) -> Self:
        """This error, with advice."""
        self.advice = advice
        return self


def _parts_of(parts: Iterable[Wording | Problem | Exception]) -> Iterator[WordingPart]:
    """The parts of a message; those of an error that is quoted in it stand in its place."""
    for part in parts:
        if isinstance(part, EvalstoneError):
            yield from part.parts
            if part.advice:
                yield f"; {part.advice}"
        elif isinstance(part, Problem):
            yield from part.parts
        elif isinstance(part, tuple):
            yield from part
        else:
            yield part if isinstance(part, str | Setting | Hint) else str(part)


class ConfigError(EvalstoneError, ValueError):
    """An error that the caller can fix. The message has the invalid value and the expected one."""


class DataError(ConfigError):
    """A data file, or one of its rows, cannot be read as samples."""


class NotComparable(ConfigError):
    """Two runs can't be compared, because their judges, scorers or cases differ.

    mismatches: how they differ, as `Note`s.
    """

    # Any: Note lives in a layer above this one.
    def __init__(self, *parts: Wording | Problem | Exception, mismatches: Any = ()) -> None:
        super().__init__(*parts)
        self.mismatches = mismatches


class UnknownName(ConfigError, KeyError):
    """`result[name]` for a name that nothing in the result has, or several things have."""


class PromptError(ConfigError):
    """A prompt template lacks a required placeholder, or has an unknown one."""


class MissingDependency(ConfigError, ImportError):
    """An optional library is needed and absent."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed; install it with: {extra_command(extra, library)}")
        self.library, self.extra = library, extra
        self.kind, self.field, self.name = "dependency", library, library

    def __reduce__(self) -> tuple[type[MissingDependency], tuple[str, str]]:
        return type(self), (self.library, self.extra)


class OutcomeError(EvalstoneError):
    """A scorer returned no valid outcome: its value isn't a finite number in [0, scale], or its data is missing or
    invalid."""


class StorageError(EvalstoneError):
    """Results can't be written or read, although their location is valid. If it ended a run, the ledger may lack the
    last of the results in `run`."""


class LedgerError(StorageError):
    """The ledger is damaged, lost or unreachable. A file that isn't a ledger is a ConfigError."""


class LedgerBusyError(LedgerError):
    """Another process held the lock on the ledger until the timeout."""


class LedgerConnectionError(LedgerError):
    """The ledger's server closed the connection, or doesn't accept one."""


class LedgerValueError(LedgerError):
    """The ledger's database refuses a value, such as a text that is too long or a number that is out of range. Retrying
    doesn't help."""


class WriteError(StorageError):
    """A file or standard output can't be written completely: the disk is full, or the reader has closed the pipe."""


class RunAborted(EvalstoneError):
    """A run can't continue. The results so far are in `run`, and in the ledger if there is one."""


class BudgetExceeded(RunAborted):
    """The next question would exceed the rest of the run's budget."""


class RequestLimitReached(BudgetExceeded):
    """`max_requests` of a judge or a target is reached."""


class JudgeRefused(RunAborted):
    """The judge's endpoint refuses the key or the model, requires payment, or redirects to another address."""


class JudgeUnavailable(RunAborted):
    """The judge failed on each of the first questions of a run, or its endpoint stopped answering."""


class TargetUnavailable(RunAborted):
    """The target failed on each of the first samples of a run, or can no longer be reached."""


class AnswerPending(RunAborted):
    """A question's answer will come from a provider's batch. The outcome stays open; the run continues with others."""


class RunStopped(RunAborted):
    """The run was asked to stop before a question, or its next request, was sent. The outcome stays open."""


class BatchError(RunAborted):
    """A provider didn't accept a batch, or can't report its state."""


class TargetError(EvalstoneError):
    """A target gave no usable answer for one sample and trial."""


class TargetUnreachable(TargetError):
    """A target could not be reached. A run that resumes asks it again."""


class TargetRefused(TargetError):
    """A target refuses access or doesn't exist: wrong credentials, no credit, a wrong address. It ends a run in which
    the target hasn't answered yet."""


class JudgeError(EvalstoneError):
    """A judge gave no usable answer.

    reply: the last raw text it gave, if any. usage: the `Usage` of all attempts, None when nothing was used. cost: US
    dollars, None when the price is unknown. seconds: from the question to this error. members: the steps of the judges
    that a judge of judges asked. source: `shared` when an equal call of the run failed, and this one wasn't made.
    corrections: the replies that were corrected before, each with its error.
    """

    def __init__(
        self,
        message: str,
        *,
        reply: str | None = None,
        # Any: Usage lives in a layer above this one.
        usage: Any = None,
        cost: float | None = 0.0,
        seconds: float = 0.0,
        members: Any = (),
    ) -> None:
        super().__init__(message)
        self.reply = None if reply is None else redacted(reply)
        self.usage, self.cost, self.seconds = usage, cost, seconds
        self.members = members
        self.source: Literal["asked", "shared"] = "asked"
        self.corrections: tuple[Mapping[str, str], ...] = ()


class JudgeDeclined(JudgeError):
    """This judge cannot answer this question, or declined to; the outcome is undefined, not broken."""


class QuestionTooLong(JudgeError):
    """The question is longer than the judge takes and can't be asked in parts. Nothing was asked."""


class ProviderError(JudgeError):
    """The judge's endpoint refused the request, failed, or could not be reached."""


class ProviderTimeout(ProviderError):
    """The judge's endpoint gave no answer to a request within its timeout, or to a question within the total
    timeout."""


class PromptTooLong(ProviderError):
    """The question doesn't fit into the model's context window.

    window: the tokens that the model takes in, where the endpoint says so.
    """

    def __init__(self, message: str, *, window: int | None = None, **spent: Any) -> None:
        super().__init__(message, **spent)
        self.window = window


class DeliveryUnknown(ProviderError):
    """The judge's endpoint didn't answer a request that must not be sent twice; it may have been carried out."""


class ReplyError(JudgeError):
    """The judge replied, but the reply is not an answer to the question."""


LONGEST_GUESSED = 200
"""The most characters of a name that is compared with known ones. Comparing 4,000 takes a second."""
MOST_GUESSES = 3
"""If more names contain the unknown one as a word, the message lists all known ones."""
_GENERIC = re.compile(r"(?<=.)_(?:score|metric|scorer|evaluator)$")


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like a name, in letters or in words, the nearest first; none for a long name."""
    if len(name) > LONGEST_GUESSED:
        return []
    words = _words(_GENERIC.sub("", "_".join(_words(name))))
    ranked = sorted(((_likeness(words, _words(each)), each) for each in known), reverse=True)[:MOST_GUESSES]
    return [each for likeness, each in ranked if likeness and likeness >= ranked[0][0] - 0.2]


def _words(name: str) -> list[str]:
    """The words of `token_f1`, `token-f1` or `tokenF1`."""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def _likeness(words: list[str], known: list[str]) -> float:
    """The similarity of two names, from 0 to 1: the higher of the similarity of their letters and the share of letters
    in words that both have, in any order. 0 for names with little in common."""
    letters = _ratio("".join(words), "".join(known))
    sizes = len("".join(words)), len("".join(known))
    nearest = [max((_ratio(word, each) for each in known), default=0) for word in words]
    alike = sum(len(word) * ratio for word, ratio in zip(words, nearest, strict=True) if ratio >= 0.75)
    # The mean of two shares: of both names, and of the wrong one alone, which may be a part of the right one.
    shared = (2 * alike / sum(sizes) + alike / sizes[0]) / 2 if words else 0
    return max(letters if letters >= 0.7 else 0, shared if shared >= 0.6 else 0)


def _ratio(one: str, other: str) -> float:
    import difflib  # noqa: PLC0415 - only errors need it

    return difflib.SequenceMatcher(None, one, other).ratio()


def unknown(what: str, name: str, known: Iterable[str], *, meant: Iterable[str] = ()) -> Problem:
    """An unknown name: `unknown scorer 'fathfulness'; did you mean faithfulness?`

    meant: the known names that are suggested; by default, those that are most like the name.
    """
    names = tuple(sorted(known))
    is_common = sum(name.lower() in each.split("_") for each in names) > MOST_GUESSES
    guesses = tuple(meant) or (() if is_common else tuple(near(name, names)))
    hint = f"did you mean {' or '.join(guesses)}?" if guesses else f"known: {', '.join(names) or 'none'}"
    text = f"unknown {what} {name!r}; {hint}"
    return Problem((text,), "unknown", what, masked(name), known=names, near=guesses)


def invalid(field: Wording, allowed: str, value: Any, shown: str | None = None, *, verb: str = "must be") -> Problem:
    """A value that must be another: `trials must be a whole number from 1 to 100, not 0`.

    Args:
        field: the name of what has the value.
        allowed: what it may be.
        value: the value; it is kept without secrets.
        shown: how the message shows it. None: its repr, shortened.
        verb: what is between the name and what is allowed.
    """
    parts = field if isinstance(field, tuple) else (field,)
    if shown is None:
        shown = f"{value}" if isinstance(value, float) else excerpt(value)  # the repr of numpy's floats has their type
    name = PYTHON.written(parts)
    text = f"{' ' * bool(name)}{verb} {allowed}, not {shown}"
    return Problem((*parts, text), "invalid", name, _plain(value), allowed)


def of_another_type(allowed: str, value: Any) -> Problem:
    """A value of the wrong type, of what is named around it: `must be text, not int: 5`."""
    return invalid("", allowed, value, f"{type(value).__name__}: {excerpt(value)}")


def _plain(value: Any) -> str | float | bool | None:
    """A value without secrets that can be pickled and written as JSON."""
    return masked(value) if value is None or isinstance(value, str | int | float) else masked(excerpt(value))


def absent(field: str, *text: WordingPart, known: Iterable[str] = ()) -> Problem:
    """A thing that isn't there. text: the message. known: the names that are there."""
    return Problem(text, "missing", field, known=tuple(sorted(known)))


def repeated(field: str, value: Any, *text: WordingPart) -> Problem:
    """A value that is there twice. field: what has it. text: the message."""
    return Problem(text, "repeated", field, _plain(value))


def error_text(error: BaseException) -> str:
    """The text of an error: of evalstone's errors the message alone, of any other as `described`."""
    return str(error) if isinstance(error, EvalstoneError) else described(error)


def described(error: BaseException) -> str:
    """An error of the user's code with its innermost line: `KeyError: 'id' (my_scorers.py, line 13)`"""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - its own code may raise anything
        text = "its text can't be read"
    place = user_line(error)
    return masked(f"{type(error).__name__}: {text}{place and f' ({place})'}")


def user_line(error: BaseException) -> str:
    """The innermost line of the user's own code in an error's traceback; "" without one."""
    libraries = (str(Path(os.__file__).parent), str(Path(__file__).parent), "<frozen")
    places = [
        (path, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not (path := frame.f_code.co_filename).startswith(libraries)
        and "site-packages" not in path
        and (path, frame.f_code.co_name) != ("<string>", "__init__")  # which a dataclass has generated
    ]
    return f"{Path(places[-1][0]).name}, line {places[-1][1]}" if places else ""
