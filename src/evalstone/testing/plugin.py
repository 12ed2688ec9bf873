"""The pytest plugin: options, a mark, and fixtures. Everything else is imported when a test uses it."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest

from evalstone.testing.names import (
    JUDGE,
    MARK,
    OPTIONS,
    PARAMETER,
    PROPERTIES,
    RUNS,
    SCORED,
    SPENT,
    SPENT_OF_WORKER,
    WRONG_SETTING,
)

if TYPE_CHECKING:
    from evalstone.judges import Judge
    from evalstone.testing.fixture import Evalstone


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evalstone", "scores of what language models produce")
    for name, (metavar, kind, text) in OPTIONS.items():
        group.addoption(f"--evalstone-{name}", metavar=metavar, type=kind, help=text)
        parser.addini(f"evalstone_{name}", text)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "evalstone(dataset, scorers, min, …): score what the test answers for each sample of a dataset "
        "(docs/pytest.md of evalstone)",
    )
    is_set = any(config.getoption(f"evalstone_{name}") is not None for name in OPTIONS)
    if is_set and not hasattr(config, "workerinput"):
        from evalstone.testing.settings import check_options  # noqa: PLC0415 - only who sets options needs it

        check_options(config)
    # Later than the plugins of entry points, so that marked tests are not called by those for asynchronous tests first.
    config.pluginmanager.register(SessionHooks(config), "evalstone-session")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if (mark := metafunc.definition.get_closest_marker(MARK)) is not None:
        from evalstone.testing.marks import parametrize  # noqa: PLC0415 - only marked tests need it

        parametrize(metafunc, mark)


@pytest.fixture(scope="session")
def evalstone_judge(pytestconfig: pytest.Config) -> Judge:
    """The judge of all tests, from --evalstone-judge. Override the fixture in conftest.py to use your own."""
    from evalstone.testing.settings import session_judge  # noqa: PLC0415 - only tests that score need it

    return session_judge(pytestconfig)


@pytest.fixture
def evalstone(request: pytest.FixtureRequest, evalstone_judge: Judge) -> Evalstone:
    """Scores outputs and checks scores in a test: score, assert_scores, evaluate, assert_gate, assert_passed."""
    from evalstone.testing.fixture import made_for  # noqa: PLC0415 - only tests that score need it

    return made_for(cast("pytest.Item", request.node), evalstone_judge)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if scored := item.stash.get(SCORED, None):
        # Workers of xdist send the attributes of a report to the session's process, but can't send texts with half of
        # an emoji.
        setattr(report, MARK, json.dumps(scored))
        scored.clear()
    return report


def _is_marked(item: pytest.Item) -> bool:
    """Whether a test has the mark, or had it when tests were collected."""
    callspec: Any = getattr(item, "callspec", None)
    return item.get_closest_marker(MARK) is not None or (callspec is not None and PARAMETER in callspec.params)


def _is_scored(item: pytest.Item) -> bool:
    """Whether a test has the mark or takes a fixture of this plugin."""
    return _is_marked(item) or not {MARK, JUDGE}.isdisjoint(getattr(item, "fixturenames", ()))


def _has_session_judge(item: pytest.Item) -> bool:
    """Whether a test uses the judge of the settings, and no other fixture overrides it."""
    known = item.session._fixturemanager.getfixturedefs(JUDGE, item)  # pyright: ignore[reportPrivateUsage]
    return bool(known) and known[-1].func.__module__ == __name__


class SessionHooks:
    """The hooks of one session, and the scores of its tests."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.scored: dict[str, list[dict[str, Any]]] = {}
        """By test ID, scorers with their records as data. For a rerun test, those of the last attempt."""
        self.earlier: list[dict[str, Any]] = []
        """The scores of earlier attempts, whose calls were paid for too."""
        self.spent = 0.0
        """US dollars of the budget that workers of xdist have spent."""
        self.problem = ""
        """Why the report couldn't be written."""
        self.wrong_setting = ""
        """What is wrong with the settings of the ini file, in a worker of xdist."""

    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> Generator[None]:
        yield
        if any(mark.name == MARK for call in metafunc._calls for mark in call.marks):  # pyright: ignore[reportPrivateUsage]
            from evalstone.testing.marks import refuse_parameter  # noqa: PLC0415 - only marked tests need it

            refuse_parameter(metafunc)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Raise UsageError for a wrong setting of the ini file if a test of this session uses it."""
        if not any(config.getini(f"evalstone_{name}") for name in OPTIONS) or not any(map(_is_scored, items)):
            return
        from evalstone.testing.settings import wrong_setting  # noqa: PLC0415 - only sessions that score need it

        problem = wrong_setting(config, judge=any(_is_scored(item) and _has_session_judge(item) for item in items))
        if problem and hasattr(config, "workerinput"):  # a worker's error doesn't end the session
            self.wrong_setting = problem
            items.clear()
        elif problem:
            raise pytest.UsageError(problem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        if _is_marked(item):
            from evalstone.testing.marked import prepare  # noqa: PLC0415 - only marked tests need it

            prepare(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object | None:
        if not _is_marked(pyfuncitem):
            return None
        from evalstone.testing.marked import call  # noqa: PLC0415 - only marked tests need it

        return call(pyfuncitem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        # Left by an earlier attempt, if the test is rerun.
        item.stash[RUNS] = 0
        added = item.stash.setdefault(PROPERTIES, [])
        item.user_properties[:] = [one for one in item.user_properties if one not in added]
        added.clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup":
            self.earlier += self.scored.pop(report.nodeid, [])
        if scored := json.loads(getattr(report, MARK, "[]")):
            self.scored.setdefault(report.nodeid, []).extend(scored)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        spent = self._spent()
        if self.scored or spent:
            from evalstone.testing.summary import budget_line, summary_lines  # noqa: PLC0415 - only sessions with scores

            terminalreporter.section("evalstone", "-")
            if self.scored:
                width = terminalreporter._tw.fullwidth  # pyright: ignore[reportPrivateUsage]
                for line in summary_lines(self.scored, width, self.earlier):
                    terminalreporter.write_line(line)
            if spent:
                terminalreporter.write_line(budget_line(self.config, spent))
            if self.problem:
                terminalreporter.write_line(self.problem, red=True)

    def _spent(self) -> float:
        """The US dollars of --evalstone-budget that are spent, including on samples without a score."""
        return self.spent + self.config.stash.get(SPENT, float)()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Called by xdist when a worker is done, or has crashed."""
        output: Mapping[str, Any] = getattr(node, "workeroutput", {})
        self.spent += output.get(SPENT_OF_WORKER, 0.0)
        if problem := output.get(WRONG_SETTING):
            raise pytest.UsageError(problem)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output: dict[str, Any] | None = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[SPENT_OF_WORKER] = self._spent()
            output[WRONG_SETTING] = self.wrong_setting
        if self.scored and not hasattr(self.config, "workerinput"):
            from evalstone.testing.summary import write_scores  # noqa: PLC0415 - only sessions with scores need it

            try:
                write_scores(self.config, self.scored)
            except OSError as error:  # raised, it would take the summary of all tests
                self.problem = f"The scores could not be written: {error}"
                session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR
