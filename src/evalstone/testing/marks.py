"""`@pytest.mark.evalstone(…)`: the arguments of the mark, which are checked when tests are collected."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import pytest

from evalstone._core import front_ends
from evalstone._core.declarations import ANYTHING, check_settings
from evalstone._core.display import joined
from evalstone._core.sizes import Limit, Trials
from evalstone.datasets import Dataset, Samples, load
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.loading import load_for_scoring
from evalstone.errors import ConfigError, EvalstoneError, absent, unknown
from evalstone.judges import parse_judge
from evalstone.judges.base import JudgeSpec
from evalstone.results.gate_criteria import CRITERIA, DIRECTIONS, GateCriteria, Inconclusive
from evalstone.results.largest_change import BySetting
from evalstone.results.missing_scores import Missing, check_missing
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo, scorer_titles
from evalstone.run.plan import Plan, check_distinct, named_scorer, scorer_info
from evalstone.run.planning import TargetSpec, UserSpec
from evalstone.scorers import Scorer, parse_scorers
from evalstone.scorers.base import ScorerSpec
from evalstone.stats.gates import check_alpha
from evalstone.targets import parse_target, parse_user
from evalstone.targets.base import PARAMETERS, parameter_values
from evalstone.testing.names import LONGEST_ID, MARK, PARAMETER
from evalstone.types import Sample

REQUIRED: Any = object()


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The arguments of the mark."""

    dataset: Annotated[Samples, ANYTHING] = REQUIRED
    """Samples, as for `evaluate`; a relative path is relative to the test file."""
    scorers: Annotated[ScorerSpec | Iterable[ScorerSpec], ANYTHING] = ()
    """The scorers, as for `evaluate`; by default those with a threshold."""
    min: Annotated[Mapping[str, float] | None, ANYTHING] = None
    """Scorer to lowest acceptable mean; with `each`, score. For scorers where higher is better."""
    max: Annotated[Mapping[str, float] | None, ANYTHING] = None
    """Scorer to highest acceptable mean; with `each`, score. For scorers where lower is better."""
    pass_rate: Annotated[Mapping[str, tuple[float, float]] | None, ANYTHING] = None
    """Scorer to (score, share): at least this share of the samples must reach the score."""
    max_regression: Annotated[Mapping[str, float] | None, ANYTHING] = None
    """Scorer to the largest acceptable regression: how much worse than the baseline the mean may be."""
    max_difference: Annotated[Mapping[str, float] | None, ANYTHING] = None
    """Scorer to the largest acceptable difference from the baseline's mean, in either direction."""
    require: Annotated[Sequence[str], ANYTHING] = ()
    """Scorers for which every sample must have the best score."""
    each: bool = False
    """Whether to make one test per sample, instead of one statistical test of all."""
    target: TargetSpec | None = None
    """The system that answers the samples, if the test itself doesn't."""
    trials: Trials | None = None
    """How often each sample is answered."""
    judge: JudgeSpec | None = None
    """The judge of this test, instead of `evalstone_judge`."""
    user: UserSpec | None = None
    """The simulated user, as for `evaluate`."""
    map: Annotated[ColumnMapping | None, ANYTHING] = None
    """Sample field to column name."""
    limit: Limit | None = None
    """Only the first samples, this many."""
    keep_reasoning: bool = False
    """Whether a model's reasoning in front of an output is scored as a part of it."""
    baseline: Annotated[Run | str | Path | None, ANYTHING] = None
    """The run that regressions and differences are measured against: a Run, a results folder relative to the test file,
    or the ID or name of a run in the ledger."""
    alpha: float | None = 0.05
    """The probability of a wrong pass, and of a wrong fail; None compares the means themselves."""
    missing: Missing = "worst"
    """How samples without a score count, as for `gate`."""
    max_change: Annotated[BySetting, ANYTHING] = None
    """The largest possible change of a sample's score from the baseline, as for `gate`."""
    allow_mismatch: bool = False
    """Whether to accept a baseline whose judge, scorers or cases differ."""
    inconclusive: Inconclusive = "fail"
    """The result of the test if the samples don't decide it: "fail", "pass", or "report", which skips it."""


STATISTICAL = (
    *(name for name in CRITERIA if name not in (*DIRECTIONS, "require")),
    *("target", "user", "baseline", "alpha", "missing", "max_change", "allow_mismatch", "inconclusive"),
)
"""Arguments that make no sense with `each`."""


