"""Runs a marked test: as the target of an evaluation with a gate, or on one sample whose scores are checked.

pytest, and plugins for asynchronous tests, call the test function as they do any other, once for each sample, with the
sample's fields beside the fixtures. It runs in the thread of the test, one sample at a time, as fixtures may belong to
that thread. Only an `async def` that no other plugin runs is called on evalstone's own loop, several samples at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import time
import unittest
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar, cast

import pytest

from evalstone._core import sync
from evalstone._core.display import joined
from evalstone._core.files import is_folder
from evalstone._core.front_ends import MARK
from evalstone.datasets import load
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.models.limits import Limits
from evalstone.results.gate import gate_on
from evalstone.results.run import Run
from evalstone.run.plan import scorer_info
from evalstone.run.planning import plan_for
from evalstone.run.saved import read_run
from evalstone.targets import Answer, FunctionTarget, parse_target, parse_user
from evalstone.targets.base import PARAMETERS
from evalstone.testing.explain import Check, explained
from evalstone.testing.fixture import Evalstone
from evalstone.testing.marks import Case, Mark, sample_values, thresholds
from evalstone.testing.names import PARAMETER
from evalstone.testing.settings import settings_of

T = TypeVar("T")
UNLIMITED = 1e9
"""Seconds for an answer that is given in the thread of the test, where nothing can end it."""
ENDS = (pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception, unittest.SkipTest)
"""Exceptions that end the whole test and fail no sample: pytest.skip(), pytest.fail(), pytest.xfail(), pytest.exit(),
and the exception of unittest that pytest treats as a skip."""
_FUNCTION = pytest.StashKey["TestFunction"]()


class TestFunction:
    """The function of a test, called as pytest and its plugins do, once for each sample."""

    __test__ = False

    def __init__(self, item: pytest.Function) -> None:
        self.item = item
        self.running = False
        self.value: object = None
        function = cast("Callable[..., Any]", item.obj)
        self.function = function
        self.keeping = self._keeping_async() if inspect.iscoroutinefunction(function) else self._keeping()
        item.obj = self.keeping

    # What a test returns is lost on the way through pytest, which doesn't expect that it returns anything.
    def _keeping(self) -> Callable[..., None]:
        @functools.wraps(self.function)
        def keeping(*args: Any, **kwargs: Any) -> None:
            self.value = self.function(*args, **kwargs)

        return keeping

    def _keeping_async(self) -> Callable[..., Coroutine[Any, Any, None]]:
        @functools.wraps(self.function)
        async def keeping(*args: Any, **kwargs: Any) -> None:
            self.value = await self.function(*args, **kwargs)

        return keeping

    @property
    def on_own_loop(self) -> bool:
        """Whether it is asynchronous, and no plugin is there to run it."""
        return inspect.iscoroutinefunction(self.item.obj) and "anyio_backend" not in self.item.funcargs

    def values(self, **values: Any) -> dict[str, Any]:
        """The arguments: fixtures, and these values."""
        names = self.item._fixtureinfo.argnames  # pyright: ignore[reportPrivateUsage]
        return {name: values[name] if name in values else self.item.funcargs[name] for name in names}

    def answer(self, value: object) -> Answer:
        """What the function returned, as an answer. Raises DataError that names the function if it is none."""
        return Answer.of(value, by=self.function.__name__)

    def __call__(self, **values: Any) -> object:
        """What the function returns for a sample. Raises what it raises."""
        if self.on_own_loop:
            return sync.run(self.function(**self.values(**values)))
        self.item.funcargs.update(values)
        self.running = True
        try:
            self.item.ihook.pytest_pyfunc_call(pyfuncitem=self.item)
            return self.value
        finally:
            self.running, self.value = False, None


def prepare(item: pytest.Item) -> None:
    """Replace the function of a marked test, before pytest calls it, by one that keeps its result."""
    case = _case_of(item)
    if case is None or not isinstance(item, pytest.Function):
        pytest.fail(
            "@pytest.mark.evalstone works on functions and on methods of classes that are no unittest.TestCase",
            pytrace=False,
        )
    known = item.stash.get(_FUNCTION, None)
    if known is None or item.obj is not known.keeping:  # where it is run again, it may be a method of a new instance
        item.stash[_FUNCTION] = TestFunction(item)


def _case_of(item: pytest.Item) -> Case | None:
    callspec: Any = getattr(item, "callspec", None)
    return None if callspec is None else callspec.params.get(PARAMETER)


def call(item: pytest.Function) -> object | None:
    """Run a marked test. Returns None if pytest must call its function, for one sample."""
    __tracebackhide__ = True
    function = item.stash[_FUNCTION]
    if function.running:
        return None
    case = cast(Case, _case_of(item))
    try:
        fixture: Evalstone = item._request.getfixturevalue("evalstone")  # pyright: ignore[reportPrivateUsage]
        if case.sample is None:
            _test_all(fixture, function, case)
        else:
            _test_each(fixture, function, case)
    except EvalstoneError as error:
        raise pytest.fail.Exception(error.text(MARK), pytrace=False) from None
    return True


def _test_all(fixture: Evalstone, function: TestFunction, case: Case) -> None:
    mark = case.mark
    baseline = _baseline(function, mark)  # before anything is asked, and before this run is the last one
    run = evaluated(fixture, function, case)
    try:
        result = gate_on(
            run,
            case.criteria,
            baseline=baseline,
            alpha=mark.alpha,
            missing=mark.missing,
            largest_changes=case.largest_changes,
            allow_mismatch=mark.allow_mismatch,
        )
        fixture.check_gate(result, inconclusive=mark.inconclusive, front_end=MARK)
    except AssertionError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _baseline(function: TestFunction, mark: Mark) -> Run | None:
    """The run that the mark compares with."""
    name = mark.baseline
    if name is None or isinstance(name, Run):
        return name
    folder = function.item.path.parent / name
    return read_run(folder if is_folder(folder) else name, ledger=settings_of(function.item.config).ledger)


def evaluated(fixture: Evalstone, function: TestFunction, case: Case) -> Run:
    """The run of a marked test over its dataset."""
    mark = case.mark
    answering = None if mark.target is None else parse_target(mark.target)
    calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    if case.answers:
        answering = _target(function, case, calls)
    elif function() is not None:
        raise ConfigError(
            f"the test returned a value but takes nothing of a sample; to answer samples, let it take one of "
            f"{', '.join(PARAMETERS)}"
        )
    plan = plan_for(
        case.dataset,
        case.scorers,
        judge=fixture.judge if mark.judge is None else mark.judge,
        target=answering,
        trials=1 if answering is None else _trials(function, case),
        user=None if mark.user is None else parse_user(mark.user),
        keep_reasoning=mark.keep_reasoning,
    )
    return _serve(fixture.run_plan(plan), calls)


def _trials(function: TestFunction, case: Case) -> int:
    """How often each sample is answered."""
    return case.mark.trials or settings_of(function.item.config).trials or 1


def _target(function: TestFunction, case: Case, calls: SimpleQueue[Callable[[], None] | None]) -> FunctionTarget:
    """The test function as a target."""

    async def on_own_loop(**values: Any) -> object:
        try:
            return function.answer(await function.function(**function.values(**values)))
        except ENDS as outcome:
            calls.put(functools.partial(_raise, outcome))
            return await asyncio.Event().wait()  # until the run is canceled

    async def in_thread_of_test(**values: Any) -> object:
        answer: Future[object] = Future()

        def work() -> None:
            if not answer.set_running_or_notify_cancel():  # the run ended while the call waited for its turn
                return
            try:
                answer.set_result(function.answer(function(**values)))
            except ENDS:
                raise
            except StopIteration as error:  # which no future can carry
                answer.set_exception(sync.ordinary(function.function, error))
            except Exception as error:  # noqa: BLE001 - the user's function, whose sample has failed
                answer.set_exception(error)

        calls.put(work)
        return await asyncio.wrap_future(answer)

    answering = on_own_loop if function.on_own_loop else in_thread_of_test
    parameters = inspect.signature(function.function).parameters.values()
    of_sample = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters if one.name in case.takes]
    answering.__signature__ = inspect.Signature(of_sample)  # pyright: ignore[reportFunctionMemberAccess]
    label = function.item.nodeid
    if function.on_own_loop:
        return FunctionTarget(function=answering, label=label)
    return FunctionTarget(function=answering, label=label, timeout=UNLIMITED, limits=Limits(max_concurrency=1))


def _raise(outcome: BaseException) -> NoReturn:
    raise outcome


def _serve(work: Coroutine[Any, Any, T], calls: SimpleQueue[Callable[[], None] | None]) -> T:
    """The result of work on evalstone's loop. Calls of the test function run in this thread meanwhile."""
    done, cancel = sync.start(work)
    done.add_done_callback(lambda _: calls.put(None))
    try:
        while (work_here := _next(calls)) is not None:
            work_here()
        return done.result()
    except BaseException:  # Ctrl-C, pytest.skip() in the test: what is scored by then is in the ledger
        cancel()
        raise


