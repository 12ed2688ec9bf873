"""What files can do: code beside the data, huge rows and texts, and files that others may read."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.attack.harness import Result, evalstone, judged, serving, write_samples

MEGABYTES = 500.0
DECOYS = """
    aiodns uvloop brotli brotlicffi zstandard orjson ujson simplejson pandas polars pyarrow numpy scipy rich
    click jinja2 yaml tomli pydantic psycopg psycopg2 greenlet cchardet chardet
    charset_normalizer idna certifi sitecustomize usercustomize conftest json asyncio typing dataclasses logging
    signal platform secrets statistics random colorama pygments shellingham genai_prices pydantic_ai anthropic
    openai httpx google opentelemetry dotenv setuptools pkg_resources _pytest coverage readline curses IPython
    tornado multidict yarl attr propcache markupsafe docker snappy lz4 fsspec cython backports
    importlib_metadata exceptiongroup annotated_types email_validator
"""
"""Modules that Python or a library may import, installed or not."""


def code(folder: Path) -> Result:
    """A module beside the data is executed if a scorer names it, and never otherwise."""
    write_samples(folder, 3)
    mark = f"import pathlib; pathlib.Path({str(folder)!r}, 'executed-' + __name__.replace('.', '-')).touch()\n"
    for name in DECOYS.split():
        (folder / f"{name}.py").write_text(mark)
    (folder / "evil.py").write_text(mark)
    (folder / "mine.py").write_text(
        mark + "import evalstone\n\nclass Mine(evalstone.Scorer):\n    name = 'mine'\n\n"
        "    def score(self, *, output):\n        return evalstone.Score(1.0)\n"
    )
    (folder / "eval.toml").write_text('data = "data.jsonl"\nscorers = ["faithfulness"]\njudge = "lexical"\n')
    (folder / "mine.toml").write_text('data = "data.jsonl"\nscorers = ["mine:Mine"]\n')
    run = ["run", "data.jsonl", "--judge", "lexical", "--scorer"]
    with serving() as server:
        commands = [
            [*run, "faithfulness", "--out", "out", "--html", "page.html"],
            judged(server),
            ["run", "eval.toml"],
            ["run", "eval.toml", "--dry-run"],
            ["score", "--scorer", "rouge_l", "--output", "x", "--reference", "x"],
            ["report", "out", "--csv", "-"],
            ["compare", "out", "out"],
            ["audit", "data.jsonl", "--scorer", "faithfulness", "--judge", "lexical"],
            ["runs"],
            ["ledger", "info"],
            ["scorers"],
            ["demo"],
        ]
        for command in commands:
            evalstone(folder, *command)
    broken = [f"{path.name} without being named" for path in folder.glob("executed-*")]
    for path in folder.glob("executed-*"):
        path.unlink()
    named = [
        [*run, "mine:Mine"],
        [*run, "mine:Mine", "--dry-run"],
        ["run", "mine.toml"],
        ["run", "mine.toml", "--dry-run"],
    ]
    for command in named:
        done = evalstone(folder, *command)
        if done.code != 0 or str(folder / "mine.py") not in done.text:
            broken.append(f"{command[1:]} says not what it executed: code {done.code}, {done.text[-200:]}")
    executed = {path.name for path in folder.glob("executed-*")}
    broken += [f"{name} beside the named module" for name in sorted(executed - {"executed-mine"})]
    return Result(
        (len(commands) + len(named)) * len(DECOYS.split()), f"{len(DECOYS.split())} decoys beside the data", broken
    )


PARQUET = """
import sys
import pyarrow as pa
import pyarrow.parquet as pq

path, kind = sys.argv[1:]
rows = {"repeated": 2_000, "nulls": 200_000_000, "cell": 1}[kind]
repeat = lambda text: pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
output = {
    "repeated": lambda: repeat("x" * 4_000_000),
    "nulls": lambda: pa.nulls(rows, pa.string()),
    "cell": lambda: pa.array(["x" * 300_000_000]),
}[kind]()
table = pa.table({"output": output} if kind == "nulls" else {"output": output, "context": repeat("y")})
pq.write_table(table, path, compression="zstd", use_dictionary=kind == "repeated")
"""


def _parquet(path: Path, kind: str) -> None:
    """A small file of rows that are large in memory, written by a process of its own."""
    subprocess.run([sys.executable, "-c", PARQUET, str(path), kind], check=True)


def _line(path: Path, head: bytes, size: int) -> None:
    """A file that begins with `head` and goes on with one line of NUL, which takes no place on the disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)


