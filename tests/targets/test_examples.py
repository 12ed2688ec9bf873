"""The examples of targets run as they are, and evaluating one takes a few lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples" / "targets"
MEANS = {
    "command.py": {"contains": "1.000"},
    "graph.py": {"contains": "1.000", "tool_called": "1.000"},
    "pydantic_ai_agent.py": {"contains": "0.333"},  # the test model gives the same answer to all
    "tools.py": {"contains": "1.000", "tool_called": "1.000"},
    "service.py": {"contains": "1.000", "faithfulness": "1.000"},
}


def test_each_example_is_tested_and_listed() -> None:
    files = {path.name for path in EXAMPLES.glob("*.py")}
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert files == set(MEANS)
    assert all(f"]({name})" in listed for name in files)


@pytest.mark.parametrize("name", MEANS)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    if name == "pydantic_ai_agent.py":
        pytest.importorskip("pydantic_ai")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    rows = {row[0]: row[1:] for row in lines if len(row) > 6}
    of_one = [row[4:7] == ["3", "0", "0"] for scorer, row in rows.items() if scorer in MEANS[name]]
    of_all = ["The", "same", "in", "every", "row:", "scores", "3,", "skipped", "0,", "failed", "0."] in lines
    assert of_all or all(of_one), done.stdout
    for scorer, mean in MEANS[name].items():
        assert rows[scorer][0] == mean, done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MEANS)
def test_evaluating_a_system_takes_less_than_ten_lines(name: str) -> None:
    code = (EXAMPLES / name).read_text("utf-8").partition('if __name__ == "__main__":\n')[2]
    own = [line for line in code.splitlines() if line.strip() and "server" not in line.partition("=")[0]]
    assert 0 < len(own) < 10
