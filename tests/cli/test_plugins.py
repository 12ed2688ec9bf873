"""Scorers, judges and providers of installed packages on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstone.errors import EvalstoneWarning
from tests import packages
from tests.cli.conftest import Evalstone
from tests.packages import installed

ACME = """
    print("loaded by a plug-in")
    from evalstone import Judge, Scorer, Score
    from evalstone.models import ProviderInfo

    class Polite(Scorer):
        '''Whether the answer thanks.'''

        name = "polite"
        word: str = "thanks"

        def score(self, *, output: str) -> Score:
            return Score(float(self.word in output))

    def prompt_alignment_check(output):
        '''Whether the answer has a prompt.'''
        return 1.0

    class AcmeJudge(Judge):
        model: str = "small"
        strict: bool = False

        async def answer(self, question, repeat=0):
            raise NotImplementedError

    INFO = ProviderInfo("https://acme.example/v1", "ACME_KEY")
"""
ENTRIES = {
    packages.SCORERS: {
        "polite": "acme_eval:Polite",
        "prompt_alignment_check": "acme_eval:prompt_alignment_check",
        "broken": "acme_broken:X",
        "faithfulness": "acme_eval:Polite",
    },
    packages.JUDGES: {"acme": "acme_eval:AcmeJudge", "broken": "acme_broken:X", "lexical": "acme_eval:AcmeJudge"},
    packages.PROVIDERS: {"acme-models": "acme_eval:INFO", "absent": "no_such_module:INFO", "openai": "acme_eval:INFO"},
}


@pytest.fixture(autouse=True)
def acme(site: Path) -> Path:
    """A package that adds names, some of which can't be used, and prints when it is imported."""
    return installed(site, "acme-eval", ENTRIES, {"acme_eval": ACME, "acme_broken": "print('broken')\n1 / 0"})


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def refused(text: str) -> list[str]:
    """The lines that say why a plug-in isn't available."""
    return [line for line in " ".join(text.split()).split("Not available: ")[1:] if "acme-eval 1.2.0" in line]


def test_scorers_of_packages_are_listed_and_those_that_can_not_be_used_with_the_reason(evalstone: Evalstone) -> None:
    done = evalstone("scorers")
    assert done.returncode == 0
    (polite,) = (row for row in words(done.stdout) if row[:1] == ["polite"])
    assert polite[1:4] == ["acme-eval", "1.2.0", "output"]
    told = refused(done.stdout)
    assert [name for name in ("broken", "faithfulness") if any(f"scorer {name} of" in line for line in told)] == [
        "broken",
        "faithfulness",
    ]
    assert len(told) == 2
    assert "ZeroDivisionError" in " ".join(told)
    assert "loaded by a plug-in" not in done.stdout
    assert any(row[:1] == ["faithfulness"] and row[1] == "output," for row in words(done.stdout))


def test_scorers_of_packages_as_json(evalstone: Evalstone) -> None:
    rows = [json.loads(line) for line in evalstone("scorers", "--json").stdout.splitlines()]
    added = {row["name"]: row for row in rows if row["package"] is not None}
    assert {row["package"] for row in added.values()} == {"acme-eval 1.2.0"}
    assert {name: "error" in row for name, row in added.items()} == {
        "broken": True,
        "faithfulness": True,
        "polite": False,
        "prompt_alignment_check": False,
    }
    assert list(added["polite"]["parameters"]) == ["scale", "explain", "judge", "word"]
    assert added["prompt_alignment_check"]["parameters"] == {}
    assert added["prompt_alignment_check"]["needs"] == [{"field": "output", "alternatives": [], "parameters": []}]


def test_a_scorer_of_a_package_is_described(evalstone: Evalstone) -> None:
    told = words(evalstone("scorers", "polite").stdout)
    assert ["Package", "acme-eval", "1.2.0", "(acme_eval:Polite)"] in told
    assert any(row[:1] == ["word"] for row in told)
    function = words(evalstone("scorers", "prompt-alignment-check").stdout)
    assert function[0] == ["Whether", "the", "answer", "has", "a", "prompt."]
    assert evalstone("scorers", "broken").returncode == 2
    assert "did you mean polite?" in evalstone("scorers", "polit").stderr


def test_a_run_uses_a_scorer_of_a_package_by_its_name(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text('{"output": "thanks"}\n{"output": "no"}\n')
    done = evalstone("run", "data.jsonl", "-s", "polite(word=no)", "-s", "polite", "--json", "--no-cache")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert [row["name"] for row in run["scorers"]] == ["polite", "polite"]
    assert evalstone("run", "data.jsonl", "-s", "broken").returncode == 2
    with pytest.warns(EvalstoneWarning, match="the judge lexical of acme-eval"):
        assert evalstone("score", "-s", "polite", "--output", "thanks", "--json").returncode == 0


def test_judges_and_providers_of_packages_are_listed(evalstone: Evalstone) -> None:
    done = evalstone("judges")
    rows = words(done.stdout)
    assert ["acme/MODEL", "acme-eval", "1.2.0", "strict"] in rows
    assert ["acme-models/MODEL", "ACME_KEY", "not", "set", "https://acme.example/v1"] in rows
    told = refused(done.stdout)
    kinds = ["provider absent", "judge broken", "judge lexical", "provider openai"]
    assert sorted(kinds) == sorted(kind for kind in kinds if any(f"the {kind} of" in line for line in told))
    assert len(told) == 4
    assert "loaded by a plug-in" not in done.stdout


def test_a_judge_of_a_package_is_described(evalstone: Evalstone) -> None:
    assert words(evalstone("judges", "acme/large").stdout)[0][0].startswith("AcmeJudge(model=large)#")
    described = evalstone("judges", "acme-models/large").stdout
    told = " ".join(described.split())
    assert "not ready: " in told
    assert "variable ACME_KEY" in told


def test_a_run_says_which_plug_in_its_built_in_names_hide(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text('{"output": "Paris is in France.", "context": ["Paris is in France."]}\n')
    done = evalstone("run", "data.jsonl", "-s", "faithfulness", "--no-cache")
    assert done.returncode == 0
    assert done.stderr.splitlines()[:2] == [
        "the scorer faithfulness of acme-eval 1.2.0 is not used: faithfulness is built in",
        "the judge lexical of acme-eval 1.2.0 is not used: lexical is built in",
    ]
    assert "the scorer" not in evalstone("run", "data.jsonl", "-s", "polite").stderr
