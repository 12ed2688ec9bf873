"""The plan of a run: dataset, scorers, judge and target, checked before the first call."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evalstone._core.code_identity import code_files, is_own_code, program_hash
from evalstone._core.declarations import Rule, check_settings
from evalstone._core.display import count, excerpt, joined, named
from evalstone._core.front_ends import Setting, WordingPart
from evalstone._core.json import content_hash
from evalstone._core.names import normal
from evalstone._core.sizes import MOST_OUTCOMES, Trials
from evalstone._core.values import NamesArguments
from evalstone.datasets import Dataset
from evalstone.datasets.columns import claims
from evalstone.datasets.loading import IN_MEMORY
from evalstone.errors import ConfigError, invalid, repeated
from evalstone.judges.base import Judge
from evalstone.results.drawn import place_in_order
from evalstone.results.summary import ScorerInfo, find_scorer, scorer_titles
from evalstone.scorers import SCORERS, Scorer
from evalstone.scorers.needs import in_words, listed_needs
from evalstone.scorers.registry import names_wrapper, parse_scorer
from evalstone.scorers.tables import definition_of
from evalstone.scorers.wrappers import applied
from evalstone.targets import FunctionTarget, Target
from evalstone.targets.users import FunctionUser, User
from evalstone.types import RunKind, Sample

if TYPE_CHECKING:
    from evalstone.run.conversations import CasesForTarget

WAITING = "waiting for "
"""The prefix of the stop reason of a run that waits for batches. It may follow that of a spent budget."""


FILLED = ("output", "messages", "context", "metadata", "trajectory", "state", "turns")
"""The sample fields that a target's answer may fill."""


def _is_path(value: object) -> bool:
    return isinstance(value, Path) or (isinstance(value, str) and bool(value.strip()))


FOLDER = Rule("the path of a folder", _is_path)