@dataclass(frozen=True)
class Case:
    """The task of a marked test: its mark, and the dataset or one of its samples."""

    mark: Mark
    dataset: Dataset
    scorers: tuple[Scorer, ...]
    criteria: GateCriteria
    largest_changes: Mapping[str, float]
    """Scorer title to the largest possible change of a sample."""
    takes: tuple[str, ...]
    """The parameters of the test that get fields of each sample."""
    sample: Sample | None = None
    """With `each`, the sample of this test."""

    @property
    def answers(self) -> bool:
        """Whether the test returns the answer to a sample, which is then scored."""
        return any(name in PARAMETERS for name in self.takes)


def parametrize(metafunc: pytest.Metafunc, mark: pytest.Mark) -> None:
    """Parametrize a marked test with its dataset, or with each of its samples."""
    __tracebackhide__ = True
    try:
        case = _case(metafunc, mark)
    except EvalstoneError as error:
        _refuse(metafunc, error.text(front_ends.MARK))
    metafunc.fixturenames.append(PARAMETER)
    names = [*case.takes, PARAMETER]
    if not case.mark.each:
        # The values are filled in for each sample; a test of all has no parameter in its id, where pytest can do so.
        hidden = getattr(pytest, "HIDDEN_PARAM", case.dataset.name)
        metafunc.parametrize(names, [(*(None for _ in case.takes), case)], ids=[hidden])
        return
    rows = [  # what fixtures see of a sample; the test itself has its values anew for each trial
        (*map(sample_values(sample, 1).__getitem__, case.takes), dataclasses.replace(case, sample=sample))
        for sample in case.dataset
    ]
    metafunc.parametrize(names, rows, ids=[sample.id[:LONGEST_ID] for sample in case.dataset])


def sample_values(sample: Sample, trial: int) -> dict[str, Any]:
    """The values of a sample for tests and fixtures, by parameter name."""
    return {**parameter_values(sample, trial=trial, thread=f"{sample.id}-{trial}"), "sample": sample}


def refuse_parameter(metafunc: pytest.Metafunc) -> NoReturn:
    """Refuse the mark on `pytest.param`: parameters are applied after the tests of a dataset are made."""
    _refuse(
        metafunc,
        "the mark is on a parameter (pytest.param), where it has no effect; mark the function, its class or its "
        "module, or write a test for each dataset",
    )


def _refuse(metafunc: pytest.Metafunc, problem: str) -> NoReturn:
    """End the collection of the file with an error that names the mark's place."""
    file, line = _place(metafunc.function)
    raise pytest.Collector.CollectError(
        f"{file}:{line}: @pytest.mark.evalstone of {metafunc.function.__name__}: {problem}"
    )


def _place(function: Any) -> tuple[str, int]:
    """The file and line of a test's mark, or of the test's first decorator if the mark is elsewhere."""
    function = inspect.unwrap(function)
    first: int = function.__code__.co_firstlineno
    try:
        lines = inspect.getsourcelines(function)[0]
    except OSError:
        lines = []
    decorators = (place for place, line in enumerate(lines) if "mark.evalstone" in line)
    return str(function.__code__.co_filename), first + next(decorators, 0)


def _case(metafunc: pytest.Metafunc, mark: pytest.Mark) -> Case:
    nodes = [node for node, _ in metafunc.definition.iter_markers_with_node(MARK)]
    if nodes.count(nodes[0]) > 1:
        raise ConfigError("two marks are on one test, class or module; write a test for each")
    arguments = _mark(mark)
    scorers, criteria, largest_changes = _scorers_and_criteria(arguments)
    source = arguments.dataset
    if isinstance(source, str | Path):
        source = metafunc.definition.path.parent / source
        dataset = _loaded(metafunc.config, source, arguments.map)
    else:
        dataset = source if isinstance(source, Dataset) else load_for_scoring(source, map=arguments.map)
    dataset = dataset.first(arguments.limit)
    offered = (*PARAMETERS, "sample") if arguments.each else PARAMETERS
    takes = tuple(name for name in inspect.signature(metafunc.function).parameters if name in offered)
    if not arguments.each:
        for name, fixtures in metafunc.definition._fixtureinfo.name2fixturedefs.items():  # pyright: ignore[reportPrivateUsage]
            if lacking := [taken for taken in takes if taken in fixtures[-1].argnames]:
                raise ConfigError(f"the fixture {name} takes {joined(lacking)}, which it has with each=True alone")
    case = Case(arguments, dataset, scorers, criteria, largest_changes, takes)
    if case.answers and arguments.target is not None:
        raise ConfigError(f"the test takes {takes[0]}, so that it is the target itself; leave out target=…")
    if arguments.trials is not None and not case.answers and arguments.target is None:
        raise ConfigError("trials repeat what answers: let the test take input and return an answer, or set target=…")
    if arguments.each and case.answers and any(len(sample.turns) > 1 for sample in dataset):
        raise ConfigError("with each=True a test answers one turn, and samples have several; leave out each=True")
    with _argument("target"):
        target = None if arguments.target is None else parse_target(arguments.target)
    with _argument("user"):
        user = None if arguments.user is None else parse_user(arguments.user)
    with _argument("judge"):
        judge = parse_judge("lexical" if arguments.judge is None else arguments.judge)
    if not case.answers:  # otherwise the test itself is the target, and checked when it is called
        Plan(dataset, scorers, judge, target=target, trials=arguments.trials or 1, user=user)
    return case


