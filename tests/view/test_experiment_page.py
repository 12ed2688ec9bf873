"""The page of an experiment: its matrix."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from pathlib import Path

import pytest

from evalstone import Run, evaluate, write_run
from evalstone.cli.experiment import experiment_in
from evalstone.datasets.stored import SUMMARY
from evalstone.ledger.store import Ledger
from evalstone.run.experiment_cells import in_experiment
from evalstone.types import StoredCell
from evalstone.view.app import application
from evalstone.view.experiment_files import ExperimentFiles
from evalstone.view.experiments import Experiments
from evalstone.view.shelf import Shelf
from tests.runs import Given, Harm, samples_of
from tests.view.conftest import Client, client_of

NAME, ADDRESS = "prompts & models/2", "/experiments/prompts%20%26%20models%2F2"
HOSTILE = "<b>detailed</b>"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Client, dict[tuple[str, float], Run]]:
    """An experiment of two factors whose first cell ran twice; the score is the number of the cell in tenths."""
    url = str(tmp_path_factory.mktemp("experiments") / "ledger.db")
    evaluate(samples_of(["1"]), [Given()], ledger=url, name="in none")
    runs: dict[tuple[str, float], Run] = {}
    for again in (True, False):
        for n, (prompt, heat) in enumerate(itertools.product(["short", HOSTILE], [0.0, 0.7]), start=1):
            cell = StoredCell(experiment=NAME, name=f"{prompt},{heat}", factors={"prompt": prompt, "heat": heat})
            if again and n > 1:
                break
            with in_experiment(cell):
                answers = [f"{0.9 if again else n / 10}", "skip"]
                runs[prompt, heat] = evaluate(samples_of(answers), [Given(), Harm()], ledger=url, name=cell.name)
    return Client(application(Shelf(url))), runs


def test_an_experiment_is_shown_as_its_matrix(shown: tuple[Client, dict[tuple[str, float], Run]]) -> None:
    client, runs = shown
    page = client.get(ADDRESS)
    assert page.status == 200
    assert "4 cells" in page.words
    assert "heat = 0.0 heat = 0.7 short 0.100" in page.words
    assert HOSTILE not in page.text
    assert page.links("^/runs/[^?]*$")[:4] == [f"/runs/{run.id}" for run in runs.values()]
    first, *others = (run.id for run in runs.values())
    assert page.links("^/compare")[:3] == [f"/compare?runs={first}%2C{other}" for other in others]
    assert page.links("^/compare")[-1] == f"/compare?runs={'%2C'.join([first, *others])}"
    assert (
        "prompt = short prompt = &lt;b&gt;detailed&lt;/b&gt; 0.0 0.100" in client.get(f"{ADDRESS}?across=prompt").words
    )
    assert ADDRESS in client.get("/").links("^/experiments/")
    assert client.get(f"/runs/{runs['short', 0.0].id}").links("^/experiments/") == [ADDRESS]


def test_cells_are_compared_with_one_of_them(shown: tuple[Client, dict[tuple[str, float], Run]]) -> None:
    client, runs = shown
    usual = client.get(ADDRESS)
    assert "0.100" in usual.words
    assert usual.text.count(">baseline</span>") == 2
    assert "+0.100 " in usual.words
    assert "-0.100 " not in usual.words
    chosen = client.get(f"{ADDRESS}?baseline=short%2C0.7")
    assert "-0.100 " in chosen.words
    first, second = runs["short", 0.0].id, runs["short", 0.7].id
    assert chosen.links(f"^/compare.runs={second}%2C{first}$")
    assert client.get(f"{ADDRESS}?baseline=none").status == 400
    ticked = client.get(f"/compare?baseline=usual&runs={first}&runs={second}")
    # The one that started first is the baseline; of two in the same second, the one that is listed last.
    ids = [run.id for run in sorted((runs["short", 0.7], runs["short", 0.0]), key=lambda run: run.started)]
    assert (ticked.status, ticked.headers["location"]) == (303, f"/compare?runs={'%2C'.join(ids)}")
    (row,) = (each for each in client.get(f"{ADDRESS}.json").json["cells"] if each["run"] == second)
    assert row["baseline"] == "short,0.0"
    (change,) = (one for name, one in row["differences"]["of"].items() if name.startswith("given"))
    assert round(change["estimate"], 3) == 0.1


def test_the_data_has_the_latest_run_of_each_cell(shown: tuple[Client, dict[tuple[str, float], Run]]) -> None:
    client, runs = shown
    data = client.get(f"{ADDRESS}.json").json
    assert (data["experiment"], data["factors"]) == (NAME, ["prompt", "heat"])
    assert [(each["run"], each["factors"]["heat"]) for each in data["cells"]] == [
        (run.id, heat) for (_, heat), run in runs.items()
    ]
    rows = list(csv.DictReader(io.StringIO(client.get(f"{ADDRESS}.csv").text)))
    assert [(row["heat"], row["scorer"], row["mean"]) for row in rows[:3]] == [
        ("0.0", "given", "0.1"), ("0.0", "harm", "0.1"), ("0.7", "given", "0.2"),
    ]  # fmt: skip


def test_a_large_matrix_comes_in_pages(
    shown: tuple[Client, dict[tuple[str, float], Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, runs = shown
    monkeypatch.setattr("evalstone.view.pages.experiment.ROWS_PER_PAGE", 1)
    monkeypatch.setattr("evalstone.view.pages.experiment.COLUMNS_SHOWN", 1)
    page, address = client.get(ADDRESS), f"{ADDRESS}?across=heat"
    found, pages = list[str](), 0
    while address:
        page = client.get(address)
        pages += 1
        assert f"Rows {pages} to {pages} of 2" in page.words
        assert "The first 1 of 2 values of heat are columns" in page.words
        found += dict.fromkeys(page.links("^/runs/[^?]*$"))
        address = next(iter(page.links(r"^/experiments/[^.]*after=")), "")
    # The other values of heat are rows if another factor is chosen.
    assert found == [f"/runs/{run.id}" for (_, heat), run in runs.items() if heat == 0.0]
    assert "Choose another factor under Columns to see all cells." in page.words
    assert page.links("^/experiments/[^.]*across=heat$")
    data = client.get(f"{ADDRESS}.json?across=heat").json
    others = client.get(data["next"]).json
    assert [each["run"] for each in (*data["cells"], *others["cells"])] == [run.id for run in runs.values()]
    assert others["next"] is None
    assert len(client.get(f"{ADDRESS}.csv").text.splitlines()) == 9
    assert client.get(f"{ADDRESS}?after=x").status == 400


@pytest.mark.parametrize(
    ("query", "rows", "cells", "total"), [("", 20, 100, 150), ("across=many", 4, 96, 120), ("across=few", 20, 100, 150)]
)
def test_a_page_has_so_many_cells_whichever_factor_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, rows: int, cells: int, total: int
) -> None:
    monkeypatch.setattr("evalstone.view.pages.experiment.CELLS_PER_PAGE", 100)
    (tmp_path / "d.jsonl").write_text('{"id": "q"}\n')
    many, few = [f"m{n:02}" for n in range(30)], [f"f{n}" for n in range(5)]
    (tmp_path / "exp.toml").write_text(
        'data = "d.jsonl"\nscorers = ["contains(expected=a)"]\n[experiment]\ntargets = "a:b"\n'
        f"[experiment.parameters]\nfew = {few}\nmany = {many}\n"
    )
    url = str(tmp_path / "ledger.db")
    Ledger(url).close()
    shelf = Shelf(url)
    files = ExperimentFiles(tmp_path, [], experiment_in)
    client = Client(application(shelf, experiments=Experiments(shelf, files)))
    page = client.get(f"/experiments/exp?{query}")
    matrix, listed = page.text.partition('id="cells"')[::2]
    assert (matrix.count('<tr role="row">') - 1, listed.count("data-row")) == (rows, cells)
    found, address = set[str](), f"/experiments/exp?{query}"
    while address:
        page = client.get(address)
        found |= {
            *re.findall(r'scope="row"><span class="text" dir="auto">([^<]*)<', page.text.partition('id="cells"')[2])
        }
        address = next(iter(page.links(r"^/experiments/[^.]*after=")), "")
    assert len(found) == total


def test_a_factor_with_the_name_of_a_column_has_its_own(tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    with in_experiment(StoredCell(experiment="e", name="c", factors={"scorer": "hot", "heat": 1})):
        evaluate(samples_of(["1"]), [Given()], ledger=url)
    (row,) = csv.DictReader(io.StringIO(client_of(url).get("/experiments/e.csv").text))
    assert (row["scorer"], row["factor scorer"], row["heat"]) == ("given", "hot", "1")


def test_an_unknown_experiment_or_factor_is_an_error_in_words(
    shown: tuple[Client, dict[tuple[str, float], Run]], tmp_path: Path
) -> None:
    client, _ = shown
    assert client.get("/experiments/none").status == 404
    reply = client.get(f"{ADDRESS}?across=model")
    assert (reply.status, "has no factor model; it has prompt, heat" in reply.words) == (400, True)


def test_numbers_that_json_lacks_are_text_or_null(tmp_path: Path) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    run = evaluate(samples_of(["1"]), [Given()], ledger=None)
    write_run(run, tmp_path / "run")
    file = tmp_path / "run" / SUMMARY
    cell = {"experiment": "e", "name": "c", "factors": {"heat": math.inf, "none": math.nan}}
    data = {**json.loads(file.read_text()), "paid": None, "cost": math.inf, "cell": cell}
    file.write_text(json.dumps(data))
    client = client_of(None, tmp_path)
    for address in (
        "/experiments/e.json",
        "/runs.json",
        f"/runs/{run.id}.json",
        "/datasets.json",
        "/scorers/given.json",
    ):
        json.loads(client.get(address).text, parse_constant=refuse)
    (cell,) = client.get("/experiments/e.json").json["cells"]
    assert (cell["cost"], cell["factors"]) == ("inf", {"heat": "inf", "none": None})
    assert client.get("/experiments/e").status == 200