def rows(folder: Path) -> Result:
    """Huge rows are refused, with their file, the limit, and the option that lifts it, before they are in memory."""
    deep = "[" * 200_000
    cases: dict[str, Callable[[Path], object]] = {
        "line.jsonl": lambda path: _line(path, b'{"output": "', 2**31),
        "blank.jsonl": lambda path: _line(path, b'{"output": "x"}\n', 2**31),
        "array.json": lambda path: _line(path, b'[{"output": "', 2**31),
        "cell.csv": lambda path: _line(path, b'output,context\n"', 2**31),
        "header.csv": lambda path: _line(path, b"output,", 2**31),
        "deep.jsonl": lambda path: path.write_text(f'{{"output": {deep}\n'),
        "deep.json": lambda path: path.write_text(deep),
        "digits.jsonl": lambda path: path.write_text(f'{{"output": "x", "metadata": {{"n": {"9" * 100_000}}}}}\n'),
        "repeated.parquet": lambda path: _parquet(path, "repeated"),
        "nulls.parquet": lambda path: _parquet(path, "nulls"),
        "cell.parquet": lambda path: _parquet(path, "cell"),
        "deep.toml": lambda path: path.write_text(f"data = {deep}"),
        "long.toml": lambda path: _line(path, b'data = "', 2**31),
    }
    broken: list[str] = []
    most = 0.0
    for name, write in cases.items():
        path = folder / name
        write(path)
        done = evalstone(folder, "run", name, "--scorer", "contains(expected=x)", timeout=60)
        path.unlink()
        most = max(most, done.megabytes)
        if done.megabytes > MEGABYTES or done.code not in (0, 2, 3) or "Traceback" in done.text:
            broken.append(
                f"{name}: {done.megabytes:.0f} MB, code {done.code}, {done.seconds:.0f} s, {done.stderr[-200:]}"
            )
        elif done.code == 2 and name not in done.stderr:
            broken.append(f"{name} is not named: {done.stderr[-200:]}")
    return Result(len(cases), f"at most {most:.0f} MB", broken)


def texts(folder: Path) -> Result:
    """Ten megabytes in an answer and a passage take bounded time and memory, in every scorer that works offline."""
    buffer = io.StringIO()
    n = 0
    while buffer.tell() < 10_000_000:
        buffer.write(f"The town number {n} has {n * 7} inhabitants and lies by the river {n % 997}. ")
        n += 1
    long = buffer.getvalue()
    row = {"id": "long", "input": long[:1000], "output": long, "context": [long], "reference": long}
    (folder / "data.jsonl").write_text(json.dumps(row) + "\n")
    names = """
        faithfulness context_relevance context_precision context_recall answer_relevancy answer_similarity
        rouge_l textual_difference similarity(expected=x) content_similarity completeness keyword_coverage
        tone_consistency exact_match contains(expected=x) regex(pattern=x)
    """
    scorers = names.split()
    broken: list[str] = []
    most = slowest = 0.0
    for scorer in scorers:
        done = evalstone(folder, "run", "data.jsonl", "--scorer", scorer, "--judge", "lexical", timeout=60)
        most, slowest = max(most, done.megabytes), max(slowest, done.seconds)
        if done.megabytes > MEGABYTES or done.seconds > 30 or done.code not in (0, 2, 3) or "Traceback" in done.text:
            broken.append(
                f"{scorer}: {done.megabytes:.0f} MB, {done.seconds:.0f} s, code {done.code}, {done.stderr[-200:]}"
            )
    return Result(len(scorers), f"at most {most:.0f} MB and {slowest:.0f} s", broken)


def permissions(folder: Path) -> Result:
    """Nobody else reads the ledger, the results and what else a run leaves."""
    write_samples(folder, 5)
    given = set(folder.rglob("*"))
    outputs = ["--out", "out/deep", "--html", "page.html"]
    codes = [
        evalstone(folder, "run", "data.jsonl", "--scorer", "faithfulness", "--judge", "lexical", *outputs).code,
        evalstone(folder, "ledger", "export", "dump.jsonl").code,
    ]
    made = [path for path in folder.rglob("*") if path not in given and not path.name.startswith(".std")]
    if codes != [0, 0] or len(made) < 5:
        return Result(len(made), "nothing was tried", [f"exit codes {codes}"])
    private = ("ledger", "records", "summary", "dump", "out", "deep", ".evalstone")
    broken = [
        f"{path.relative_to(folder)} has the mode {stat.S_IMODE(path.stat().st_mode):o}"
        for path in made
        if path.name.startswith(private) and path.stat().st_mode & 0o077
    ]
    return Result(len(made), f"{len(broken)} of {len(made)} files and folders are open to others", broken)


ATTACKS = {
    "Code beside the data": code,
    "Huge rows": rows,
    "Huge texts, offline": texts,
    "Files that others read": permissions,
}
