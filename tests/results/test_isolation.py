"""Saved results need no engine: what `evalstone.results` imports, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from evalstone.results.files import write_run
from tests.runs import run_of

ENGINE = ("run", "judges", "questions", "ledger", "scorers", "compat", "judge_quality", "api", "cli")
LIBRARIES = ("sqlite3", "aiohttp", "pydantic", "click")
SHOWING = ("rich", "jinja2")
NUMERIC = ("numpy", "scipy")

IMPORT_EVERYTHING = """
import importlib, pkgutil
import evalstone.results
for module in pkgutil.iter_modules(evalstone.results.__path__):
    importlib.import_module(f"evalstone.results.{module.name}")
"""
READ = """
import json
from evalstone.results.files import read_run
run = read_run(folder)
assert "given" in str(run) and "given" in run._repr_html_()
assert run["given"].mean is not None and run[0].sample_id == "s1"
run.to_dicts(wide=True)
"""
COMPARE = (
    READ
    + """
from evalstone.results.compare import compare
from evalstone.results.drift import drift
from evalstone.results.gate import gate
from evalstone.results.power_analysis import power
assert compare(run, run, slice_by="topic")["given"].verdict == "inconclusive"
assert gate(run, min={"given": 0.1}).verdict == "pass"
assert drift(run, run).passed is not False
assert power(run)["given"].plan.needed > 1
"""
)


def imported_by(code: str, folder: Path | None = None) -> set[str]:
    """The modules that a fresh process has imported after the code."""
    script = f"folder = {str(folder)!r}\n{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


def saved(folder: Path) -> Path:
    return write_run(run_of(["0.5", "1.0"] * 20, metadata=[{"topic": "a"}, {"topic": "b"}] * 20), folder)


def engine_in(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith(tuple(f"evalstone.{part}" for part in ENGINE))} | {
        name for name in LIBRARIES if name in modules
    }


def test_no_module_of_results_imports_the_engine() -> None:
    assert engine_in(imported_by(IMPORT_EVERYTHING)) == set()


def test_result_values_are_imported_without_numpy_and_libraries_that_show_them() -> None:
    modules = imported_by(IMPORT_EVERYTHING)
    assert not modules & {*NUMERIC, *SHOWING}


def test_a_saved_run_is_read_and_shown_without_engine_and_numpy(tmp_path: Path) -> None:
    modules = imported_by(READ, saved(tmp_path))
    assert engine_in(modules) == set()
    assert not modules & set(NUMERIC)


def test_saved_runs_are_compared_and_gated_without_the_engine(tmp_path: Path) -> None:
    assert engine_in(imported_by(COMPARE, saved(tmp_path))) == set()
