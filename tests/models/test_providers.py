"""New providers: the one of the contributing page, and those of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalstone import ConfigError, ModelJudge
from evalstone.models import catalog
from evalstone.models.catalog import PROVIDERS, ProviderInfo, installed_providers, provider_info, split_model

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text("utf-8")


def added(path: str) -> str:
    """The lines that the page adds to a file."""
    hunk = PAGE.partition(f"+++ b/{path}\n")[2].partition("\n\n+++")[0].partition("\n```")[0]
    return "\n".join(line[1:] for line in hunk.splitlines() if line.startswith("+"))


def module(name: str, path: str) -> ModuleType:
    made = ModuleType(name)
    sys.modules[name] = made
    exec(compile(added(path), path, "exec"), made.__dict__)
    return made


def test_the_provider_of_the_contributing_page_works(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "src/evalstone/models/catalog.py"
    hunk = PAGE.partition(f"+++ b/{path}\n")[2].partition("\n\n+++")[0]
    (before,) = [line[1:] for line in hunk.splitlines() if line.startswith(" ")]
    assert before in Path(catalog.__file__).read_text("utf-8")
    rows: Mapping[str, ProviderInfo] = eval(f"{{{added(path)}}}", {"ProviderInfo": ProviderInfo})
    monkeypatch.setattr(catalog, "PROVIDERS", {**PROVIDERS, **rows})
    monkeypatch.setitem(sys.modules, "evalstone.models.ollama", ModuleType("evalstone.models.ollama"))
    module("evalstone.models.ollama", "src/evalstone/models/ollama.py")
    tests = module("test_ollama", "tests/models/test_ollama.py")
    monkeypatch.delitem(sys.modules, "test_ollama")
    names = [name for name in vars(tests) if name.startswith("test_")]
    assert names
    for name in names:
        getattr(tests, name)()


def plugins(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = [EntryPoint(name, value, catalog.PLUGINS) for name, value in values.items()]

    def entry_points(*, group: str) -> list[EntryPoint]:
        return entries if group == catalog.PLUGINS else []

    monkeypatch.setattr(catalog, "entry_points", entry_points)
    for cached in (installed_providers, split_model):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _afresh() -> Any:
    yield
    for cached in (installed_providers, split_model):
        cached.cache_clear()


OURS = ProviderInfo("https://models.example/v1", key="EXAMPLE_KEY")


def test_an_installed_package_adds_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins(monkeypatch, example=f"{__name__}:OURS")
    assert provider_info("example/m") == OURS
    judge = ModelJudge("example/m")
    assert (judge.url, judge.identity) == ("https://models.example/v1", "example/m")
    with pytest.raises(ConfigError, match="set the environment variable EXAMPLE_KEY"):
        judge.check()


def test_an_installed_package_replaces_no_known_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins(monkeypatch, openai=f"{__name__}:OURS")
    assert provider_info("openai/m") is PROVIDERS["openai"]


def test_an_unknown_provider_is_named_with_the_installed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins(monkeypatch, example=f"{__name__}:OURS")
    with pytest.raises(ConfigError, match=r"unknown provider 'exampel'; did you mean example\?"):
        ModelJudge("exampel/m")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module:X", "the provider mine of no_such_module:X can't be loaded: No module named 'no_such_module'"),
        (f"{__name__}:PAGE", "must be a ProviderInfo, not str"),
    ],
)
def test_a_provider_that_cannot_be_loaded_is_named(value: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plugins(monkeypatch, mine=value)
    with pytest.raises(ConfigError, match=problem):
        ModelJudge("mine/m")