def _next(calls: SimpleQueue[Callable[[], None] | None]) -> Callable[[], None] | None:
    """The next call, which is waited for in steps: on Windows, Ctrl-C doesn't interrupt a thread that waits."""
    while True:
        with contextlib.suppress(Empty):
            return calls.get(timeout=sync.STEP)


def _test_each(fixture: Evalstone, function: TestFunction, case: Case) -> None:
    """Answer one sample, and check its scores."""
    assert case.sample is not None  # noqa: S101 - it is one of a test per sample
    trials = _trials(function, case) if case.answers else 1
    for trial in range(1, trials + 1):
        sample = case.sample
        values = sample_values(sample, trial)
        if lacking := [name for name in case.takes if values[name] is None]:
            raise ConfigError(f"the test takes {joined(lacking)}, which the sample lacks")
        started = time.perf_counter()
        value = function(**{name: values[name] for name in case.takes})
        if case.answers or value is not None:
            sample = function.answer(value).fill(sample, seconds=time.perf_counter() - started)
        if not case.scorers:
            continue
        judge = fixture.judge if case.mark.judge is None else case.mark.judge
        plan = plan_for(load([sample]), case.scorers, judge=judge, keep_reasoning=case.mark.keep_reasoning)
        records = sync.run(fixture.score_plan(plan))
        checks = [
            Check(scorer_info(scorer), record, threshold)
            for scorer, record, threshold in zip(case.scorers, records, thresholds(case), strict=True)
        ]
        if not all(check.passed for check in checks):
            where = f"trial {trial} of {trials}: " if trials > 1 else ""
            why = explained(checks, sample, keeps_reasoning=case.mark.keep_reasoning)
            pytest.fail(where + why, pytrace=False)
