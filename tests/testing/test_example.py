"""The project in examples/pytest_project, tested as its README says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.testing.test_marks import ALONE

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "pytest_project"


def test_the_failing_sample_explains_itself_and_the_statistical_test_passes(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "project", ignore=shutil.ignore_patterns(".*", "__pycache__"))
    options = ("-v", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:cov", "-p", "no:xdist")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=project, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done
    printed = done.stdout.splitlines()
    (shown,) = re.findall(r"^```text\n(.*?)^```", (EXAMPLE / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    start = printed.index(shown.splitlines()[0])
    assert printed[start : start + len(shown.splitlines())] == shown.splitlines()
    missed, passed = "test_every_claim_is_supported", "test_answers_are_faithful"
    failed = [line for line in printed if line.startswith("FAILED")]
    assert [line.split("::")[1].split()[0] for line in failed] == [f"{missed}[refund]"]
    assert re.search(rf"::{passed}(\[cases.jsonl\])? PASSED", done.stdout)
    assert printed[-1].strip("= ").startswith("1 failed, 26 passed")
    row = r"  faithfulness +0\.9\d\d +\S+ to \S+ +24 +0 +0 +\d+ +\d+$"
    assert re.search(rf"^{passed}\n{row}", done.stdout, re.MULTILINE)


def test_the_code_in_the_documentation_runs(pytester: pytest.Pytester) -> None:
    page = (ROOT / "docs" / "pytest.md").read_text("utf-8")
    blocks = [textwrap.dedent(code) for code in re.findall(r"^ *```py\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)]
    (conftest,) = (code for code in blocks if "evalstone_judge" in code)
    pytester.makeconftest(conftest)
    pytester.makepyfile(
        my_app='def agent(input): return {"output": "Paris is in France.", "context": ["Paris is in France."]}',
        test_page="\n".join(code for code in blocks if code != conftest),
    )
    rows = [{"id": str(n), "input": f"Where is Paris? ({n})", "reference": "France"} for n in range(30)]
    (pytester.path / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(passed=1 + 30 + 30 + 2)