@contextlib.contextmanager
def _argument(name: str) -> Generator[None]:
    """Errors name the argument of the mark."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{name}: ", error) from None


@dataclass(frozen=True)
class _File:
    """A file as it was when it was loaded."""

    state: tuple[int, ...]
    mapping: object
    dataset: Dataset


_FILES = pytest.StashKey[dict[Path, _File]]()


def _loaded(config: pytest.Config, path: Path, mapping: ColumnMapping | None) -> Dataset:
    """The dataset of a file. It is read once per session, unless it changes or another mapping is used."""
    files = config.stash.setdefault(_FILES, {})
    path = path.resolve()
    try:
        stat = path.stat()
    except OSError:
        return load(path, map=mapping)  # which says what is wrong
    state = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    if (known := files.get(path)) is None or (known.state, known.mapping) != (state, mapping):
        files[path] = known = _File(state, mapping, load(path, map=mapping))
    return known.dataset


def _mark(mark: pytest.Mark) -> Mark:
    """The arguments of a mark. Raises ConfigError for an unknown, missing or wrong argument."""
    known = [field.name for field in dataclasses.fields(Mark)]
    if mark.args:
        raise ConfigError(f'name the arguments: evalstone(dataset="cases.jsonl", …), not {mark.args[0]!r:.80}')
    for name in mark.kwargs:
        if name not in known:
            raise ConfigError(unknown("argument", name, known))
    arguments = Mark(**mark.kwargs)
    if arguments.dataset is REQUIRED:
        raise ConfigError(absent("dataset", 'dataset is missing: evalstone(dataset="cases.jsonl", …)'))
    check_settings(arguments)
    check_missing(arguments.missing)
    if arguments.alpha is not None:
        check_alpha("alpha", arguments.alpha)
    if arguments.each and (names := [name for name in STATISTICAL if name in mark.kwargs]):
        raise ConfigError(f"{names[0]} is about all samples, and each=True makes a test of every sample; leave one out")
    return arguments


def _scorers_and_criteria(mark: Mark) -> tuple[tuple[Scorer, ...], GateCriteria, Mapping[str, float]]:
    """The scorers, and their criteria and largest changes by title.

    Raises ConfigError for an unknown scorer, or a threshold that doesn't fit it.
    """
    criteria = GateCriteria.of(**{name: getattr(mark, name) for name in CRITERIA})
    named = dict[str, ScorerInfo]()
    if mark.scorers == ():
        parsed = dict(zip(criteria.scorers, parse_scorers(list(criteria.scorers)), strict=True))
        scorers = tuple({scorer.signature: scorer for scorer in parsed.values()}.values())
        named = {name: scorer_info(scorer) for name, scorer in parsed.items()}
    else:
        with _argument("scorers"):
            scorers = parse_scorers(mark.scorers)
        check_distinct(scorers)
    if not criteria.scorers and not (mark.each and scorers == ()):
        raise ConfigError(
            f'a threshold is missing: min={{"faithfulness": 0.8}}, or another of {joined(list(CRITERIA))}'
        )
    infos = [scorer_info(scorer) for scorer in scorers]
    titles = scorer_titles(infos)

    def find(name: str) -> ScorerInfo:
        return named.get(name) or named_scorer(name, infos)

    criteria = criteria.titled(find, titles)
    largest_changes = criteria.largest_changes(mark.max_change, find, titles)
    criteria.check_baseline(is_set=mark.baseline is not None)
    return scorers, criteria, largest_changes


def thresholds(case: Case) -> Iterator[float | None]:
    """The threshold of each scorer, in order; None if the sample only needs a score."""
    bounds = {**case.criteria.min, **case.criteria.max}
    titles = scorer_titles([scorer_info(scorer) for scorer in case.scorers])
    for scorer in case.scorers:
        best, title = 0.0 if scorer.lower_is_better else scorer.scale, titles[scorer.signature]
        yield best if title in case.criteria.require else bounds.get(title)
