"""The plugin in processes of its own: what it loads, workers of xdist, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from evalstone.errors import BudgetExceeded
from evalstone.testing.settings import settings_of
from tests.fakes import python
from tests.testing.test_fixture import COUNTING
from tests.testing.test_marks import kept_records

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

ENGINE = ("numpy", "pydantic", "sqlite3", "evalstone.api", "evalstone.run", "evalstone.scorers", "evalstone.judges")


@pytest.mark.parametrize("ini", ["", "evalstone_trials = many"])
def test_a_session_that_scores_nothing_imports_nothing(pytester: pytest.Pytester, ini: str) -> None:
    pytester.makeini(f"[pytest]\n{ini}")
    pytester.makepyfile(test_it="def test_it(): ...")
    code = f"""
import json, sys, pytest
code = pytest.main(["-q", "-p", "no:hypothesispytest", "-p", "no:cov", {str(pytester.path)!r}])
print(json.dumps([int(code), sorted(sys.modules)]))
"""
    code, modules = json.loads(python(code).splitlines()[-1])
    assert code == 0
    assert "evalstone.testing.plugin" in modules
    assert [name for name in ENGINE if name in modules] == []


def test_the_plugin_loads_in_twenty_milliseconds() -> None:
    code = (
        "import pytest, time; t = time.perf_counter(); import evalstone.testing.plugin; print(time.perf_counter() - t)"
    )
    assert min(float(python(code)) for _ in range(3)) < 0.02


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_it(evalstone): ...")
    result = pytester.runpytest_inprocess("-p", "no:evalstone", "-p", "no:hypothesispytest", "-p", "no:cov")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'evalstone' not found"])


def test_workers_of_xdist_share_the_ledger_and_the_summary(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(COUNTING)
    pytester.makepyfile(
        test_it="""
import pytest

@pytest.mark.parametrize("n", range(4))
def test_score(evalstone, n):
    sample = {"id": str(n), "output": "Paris is in Italy.", "context": [f"Passage {n // 2}."]}
    assert evalstone.score("faithfulness", sample).value == 0

@pytest.mark.evalstone(dataset=[{"output": "a", "reference": "a"}], require=["exact_match"])
def test_all(): ...
"""
    )
    options = ("-n", "2", "-p", "no:hypothesispytest", "-p", "no:cov", "--evalstone-budget", "4")
    result = pytester.runpytest_subprocess(*options, "--evalstone-report", "out")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "test_score",
            "  faithfulness*4        0       0      3       5*",
            "test_all",
            "  exact_match*1        0 *",
            "judge calls: 3 asked, *",
        ]
    )
    asked = (pytester.path / "asked.txt").read_text().split()
    assert sorted(asked) == ["list_claims", "verify_claims", "verify_claims"]
    lines = (pytester.path / "out" / "scores.jsonl").read_text().splitlines()
    assert len(lines) == 5


def test_a_wrong_setting_ends_a_session_of_xdist_with_one_line_that_names_it(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nevalstone_trials = many")
    pytester.makepyfile(test_it="def test_it(evalstone): ...\ndef test_two(evalstone): ...")
    result = pytester.runpytest_subprocess("-n", "2", "-p", "no:hypothesispytest", "-p", "no:cov")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in (*result.outlines, *result.errlines) if "evalstone_trials" in line]
    (line,) = lines
    assert line.startswith("ERROR: evalstone_trials ")
    assert line.endswith("'many'")


def test_a_worker_has_its_share_of_the_budget(pytester: pytest.Pytester) -> None:
    config = pytester.parseconfig("--evalstone-budget", "3")
    config.workerinput = {"workercount": 4}  # pyright: ignore[reportAttributeAccessIssue]
    budget = settings_of(config).budget
    assert budget is not None
    assert budget.limit == 0.75
    with pytest.raises(BudgetExceeded, match=r"--evalstone-budget of \$0\.75"):
        budget.reserve(1)


def test_ctrl_c_ends_a_session_soon_and_keeps_what_was_scored(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
import time
from pathlib import Path
import pytest

@pytest.mark.evalstone(dataset=[{"input": str(n), "reference": "a"} for n in range(50)], require=["exact_match"])
def test_slow(input):
    Path("asked.txt").write_text(input)
    time.sleep(0.05 if input < "3" else 60)
    return "a"
"""
    )
    options = ("-p", "no:hypothesispytest", "-p", "no:cov")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options], cwd=pytester.path, stdout=subprocess.PIPE, text=True
    )
    asked, until = pytester.path / "asked.txt", time.monotonic() + 30
    while not (asked.exists() and asked.read_text() == "3"):
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=15)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert kept_records(pytester.path / ".evalstone" / "ledger.db") == 3
