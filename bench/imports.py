"""What importing the results of other tools takes: seconds, processor time and memory, a row for each tool.

    python bench/imports.py [--rows 100000] [TOOL …]

The files have the rows of the tests' fixtures, which the tools wrote, with other questions. Making them isn't counted.
Each is imported in a process of its own, without a ledger. The rows of deepeval, inspect and lm-eval have judges, tool
calls and eight metrics, or two filters.
"""

from __future__ import annotations

import argparse
import copy
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalstone import import_results

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.processes import own_peak  # noqa: E402 - the root isn't in the path of a script
from tests.compat.imports.large import ANSWER, large  # noqa: E402

FIXTURES = ROOT / "tests" / "compat" / "imports"


def _json(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text("utf-8"))


def _write(path: Path, begin: str, items: Iterator[Any], end: str) -> None:
    """A JSON document with a list of many items."""
    with path.open("w", encoding="utf-8") as file:
        file.write(begin)
        for number, item in enumerate(items):
            file.write(("," if number else "") + json.dumps(item))
        file.write(end)


def promptfoo(folder: Path, rows: int) -> Path:
    """Tests with two assertions."""
    path = folder / "results.json"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(large(rows))
    return path


def deepeval(folder: Path, rows: int) -> Path:
    """The cases of the fixture, of which the judge fails one in four."""
    run = _json("deepeval/results.json")
    cases = run.pop("testCases")
    for name in ("metricsScores", "testPassed", "testFailed"):
        run.pop(name, None)

    def one(number: int) -> dict[str, Any]:
        case = cases[number % len(cases)]
        return {**case, "name": f"test_case_{number}", "order": number, "input": f"What is {number}?"}

    path = folder / "results.json"
    _write(path, json.dumps(run)[:-1] + ', "testCases": [', map(one, range(rows)), "]}")
    return path


def _inspect(rows: int) -> tuple[dict[str, Any], Callable[[int], dict[str, Any]]]:
    log = _json("inspect/two.json")
    samples = log.pop("samples")
    log.pop("reductions", None)
    log["eval"]["dataset"]["sample_ids"] = [f"s{number}" for number in range(rows // 2)]
    log["results"] = {"total_samples": rows, "completed_samples": rows, "scores": []}

    def one(number: int) -> dict[str, Any]:
        sample = copy.copy(samples[1 if number % 4 < 2 else 4])
        return {**sample, "id": f"s{number // 2}", "epoch": number % 2 + 1, "input": f"What is {number // 2}?"}

    return log, one


def inspect_json(folder: Path, rows: int) -> Path:
    """Samples with two epochs."""
    log, one = _inspect(rows)
    path = folder / "log.json"
    _write(path, json.dumps(log)[:-1] + ', "samples": [', map(one, range(rows)), "]}")
    return path


def inspect_eval(folder: Path, rows: int) -> Path:
    """The same in an archive, with a file for each sample."""
    log, one = _inspect(rows)
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({key: log[key] for key in ("version", "eval", "plan")}))
        for sample in map(one, range(rows)):
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(log))
    return path


def lm_eval(folder: Path, rows: int) -> Path:
    """Documents with two filters: two lines each."""
    source = next((FIXTURES / "lm_eval" / "small").rglob("samples_capitals_open*.jsonl"))
    results = next((FIXTURES / "lm_eval" / "small").rglob("results*.json"))
    lines = [json.loads(line) for line in source.read_text("utf-8").splitlines()]
    by_filter: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_filter.setdefault(line["filter"], []).append(line)
    (folder / results.name).write_text(results.read_text("utf-8"), "utf-8")
    with (folder / source.name).open("w", encoding="utf-8") as file:
        for of_filter in by_filter.values():
            for number in range(rows // len(by_filter)):
                file.write(json.dumps({**of_filter[number % len(of_filter)], "doc_id": number}) + "\n")
    return folder


def ragas(folder: Path, rows: int) -> Path:
    """A table with three metrics, of which one fails for every tenth row."""
    path = folder / "results.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        names = "user_input,retrieved_contexts,response,reference,exact_match,faithfulness,context_recall"
        table.writerow(names.split(","))
        passages = str(['The capital of France is "Paris".', "Capitals aren't it."])
        for number in range(rows):
            last = "" if number % 10 == 0 else number % 4 / 4
            asked = f"What is {number}?", passages, f"{ANSWER}{number}", str(number)
            table.writerow([*asked, number % 2, number % 3 / 2, last])
    return path


def _lines(path: Path, rows: int, change: Callable[[dict[str, Any], int], dict[str, Any]], file: Path) -> Path:
    """The rows of a fixture again and again, as JSON Lines."""
    text = (FIXTURES / path).read_text("utf-8")
    known = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    with file.open("w", encoding="utf-8") as opened:
        for number in range(rows):
            opened.write(json.dumps(change(known[number % len(known)], number)) + "\n")
    return file


def openai_evals(folder: Path, rows: int) -> Path:
    """Output items with two graders."""
    path = Path("openai_evals/items.jsonl")
    return _lines(path, rows, lambda row, n: {**row, "datasource_item_id": n, "id": f"i{n}"}, folder / "items.jsonl")


def mlflow(folder: Path, rows: int) -> Path:
    """Traces with six assessments."""
    return _lines(Path("mlflow/traces.jsonl"), rows, lambda row, _: row, folder / "traces.jsonl")


def phoenix(folder: Path, rows: int) -> Path:
    """Runs of an experiment with three annotations."""
    path = Path("phoenix/experiment.json")
    return _lines(
        path, rows, lambda row, n: {**row, "example_id": f"e{n}", "repetition_number": 1}, folder / "experiment.jsonl"
    )


def langsmith(folder: Path, rows: int) -> Path:
    """Rows of a table with three scores."""
    path = Path("langsmith/results.json")
    return _lines(path, rows, lambda row, n: {**row, "example_id": f"e{n}"}, folder / "results.jsonl")


MAKERS: Mapping[str, Callable[[Path, int], Path]] = {
    "promptfoo": promptfoo,
    "deepeval": deepeval,
    "inspect .json": inspect_json,
    "inspect .eval": inspect_eval,
    "lm-eval": lm_eval,
    "ragas": ragas,
    "openai-evals": openai_evals,
    "mlflow": mlflow,
    "phoenix": phoenix,
    "langsmith": langsmith,
}


def _import(path: str) -> None:
    """What the process of an import does and prints: its measures as JSON."""
    began = time.perf_counter()
    runs = import_results(path, ledger=None)
    seconds, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    records = sum(len(run.records) for run in runs)
    print(json.dumps([seconds, used.ru_utime + used.ru_stime, own_peak(), records]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=f"of {', '.join(MAKERS)}; by default, all")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.file:
        _import(given.file)
        return
    print(f"{given.rows:,} rows: seconds, seconds of processor time, MB of memory, records")
    for tool in given.tools or MAKERS:
        with tempfile.TemporaryDirectory() as folder:
            path = MAKERS[tool](Path(folder), given.rows)
            command = [sys.executable, __file__, "--file", str(path)]
            seconds, used, memory, records = json.loads(subprocess.check_output(command))
        print(f"{tool:14} {seconds:6.1f} {used:6.1f} {memory:5.0f} {records:9,}", flush=True)


if __name__ == "__main__":
    main()
