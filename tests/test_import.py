"""What `import evalstone` costs and brings with it."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

import pytest

import evalstone

OPTIONAL = ("opentelemetry", "pydantic_ai", "pyarrow", "pandas", "polars", "numpy")
HEAVY = ("aiohttp", "psycopg", "sqlite3", "genai_prices", "rich", "click", "pydantic")
BUDGET = 0.3


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_brings_no_library_that_only_some_need() -> None:
    loaded = json.loads(python("import evalstone, json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert [name for name in OPTIONAL + HEAVY if name in loaded] == []


def test_commands_bring_no_library_of_the_network() -> None:
    loaded = json.loads(python("import evalstone.cli.app, json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert [name for name in ("urllib.request", "http.client", "ssl", *OPTIONAL) if name in loaded] == []


def test_pages_bring_no_library_that_only_runs_need() -> None:
    loaded = json.loads(python("import evalstone.view.app, json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert [
        name for name in ("aiohttp", "psycopg", "genai_prices", "rich", "pydantic", "pyarrow") if name in loaded
    ] == []


def test_import_takes_well_under_a_third_of_a_second() -> None:
    code = "import time; t = time.perf_counter(); import evalstone; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(3)) < BUDGET


def test_import_reads_no_environment_and_opens_no_network() -> None:
    code = """
import os, socket
class Watched(dict):
    def get(self, key, *default):
        assert not key.startswith(("OPENAI", "ANTHROPIC", "EVALSTONE")), key
        return super().get(key, *default)
os.environ = Watched(os.environ)
def refuse(*_): raise RuntimeError("network")
socket.socket.connect = refuse
import evalstone
print("quiet")
"""
    assert python(code).strip() == "quiet"


def test_every_public_name_is_there() -> None:
    for name in evalstone.__all__:
        assert getattr(evalstone, name) is not None


def test_at_most_eighty_names_are_public_and_each_has_one_home() -> None:
    assert len(evalstone.__all__) <= 80
    assert {*evalstone.__all__, "checks", "errors", "__version__"} <= set(dir(evalstone))
    assert {name for name in dir(evalstone) if name.startswith("_")} == {"__version__"}
    assert [name for name in dir(evalstone.checks) if name.startswith("_") or "lazy" in name] == []
    assert evalstone.__version__ == importlib.metadata.version("evalstone")
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = getattr(evalstone, "evaluat")  # noqa: B009 - the name is not there, which is what is tested