@dataclass(frozen=True)
class BatchOptions(metaclass=NamesArguments):
    """How a run uses batches.

    Raises ConfigError if `files` isn't a path.
    """

    wait: bool = False
    """Whether to wait for the batches. Otherwise the run ends after submitting them, and the same call resumes it."""
    on_state: Callable[[str], Awaitable[None] | None] | None = None
    """Called with the state of the batches whenever it changes. An exception that it raises ends the run."""
    files: Annotated[str | Path | None, FOLDER] = None
    """A folder. Requests are written to files in it, in OpenAI's batch format, and results are read from files beside
    them; nothing is sent. None uses the provider's batch API."""

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True)
class Plan:
    """Samples × scorers, with the judge that answers."""

    dataset: Dataset
    scorers: tuple[Scorer, ...]
    judge: Judge
    """Answers the questions of scorers without a judge of their own."""
    kind: RunKind = "evaluation"
    target: Target | None = None
    """The system under test, which answers each sample before it is scored."""
    trials: Trials = 1
    """The number of answers per sample."""
    user: User | None = None
    """The user that talks to the target if a sample has no turns."""
    keep_reasoning: bool = False
    """Whether reasoning in front of an output is scored as a part of it."""

    def __post_init__(self) -> None:
        check_settings(self)
        if self.trials > 1 and self.target is None:
            raise ConfigError(
                Setting("trials"), " needs a target, which answers several times; name one: ", Setting("target", ...)
            )
        if self.user is not None and self.target is None:
            raise ConfigError("a user talks to a target; name one: ", Setting("target", ...))

    @functools.cached_property
    def titles(self) -> Mapping[str, str]:
        """The scorers' titles by signature."""
        return scorer_titles([scorer_info(scorer) for scorer in self.scorers])

    @functools.cached_property
    def judges(self) -> tuple[Judge, ...]:
        """The plan's judge and the scorers' own, without duplicates."""
        own = (judge for scorer in self.scorers for judge in scorer.judges)
        return tuple({judge.identity: judge for judge in (self.judge, *own)}.values())

    @functools.cached_property
    def asked_judges(self) -> tuple[Judge, ...]:
        """The judges that the scorers are known to ask; empty if all scorers are code."""
        shared = any(scorer.asks_shared_judge for scorer in self.scorers)
        return self.judges if shared else tuple(judge for judge in self.judges if judge is not self.judge)

    @functools.cached_property
    def priced_judges(self) -> tuple[Judge, ...]:
        """All judges that are known to be asked: those of the scorers and of the simulated user."""
        return (*self.asked_judges, *(() if self.user is None else self.user.judges))

    @functools.cached_property
    def fingerprint(self) -> str:
        """The plan's identity: a hash of the dataset's version, the scorers with their prompts and judges, and the
        judge. Equal commands have equal plans."""
        return self.fingerprint_on(self.dataset.version)

    def fingerprint_on(self, version: str) -> str:
        """The identity of this plan on the dataset with this version."""
        scorers = [
            [s.signature, [prompt.digest for prompt in s.prompts()], [judge.identity for judge in s.judges]]
            for s in self.scorers
        ]
        content = [version, scorers, self.judge.identity, self.kind]
        if self.target is not None:
            content += [self.target.identity, self.trials, *self._code(self.target)]
        if self.user is not None:
            content.append(self.user.identity)
        if self.keep_reasoning:
            content.append("keep_reasoning")
        return content_hash(content)

    @functools.cached_property
    def code_files(self) -> tuple[str, ...]:
        """The files of the user's code that the fingerprint depends on. Those in the current folder are relative."""
        roots: list[object] = []
        if isinstance(self.target, FunctionTarget) and not self.target.version:
            roots += (self.target.function, self.target.prepare, self.target.finish)
        if isinstance(self.user, FunctionUser):
            roots.append(self.user.function)
        for scorer in self.scorers:
            for each in applied(scorer):
                roots += [type(each)] if is_own_code(type(each)) else []
                roots += [value for name, value in vars(each).items() if name != "judge"]
        here = Path.cwd()
        paths = [Path(path) for path in code_files(*roots)]
        return tuple(str(path.relative_to(here) if path.is_relative_to(here) else path) for path in paths)

    def _code(self, target: Target) -> Iterator[str]:
        """A hash of the code of a function target without a version. A run must not be resumed with changed code."""
        if isinstance(target, FunctionTarget) and not target.version:
            yield program_hash(target.function, target.prepare, target.finish)

    @property
    def size(self) -> int:
        """The number of outcomes of the run."""
        return len(self.dataset) * self.trials * len(self.scorers)

    def cases(self, samples: Iterable[Sample] | None = None) -> Iterator[Sample]:
        """The samples to score, one for each trial, before the target has answered them. samples: Some of the dataset;
        None for all."""
        some = self.dataset if samples is None else samples
        return iter(some) if self.target is None else cases(some, self.trials)

    def random_order(self) -> list[int]:
        """The indices of the samples in a random order that is the same for the same plan."""
        keys = [place_in_order(self.fingerprint, sample.id) for sample in self.dataset]
        return sorted(range(len(keys)), key=keys.__getitem__)

    def check(self, *, asking: bool = True, answering: bool = True) -> None:
        """Raise ConfigError if there are no samples or scorers, there are too many outcomes, a scorer is named twice, a
        judge has no key, or a scorer can score no sample.

        asking: Whether the run will call judges. answering: Whether it will call its target, which may need a key then.
        """
        if not len(self.dataset):
            raise ConfigError(f"{self.dataset.name} has no samples")
        self._check_size()
        self.check_scorers(asking=asking)
        if self.target is not None:
            self.target.check(self.trials)
            if answering:
                self.target.check_keys()
            self._check_cases(self.target, self.cases_for_target)
        filled = () if self.target is None else FILLED
        absent_fields = [absent_in(scorer, self.dataset, filled) for scorer in self.scorers]
        if all(absent is not None for absent in absent_fields):
            needed = any(need.within(("output", "messages")) for scorer in self.scorers for need in scorer.needs)
            unanswered = self.target is None and not any(sample.output or sample.messages for sample in self.dataset)
            hint: tuple[WordingPart, ...] = ". To have the samples answered, name a target: ", Setting("target", ...)
            raise self.unscorable(absent_fields, len(self.dataset), hint if needed and unanswered else ())

    @functools.cached_property
    def cases_for_target(self) -> CasesForTarget:
        """What the samples have for the target. The dataset, which may be in a file, is read once for all of it."""
        from evalstone.run.conversations import CasesForTarget  # noqa: PLC0415 - only with a target

        cases = CasesForTarget()
        if self.target is not None:
            for sample in self.dataset:
                cases.add(sample, self.target, self.user)
        return cases

    def _check_cases(self, target: Target, cases: CasesForTarget) -> None:
        """Raise ConfigError if the target can't be called with the samples."""
        if cases.reserved is not None:
            raise ConfigError(
                f"{self.dataset.name}: sample {excerpt(cases.reserved.id)} has a target in its metadata, where a run "
                "keeps what the call of its target took; give it another name"
            )
        self._check_conversations(target, cases)
        if not cases.answerable:
            raise ConfigError(f"no sample{self._of()} can be answered: {cases.unanswerable}", self._columns())

    def unscorable(
        self, absent: Iterable[Counter[str] | None], samples: int, hint: tuple[WordingPart, ...] = ()
    ) -> ConfigError:
        """The error of a plan whose scorers can score no sample.

        absent: For each scorer, how many samples lack each field that it needs. samples: The number of samples. hint:
        What to do about it.
        """
        lacks = zip(self.scorers, absent, strict=True)
        lacking = [(scorer, fields) for scorer, fields in lacks if fields is not None]
        problem = ". ".join(_lack(scorer, fields, samples) for scorer, fields in lacking)
        if any("reference" in fields for _, fields in lacking):
            hint = (*hint, *self._answer())
        error = ConfigError(f"no sample{self._of()} can be scored: {problem}", hint, self._columns())
        return error if hint else error.advised("evalstone check lists the scorers that can score the data")

    def check_scorers(self, *, asking: bool = True) -> None:
        """Raise ConfigError if there is no scorer, one is named twice, one repeats questions in vain, or a judge has no
        key. asking: whether the run will call judges."""
        if not self.scorers:
            raise ConfigError(f"no scorer was named; known: {', '.join(SCORERS)}")
        check_distinct(self.scorers)
        for scorer in self.scorers:
            for judge in scorer.judges:
                judge.check_questions(scorer.name, scorer.questions_to(judge))
            if scorer.asks_shared_judge:
                self.judge.check_questions(scorer.name, scorer.questions_to(None))
        for judge in self.judges:
            of_judge = [s for s in self.scorers if judge in s.judges or (judge is self.judge and s.asks_shared_judge)]
            if of_judge:
                judge.check_scorers([scorer.signature for scorer in of_judge])
        for judge in self.priced_judges if asking else ():
            judge.check()
        self.check_repeats()

    def _check_size(self) -> None:
        if self.size > MOST_OUTCOMES:
            factors = [count(len(self.dataset), "sample"), count(len(self.scorers), "scorer")]
            factors[1:1] = [count(self.trials, "trial")] * (self.trials > 1)
            raise ConfigError(
                f"{' × '.join(factors)} are {self.size:,} outcomes; a run can have at most {MOST_OUTCOMES:,}: "
                "split the samples over several runs"
            )

    def _of(self) -> str:
        return "" if self.dataset.name == IN_MEMORY else f" of {self.dataset.name}"

    def _check_conversations(self, target: Target, cases: CasesForTarget) -> None:
        """Raise ConfigError if the dataset has conversations and the target can't hold one."""
        if target.holds_conversations:
            if self.user is not None:
                raise ConfigError(f"{target.name} has its conversations already; leave the user out")
        elif not target.follows_conversations and (self.user is not None or cases.has_turns):
            raise ConfigError(
                f"the target {target.name} can't follow a conversation: it receives neither messages nor thread; "
                "add one of them to its parameters"
            )
        elif (sample := cases.contradicting) is not None:
            from evalstone.run.conversations import said_first  # noqa: PLC0415 - only with a target

            first = excerpt(said_first(sample, self.user))
            raise ConfigError(
                f"sample {excerpt(sample.id)}: ",
                invalid("its input", f"what the user says first, {first}, or left out", sample.input),
            )

    def check_repeats(self) -> None:
        """Raise ConfigError if a scorer repeats questions to a judge that always gives the same answer."""
        for scorer in self.scorers:
            asked = (*scorer.judges, *[self.judge] * scorer.asks_shared_judge)
            if scorer.asks_again and asked and all(judge.deterministic for judge in asked):
                names = joined([judge.identity for judge in asked])
                raise ConfigError(f"{scorer.name}: {names} gives the same answer each time; name a judge that can vary")

    def _answer(self) -> tuple[WordingPart, ...]:
        """What to do if the column `answer` has the expected answers, as in question-answering data."""
        column = next(
            (name for name, field in self.dataset.columns.items() if field == "output" and normal(name) == "answer"),
            None,
        )
        if column is None:
            return ()
        mapped = Setting("map", {"reference": named(column)})
        return f". If the column {named(column)}, read as output, has the expected answers, map it: ", mapped

    def _columns(self) -> tuple[WordingPart, ...]:
        # A known column may be ignored because another one took precedence.
        ignored = [column for column in self.dataset.ignored if not claims((column,))]
        if not ignored:
            return ()
        shown = ", ".join(ignored[:8])
        mapped = Setting("map", {"FIELD": "COLUMN"})
        return f". Columns that were not understood: {shown}; map one with ", mapped


