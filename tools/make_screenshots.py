"""Pictures of the pages of `evalstone view` for the documentation, from the bundled data.

    python -m tools.make_screenshots [FOLDER]        (docs/images, with /usr/bin/chromium)

The runs are made in a temporary folder: the bundled answers as they are and with some of them made worse, scored by the
lexical judge, and a few scored by a stand-in for a model server (bench/model_server.py), which has prompts and replies.
The pages of the tutorials are made by following them.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from evalstone import Live, Sample, load, read_run
from evalstone.datasets.stored import sample_row
from evalstone.ledger.labels import Label, Mode, ModeLabel, assign_mode, pin, write_label, write_mode
from evalstone.ledger.store import Ledger
from evalstone.view.drafts import DatasetFolder, Draft
from tools import tutorials

ROOT = Path(__file__).parents[1]
DATA = ROOT / "src" / "evalstone" / "datasets" / "demo" / "ragtruth_qa.jsonl"
CHROMIUM = "/usr/bin/chromium"
LEDGER = "ledger.db"
DATASETS = "datasets"
SCORERS = ("faithfulness", "context_relevance", "context_precision")
ADDED = " The figures were first reported in 1987."
WIDTH, HEIGHT = 1280, 800
TUTORIALS = {"rag": "report.html", "agent": "shop/report.html", "judge": "calibration.html"}
"""The page that each tutorial writes."""
TOPICS = ("billing", "delivery", "returns")
EXPERIMENT = """
data = "questions.jsonl"
scorers = ["contains", "f1_tokens"]
name = "prompts"

[experiment]
targets = ["my_app:short", "my_app:long"]

[experiment.parameters]
temperature = [0.0, 0.7]
"""
TARGETS = """
def short(*, input: str, temperature: float = 0.0) -> str:
    return input.rpartition(" ")[2] if temperature < 0.5 or len(input) % 3 else "I don't know."

def long(*, input: str, temperature: float = 0.0) -> str:
    return f"You asked about {input}." if temperature < 0.5 or len(input) % 4 else "Please ask again."
"""
MODES = {
    "invented detail": "The answer adds a fact that is in no passage.",
    "wrong number": "A number in the answer is not the one in the passages.",
}


@dataclass(frozen=True)
class Picture:
    """A picture of one page."""

    name: str
    address: str
    opened: tuple[str, ...] = ()
    """What is clicked, in this order."""
    top: str = ""
    """What the picture begins with; by default, the top of the page."""


def evalstone(folder: Path, *arguments: str) -> None:
    """Run a command."""
    command = [sys.executable, "-m", "evalstone", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def rows(*, worse: bool) -> list[dict[str, Any]]:
    """The bundled answers; worse: with a sentence that no passage supports in a fifth of them."""
    chance = random.Random(4)
    read = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]
    for row in read:
        if worse and chance.random() < 0.2:
            row["output"] = row["output"].rstrip() + ADDED
    return read


def write(file: Path, samples: Sequence[Mapping[str, Any]]) -> None:
    """Write a dataset."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in samples), "utf-8")


def make_runs(folder: Path) -> dict[str, str]:
    """The runs by name, with labels and failure modes for one of them, a calibration and a pinned baseline."""
    for name, worse in (("main", False), ("branch-17", True)):
        write(folder / name / "answers.jsonl", rows(worse=worse))
        scorers = [word for scorer in SCORERS for word in ("-s", scorer)]
        evalstone(folder, "run", f"{name}/answers.jsonl", *scorers, "--name", name, "--ledger", LEDGER, "-q")
    evalstone(folder, "calibrate", "--labels", "main/answers.jsonl", "--label", "label", "--positive", "grounded",
              "-s", "faithfulness", "--ledger", LEDGER)  # fmt: skip
    write(folder / "few.jsonl", rows(worse=False)[:6])
    with stand_in() as url:
        evalstone(folder, "run", "few.jsonl", "-s", "faithfulness", "-j", "vllm/judge", "--base-url", url,
                  "--name", "with a model", "--ledger", LEDGER, "-q")  # fmt: skip
    questions = [{"input": f"Question {n} about {topic}", "reference": topic} for n in range(20) for topic in TOPICS]
    write(folder / "questions.jsonl", questions)
    (folder / "my_app.py").write_text(TARGETS)
    (folder / "experiment.toml").write_text(EXPERIMENT)
    evalstone(folder, "run", "experiment.toml", "--ledger", LEDGER, "-q")
    go_live(folder)
    with Ledger(str(folder / LEDGER)) as ledger:
        runs = {row.metadata["name"]: row.id for row in ledger.runs()}
        pin(ledger, "answers.jsonl", runs["main"])
        label_some(ledger, runs["branch-17"], folder)
    edit_some(folder, read_run(runs["branch-17"], ledger=str(folder / LEDGER)).dataset_version)
    return runs


def go_live(folder: Path) -> None:
    """Live scores of three entities."""
    live = Live(["faithfulness"], judge="lexical", stream="shop", sampling=1.0, ledger=str(folder / LEDGER))
    for place, row in enumerate(rows(worse=True)):
        fields = {name: row[name] for name in ("input", "output", "context")}
        live.submit(**fields, entity=TOPICS[place % len(TOPICS)])
    live.close()


