"""New providers: the one of the contributing page, and those of installed packages."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evalstone import ConfigError, ModelJudge
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.models import catalog
from evalstone.models.catalog import PLUGINS, PROVIDERS, ProviderInfo, info_of, provider_info
from evalstone.models.endpoint import endpoint_of
from evalstone.models.model import LanguageModel
from evalstone.models.prices import context_window
from evalstone.questions.embeddings import CompareEmbeddings
from evalstone.types import Usage
from tests.contributing_page import added, hunk
from tests.hostile_serving import http, serving_hostile
from tests.packages import installed


def module(name: str, path: str) -> ModuleType:
    made = ModuleType(name)
    sys.modules[name] = made
    exec(compile(added(path), path, "exec"), made.__dict__)
    return made


def test_the_provider_of_the_contributing_page_works(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "src/evalstone/models/catalog.py"
    (before,) = [line[1:] for line in hunk(path) if line.startswith(" ")]
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


def plug_in(site: Path, **values: str) -> None:
    """Install a package with these providers, such as those of this module."""
    installed(site, "acme-models", {PLUGINS.group: values})


TEXT = "no provider"
OURS = ProviderInfo("https://models.example/v1", key="EXAMPLE_KEY")


def test_an_installed_package_adds_a_provider(site: Path) -> None:
    plug_in(site, example=f"{__name__}:OURS")
    assert provider_info("example/m") == OURS
    judge = ModelJudge("example/m")
    assert (judge.url, judge.identity) == ("https://models.example/v1", "example/m")
    with pytest.raises(ConfigError, match="variable EXAMPLE_KEY"):
        judge.check()


def test_an_installed_package_replaces_no_known_provider(site: Path) -> None:
    plug_in(site, openai=f"{__name__}:OURS")
    assert provider_info("openai/m") is PROVIDERS["openai"]
    (refused,) = PLUGINS
    with pytest.raises(ConfigError) as raised:
        PLUGINS.check(refused)
    assert (raised.value.kind, raised.value.value) == ("repeated", "openai")


def test_an_unknown_provider_is_named_with_the_installed_ones(site: Path) -> None:
    plug_in(site, example=f"{__name__}:OURS")
    with pytest.raises(ConfigError, match=r"'exampel'; .* example\?"):
        ModelJudge("exampel/m")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("no_such_module:X", "mine of acme-models 1.2.0 .*No module named 'no_such_module'"),
        (f"{__name__}:TEXT", "mine of acme-models 1.2.0 is not a ProviderInfo, but str"),
    ],
)
def test_a_provider_that_cannot_be_loaded_is_named(value: str, problem: str, site: Path) -> None:
    plug_in(site, mine=value)
    with pytest.raises(ConfigError, match=problem):
        provider_info("mine/m")


def test_a_provider_that_cannot_be_loaded_hides_no_other(site: Path) -> None:
    plug_in(site, broken="no_such_module:X", example=f"{__name__}:OURS")
    assert provider_info("example/m") == OURS
    with pytest.raises(ConfigError, match=r"'opneai'; .* openai"):
        ModelJudge("opneai/m")


def test_two_packages_with_one_name_are_refused(site: Path) -> None:
    plug_in(site, mine=f"{__name__}:OURS")
    installed(site, "other-models", {PLUGINS.group: {"mine": "other:INFO"}}, version="3.1")
    with pytest.raises(ConfigError) as raised:
        ModelJudge("mine/m")
    assert (raised.value.kind, raised.value.field, raised.value.value) == ("repeated", "provider", "mine")
    assert "acme-models 1.2.0" in str(raised.value)
    assert "other-models 3.1" in str(raised.value)
    with pytest.raises(ConfigError, match="unknown provider 'other'"):
        info_of("other")


NO_MODULE = ProviderInfo("http://h/v1", protocol="no_such_module:X")
NO_CLASS = ProviderInfo("http://h/v1", protocol="evalstone.models.provider:Chat")
NO_COLON = ProviderInfo("http://h/v1", protocol="evalstone.models.provider")
NO_PROTOCOL = ProviderInfo("http://h/v1", protocol="evalstone.models.provider:Completion")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("NO_MODULE", "the protocol 'no_such_module:X' can't be loaded"),
        ("NO_CLASS", "has no attribute 'Chat'"),
        ("NO_COLON", "the protocol 'evalstone.models.provider' can't be loaded"),
        ("NO_PROTOCOL", "must be a subclass of ChatProvider"),
    ],
)
def test_a_protocol_that_cannot_be_loaded_is_named_before_the_run(name: str, problem: str, site: Path) -> None:
    plug_in(site, mine=f"{__name__}:{name}")
    with pytest.raises(ConfigError, match=problem):
        ModelJudge("mine/m").check()


PLAIN = ProviderInfo("http://h/v1", unsupported=("temperature", "seed", "logprobs", "headers"))


@pytest.mark.parametrize("name", ["qwen3:8b", "m"])
def test_a_setting_that_the_protocol_lacks_is_neither_sent_by_default_nor_accepted_as_zero(
    name: str, site: Path
) -> None:
    plug_in(site, plain=f"{__name__}:PLAIN")
    judge = ModelJudge(f"plain/{name}", logprobs=False)
    judge.check()
    assert judge.request_settings().temperature is None
    with pytest.raises(ConfigError, match="plain doesn't support temperature"):
        ModelJudge(f"plain/{name}", temperature=0).check()
    with pytest.raises(ConfigError, match="plain doesn't support seed"):
        ModelJudge(f"plain/{name}", seed=0).check()


OWN_SERVER = ProviderInfo("http://127.0.0.1:9/v1")


def test_a_server_of_ones_own_has_no_listed_prices_whatever_its_name(site: Path) -> None:
    plug_in(site, **{"openai-at-home": f"{__name__}:OWN_SERVER"})
    model = LanguageModel("openai-at-home/gpt-5.1")
    assert model.price(Usage(1000, 1000)) is None
    assert context_window("openai-at-home", "gpt-5.1") is None


def test_a_protocol_names_the_header_of_its_key() -> None:
    async def headers(**settings: Any) -> Mapping[str, str]:
        return endpoint_of(LanguageModel("vllm/m", api_key="k-1", headers={"X-Team": "a"}), **settings).headers

    assert asyncio.run(headers()) == {"Authorization": "Bearer k-1", "X-Team": "a"}
    others = {"x-version": "2", "X-Team": "all"}
    assert asyncio.run(headers(key_header="x-api-key", headers=others)) == {
        "x-api-key": "k-1",
        "x-version": "2",
        "X-Team": "a",
    }


def test_half_a_character_is_sent_as_its_escape() -> None:
    reply = {"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [1, 0]}]}
    with serving_hostile(lambda _: http(json.dumps(reply).encode())) as server:
        model = EmbeddingModel("vllm/m", base_url=server.url)
        assert asyncio.run(model.answer(CompareEmbeddings(first="a\ud800", second="b"))).value.cosine == 1.0
    assert json.loads(server.requests[0].partition(b"\r\n\r\n")[2])["input"] == ["a\ud800", "b"]


@pytest.mark.parametrize("name", ["sed", "max_token", "model"])
def test_a_provider_names_known_settings_as_unsupported(name: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ProviderInfo("https://a.example/v1", unsupported=("seed", name))
    assert (raised.value.kind, raised.value.value) == ("unknown", name)
    assert raised.value.known == ("headers", "logprobs", "max_tokens", "reasoning_effort", "seed", "temperature")


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "\x1b[31mred", "\u202eabc", " "])
def test_the_name_of_a_model_is_one_line_of_visible_text(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^the name of a model must be one line of visible text, not "):
        LanguageModel(f"vllm/{name}")