def absent_in(scorer: Scorer, samples: Iterable[Sample], filled: Collection[str] = ()) -> Counter[str] | None:
    """How many samples lack each field that the scorer needs; None if it can score one of them.

    filled: The fields that a target may fill.
    """
    lacking = Counter[str]()
    for sample in samples:
        if not (absent := scorer.lacks(sample, filled)):
            return None
        lacking.update(need.field for need in absent)
    return lacking


def _lack(scorer: Scorer, lacking: Mapping[str, int], samples: int) -> str:
    """Why a scorer can score none of the samples, such as a field that all of them lack."""
    nowhere = [in_words(need.field) for need in scorer.needs if lacking.get(need.field) == samples]
    verb = "is" if len(nowhere) == 1 else "are"
    problem = f"{joined(nowhere)} {verb} absent" if nowhere else "no sample has all of it"
    return f"{scorer.name} needs {listed_needs(scorer.needs)}; {problem}"


def check_distinct(scorers: Iterable[Scorer]) -> None:
    """Raise ConfigError if a scorer is named twice."""
    counts = Counter(scorer.signature for scorer in scorers)
    if twice := [signature for signature, count in counts.items() if count > 1]:
        raise ConfigError(repeated("scorers", twice[0], f"the scorer {twice[0]} is named twice"))