def edit_some(folder: Path, version: str) -> None:
    """Edits of a dataset that aren't saved."""
    (folder / DATASETS).mkdir()
    changed, removed, *_ = load(folder / "branch-17" / "answers.jsonl")
    reference = "The passages don't say so."
    changes = {
        changed.id: {**sample_row(changed), "reference": reference},
        removed.id: None,
        "new": sample_row(Sample(id="new", input="Who wrote the first program?", reference="Ada Lovelace, in 1843.")),
    }
    draft = Draft(file="answers.jsonl", dataset="answers.jsonl", base=version, changes=changes)
    DatasetFolder(str(folder / DATASETS)).write(draft)


def label_some(ledger: Ledger, run: str, folder: Path) -> None:
    """Labels of two annotators, with notes and failure modes."""
    signature = read_run(run, ledger=str(folder / LEDGER))["faithfulness"].info.signature
    modes = {name: Mode(id=name, dataset="answers.jsonl", name=name, definition=text) for name, text in MODES.items()}
    for mode in modes.values():
        write_mode(ledger, mode)
    samples = [*load(folder / "branch-17" / "answers.jsonl")]
    for sample in random.Random(4).sample(samples, 24):
        added = (sample.output or "").endswith(ADDED)
        wrong = added or sample.metadata["label"] != "grounded"
        note = "1987 is in no passage" if added else "not in the passages" if wrong else ""
        for annotator in ("ada", "grace"):
            label = Label(run=run, sample=sample.id, signature=signature, annotator=annotator, note=note,
                          value=0.0 if wrong else 1.0, chosen="random", probability=24 / 60)  # fmt: skip
            write_label(ledger, label)
        if wrong:
            mode = modes["wrong number" if "numb" in (sample.output or "") and not added else "invented detail"]
            assign_mode(ledger, ModeLabel(run=run, sample=sample.id, mode=mode.id, annotator="ada"))


@contextmanager
def stand_in() -> Generator[str]:
    """The URL of a stand-in for a model server."""
    command = [sys.executable, str(ROOT / "bench" / "model_server.py"), "20", "0", "0", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


@contextmanager
def viewer(folder: Path) -> Generator[str]:
    """The URL of the pages."""
    command = [sys.executable, "-m", "evalstone", "view", "--ledger", LEDGER, "--port", "0", "--datasets", DATASETS]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        found = re.search(r"http://\S+?:\d+", server.stderr.readline())
        assert found is not None
        yield found[0]
        server.terminate()


def pictures(runs: Mapping[str, str]) -> list[Picture]:
    """The pages that are shown."""
    main, branch, model = runs["main"], runs["branch-17"], runs["with a model"]
    first = rows(worse=False)[0]["id"]
    one_call = ("details.calls > summary", "details.calls details > summary")
    return [
        Picture("view-runs", "/?dataset=answers.jsonl"),
        Picture("view-run", f"/runs/{branch}"),
        Picture("view-samples", f"/runs/{branch}", top="#samples"),
        Picture("view-sample", f"/runs/{branch}/samples/15103-gpt-3.5-turbo-0613"),
        Picture("view-calls", f"/runs/{model}/samples/{first}", one_call, "details.calls"),
        Picture("view-compare", f"/compare?runs={main},{branch}&show=regressed"),
        Picture("view-label", f"/label?run={branch}&scorer=faithfulness&annotator=ada"),
        Picture("view-modes", f"/modes?run={branch}"),
        Picture("view-dataset", "/datasets/answers.jsonl", ("text=changes",)),
        Picture("view-edit", "/datasets/answers.jsonl/edit"),
        Picture("view-collect", f"/collect?run={branch}&scorer=faithfulness&max=0.4&all=1"),
        Picture("view-experiment", "/experiments/prompts"),
        Picture("view-live", "/live/shop"),
        Picture("view-judges", "/judges"),
        Picture("view-judge", "/judges", ("a[href^='/judges/']",)),
    ]


def take_tutorials(page: Page, out: Path) -> None:
    """Take a picture of the page that each tutorial writes."""
    for name, written in TUTORIALS.items():
        with tempfile.TemporaryDirectory() as folder:
            tutorials.outputs((ROOT / "docs/tutorials" / f"{name}.md").read_text("utf-8"), Path(folder))
            page.goto((Path(folder) / written).as_uri())
            page.screenshot(path=str(out / f"tutorial-{name}.png"))


def take(page: Page, url: str, picture: Picture, folder: Path) -> None:
    """Take a picture of a page, once what it needs has been computed."""
    for _ in range(60):
        reply = page.goto(url + picture.address)
        if reply is not None and reply.status != 202:
            break
        page.wait_for_timeout(1000)
    for selector in picture.opened:
        page.locator(selector).first.click()
    page.wait_for_timeout(1000)
    if picture.top:
        page.evaluate("where => document.querySelector(where).scrollIntoView()", picture.top)
        page.wait_for_timeout(200)
    page.screenshot(path=str(folder / f"{picture.name}.png"))


def main() -> None:
    """Make the pictures."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        runs = make_runs(folder)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with viewer(folder) as url:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            for picture in pictures(runs):
                take(page, url, picture, out)
            take_tutorials(page, out)
        browser.close()


if __name__ == "__main__":
    main()
