"""The figures on pages are those that commands print for the same thing, on random data."""

from __future__ import annotations

import json
import random
import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from evalstone import Run, Sample, Score, evaluate
from evalstone.datasets.loading import Dataset
from evalstone.ledger.base import HOUR
from evalstone.ledger.store import Ledger
from evalstone.run.experiment_cells import in_experiment
from evalstone.types import Failed, Outcome, Skipped, StoredCell
from tests.cli.conftest import Evalstone, evalstone
from tests.runs import Given, Harm
from tests.view.conftest import Client, client_of
from tests.view.test_live import FALLING, NOON, RISING, submit

__all__ = ["evalstone"]
RUNS = 3


@pytest.fixture(params=range(2))
def random_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[Run]]:
    """A ledger with an experiment over versions of a dataset, and live scores of its scorers."""
    draw, url = random.Random(request.param), str(tmp_path / "l.db")
    runs: list[Run] = []
    for number in range(RUNS):
        answers = [draw.choice([f"{draw.random():.3f}", "skip", "fail", "1", "0"]) for _ in range(40)]
        samples = [Sample(id=f"s{at}", input=f"Question {at}?", output=answer) for at, answer in enumerate(answers)]
        cell = StoredCell(experiment="e", name=f"cell {number}", factors={"heat": number})
        with in_experiment(cell):
            runs.append(evaluate(Dataset(samples=samples, name="d"), [Given(), Harm()], ledger=url, name=cell.name))

    def drawn() -> Outcome | None:
        return draw.choice([Score(draw.random()), Score(draw.random()), Skipped("none"), Failed("down"), None])

    begin = (time.time() - NOON) // HOUR - 80
    with Ledger(url) as ledger:
        for number in range(60):
            submit(
                ledger,
                number,
                {RISING: drawn()} if draw.random() < 0.3 else {RISING: drawn(), FALLING: drawn()},
                pending=(FALLING,) if draw.random() < 0.1 else (),
                hours=begin + draw.randrange(60),
                entity=draw.choice(["agent", "guide", "a b"]),
                source=draw.choice(["live", "trace"]),
            )
    return url, runs


@pytest.fixture
def client(random_ledger: tuple[str, list[Run]]) -> Client:
    return client_of(random_ledger[0])


def printed(evalstone: Evalstone, *command: str) -> Any:
    """What a command prints as JSON; several objects as a list."""
    done = evalstone(*command, "--ledger", "l.db", "--json")
    assert not done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return lines[0] if len(lines) == 1 else lines


@pytest.mark.parametrize("period", [(), ("--since", "60h", "--until", "30h")])
def test_coverage_is_that_of_the_command(client: Client, evalstone: Evalstone, period: tuple[str, ...]) -> None:
    query = "&".join(f"{name[2:]}={value}" for name, value in zip(period[::2], period[1::2], strict=True))
    assert client.get(f"/live/shop.json?{query}").json["coverage"] == printed(
        evalstone, "live", "coverage", "shop", *period
    )
    words = client.get(f"/live/shop?{query}").words.replace("&emsp;", "")
    table = evalstone("live", "coverage", "shop", "--ledger", "l.db", *period).stdout.splitlines()
    rows = [line for line in table if re.match(r"\s*(\w[\w: ]*?)\s{2,}\d", line)]
    assert len(rows) > 10
    for row in rows:
        assert " ".join(row.split()) in " ".join(words.split()), row