def named_scorer(name: str, scorers: Sequence[ScorerInfo]) -> ScorerInfo:
    """The scorer of a run that a title, a signature, a name or a spec refers to.

    A spec may also name default values, and a scorer that is applied to another one, as in
    `per_turn(scorer=contains(expected=x))`. No module is imported for it.

    Raises:
        ConfigError: There is no such scorer, or there are several.
    """
    try:
        return find_scorer(name, scorers)
    except ConfigError as problem:
        if "(" not in name or ":" in name.partition("(")[0] or (":" in name and names_wrapper(name)):
            raise  # to build it may import a module
        try:
            signature = parse_scorer(name).signature
        except ConfigError:
            raise problem from None
        for info in scorers:
            if info.signature == signature:
                return info
        raise


def cases(samples: Iterable[Sample], trials: int) -> Iterator[Sample]:
    """The samples for a target, one for each trial, without the `target` metadata of an earlier run."""
    for sample in samples:
        if "target" in sample.metadata:
            metadata = {name: value for name, value in sample.metadata.items() if name != "target"}
            sample = replace(sample, metadata=metadata)
        if trials == 1:
            yield sample
        else:
            yield from (replace(sample, trial=trial) for trial in range(1, trials + 1))


def scorer_info(scorer: Scorer) -> ScorerInfo:
    """The scorer's description in results."""
    frozen = scorer.frozen()
    written = [kind.kind for kind in scorer.asked_kinds if kind not in frozen.asked_kinds]
    return ScorerInfo(
        name=scorer.name,
        signature=scorer.signature,
        scale=scorer.scale,
        lower_is_better=scorer.lower_is_better,
        case_metadata=scorer.case_metadata,
        written_by=written[0] if written else "",
        frozen_signature=frozen.signature if written else "",
        description=scorer.description(),
        definition=definition_of(scorer) or {},
    )