def test_means_by_scorer_entity_and_source_are_those_of_the_listed_scores(client: Client, evalstone: Evalstone) -> None:
    listed = printed(evalstone, "ledger", "scores", "--stream", "shop", "--limit", "1000")["scores"]
    data = client.get("/live/shop.json").json
    for group, name in (("scorers", None), ("entities", "entity"), ("sources", "source")):
        found = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
        for one in listed:
            found[one[name] if name else "", one["signature"]].append(one)
        lines = {(line[name] if name else "", line["signature"]): line for line in data[group]}
        assert lines.keys() == found.keys()
        for key, scores in found.items():
            values = [one["value"] for one in scores if one["state"] == "score"]
            assert lines[key]["mean"] == (pytest.approx(sum(values) / len(values)) if values else None)
            for state in ("score", "skipped", "failed", "dropped", "pending"):
                assert lines[key][state] == sum(one["state"] == state for one in scores), (key, state)
    by_time = sum(line["score"] for line in data["times"])
    assert by_time == sum(one["state"] == "score" for one in listed)
    latest = client.get("/live/shop.json?show=latest").json["scores"]
    assert [(one["signature"], one["value"]) for one in latest if one["state"] == "failed"]
    assert {one["cursor"] for one in latest} <= {one["cursor"] for one in listed}


def test_drift_is_that_of_the_command(
    client: Client, evalstone: Evalstone, random_ledger: tuple[str, list[Run]]
) -> None:
    run = random_ledger[1][0]
    address = f"/live/shop?baseline={run.id}"
    while (page := client.get(address)).headers.get("refresh"):
        time.sleep(0.05)
    done = evalstone("live", "drift", run.id, "--stream", "shop", "--ledger", "l.db")
    rows = [" ".join(line.split()) for line in done.stdout.splitlines() if re.match("(given|harm) ", line)]
    assert len(rows) == 2, done.stdout + done.stderr
    for row in rows:
        assert row in page.words


def test_the_last_scores_of_scorers_are_those_of_the_report(
    client: Client, evalstone: Evalstone, random_ledger: tuple[str, list[Run]]
) -> None:
    for run in random_ledger[1]:
        report = printed(evalstone, "report", run.id)
        for stored in report["scorers"]:
            data = client.get(f"/scorers/{stored['name']}.json").json
            (score,) = [one for one in data["scores"] if one["run"] == run.id]
            assert [score["low"], score["high"]] == stored["interval"]
            for name in ("mean", "n_score", "n_skipped", "n_failed", "signature", "scale"):
                assert score[name] == stored[name]
            if run is random_ledger[1][-1]:
                assert data["last"] == score
            page = client.get(f"/scorers/{stored['name']}")
            low, high = stored["interval"]
            assert f"{stored['mean']:.3f}" in page.words
            assert f"{low:.3f} to {high:.3f}" in page.words


@pytest.mark.slow
def test_the_matrix_and_the_versions_are_those_of_reports_and_the_ledger(
    client: Client, evalstone: Evalstone, random_ledger: tuple[str, list[Run]]
) -> None:
    runs = random_ledger[1]
    reports = [printed(evalstone, "report", run.id) for run in runs]
    cells = client.get("/experiments/e.json").json["cells"]
    assert [(cell["run"], cell["factors"]) for cell in cells] == [
        (report["id"], report["cell"]["factors"]) for report in reports
    ]
    matrix = client.get("/experiments/e").text
    for title, name in (("given", "given\u00a0↑"), ("harm", "harm\u00a0↓")):
        stored = [next(one for one in report["scorers"] if one["name"] == title) for report in reports]
        assert [cell["scorers"][title]["mean"] for cell in cells] == [one["mean"] for one in stored]
        table = matrix.partition(f'aria-label="Matrix of {name}"')[2].partition("</table>")[0]
        assert re.findall(r'aria-label="([\d.]+): the run of', table) == [f"{one['mean']:.3f}" for one in stored]
    info = printed(evalstone, "ledger", "info")
    (dataset,) = client.get("/datasets.json").json
    assert (dataset["versions"], dataset["runs"]) == (info["counts"]["dataset"], info["counts"]["run"])
    versions = client.get("/datasets/d.json").json["versions"]
    assert sum(version["samples"] for version in versions) == info["samples"] - info["counts"]["sample"]
    assert {version["version"] for version in versions} == {report["dataset"]["version"] for report in reports}
