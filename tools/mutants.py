"""Mutation tests: faults are put into a copy of the code, one at a time; a fault that no test notices survives.

    python -m tools.mutants                                           the required ones and a sample of each folder
    python -m tools.mutants src/evalstone/run/budget.py --tests tests/run    all of a file
    python -m tools.mutants src/evalstone/stats --sample 50           some of a folder
    python -m tools.mutants --required report                         the required ones whose title or path has a word

A mutant is first run against the tests that execute its line, and if it survives against all of `--tests`. The code is
copied to a temporary folder; this checkout is never changed. The exit code is 1 if a required mutant survives.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Literal, TypeAlias

from coverage import CoverageData

from tools.required_mutants import REQUIRED, Mutant

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "src/evalstone/results": ("tests/results",),
    "src/evalstone/stats": ("tests/stats",),
    "src/evalstone/report": ("tests/report",),
    "src/evalstone/run": ("tests/run",),
    "src/evalstone/scorers": ("tests/scorers",),
}
"""The folders that are sampled by default, and the tests that have to notice their faults."""

Result: TypeAlias = Literal["killed", "timeout", "survived"]

COMPARISONS: Mapping[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
OPERATORS: Mapping[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Div(),
    ast.Mod: ast.Mult(),
    ast.Pow: ast.Mult(),
}


# ---- Mutants of Python code ----


def mutants_of(path: str, source: str, tests: Sequence[str]) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    found: list[Mutant] = []
    code = source.encode()
    starts = [0]
    for line in code.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, text in _replacements(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = code[begin:end].decode()
        changed = (code[:begin] + text.encode() + code[end:]).decode()
        title = f"{_one_line(before)} -> {_one_line(text)}"
        found.append(Mutant(title, path, before, text, tuple(tests), node.lineno, changed))
    return sorted(found, key=lambda mutant: mutant.line)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 70 else line[:69] + "…"


Place: TypeAlias = ast.expr | ast.stmt


def _replacements(node: ast.AST) -> Iterator[tuple[Place, str]]:
    """The nodes that are mutated, each with the code that takes its place."""
    match node:
        case ast.JoinedStr():  # the places of what is inside are not those of the source
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Compare(left, ops, comparators):
            for at, operator in enumerate(ops):
                mutated = [*ops[:at], COMPARISONS[type(operator)], *ops[at + 1 :]]
                yield node, _expression(ast.Compare(left, mutated, comparators))
        case ast.BoolOp(op, values):
            yield node, _expression(ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, _expression(operand)
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            yield node, _expression(ast.BinOp(left, OPERATORS[type(operator)], right))
        case ast.AugAssign(target, operator, value) if type(operator) in OPERATORS:
            yield node, ast.unparse(ast.AugAssign(target, OPERATORS[type(operator)], value))
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            # What would be the same as another operator, or as a `not` that is dropped, is a mutant already.
            match test:
                case ast.UnaryOp(ast.Not()):
                    pass
                case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn() | ast.Is() | ast.IsNot()]):
                    pass
                case _:
                    yield test, _expression(ast.UnaryOp(ast.Not(), test))
        case ast.Constant(value) if isinstance(value, bool):
            yield node, repr(not value)
        case ast.Constant(value) if isinstance(value, int):
            yield node, repr(value + 1)
        case ast.Constant(value) if isinstance(value, float):
            yield node, repr(value * 2 if value else 1.0)
        case ast.Call(function, arguments, keywords):
            if len(arguments) > 1:
                yield node, ast.unparse(ast.Call(function, arguments[:-1], keywords))
            for at in range(len(keywords)):
                yield node, ast.unparse(ast.Call(function, arguments, keywords[:at] + keywords[at + 1 :]))
        case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
            yield node, "return None"
        case _:
            pass
    for name, children in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in children if isinstance(children, list) else [children]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(child, ast.AST):
                yield from _replacements(child)


def _expression(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def python_files(path: str) -> list[str]:
    """A file, or the modules of a folder."""
    place = ROOT / path
    if not place.exists():
        raise SystemExit(f"{path} is not in this checkout")
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return [str(file.relative_to(ROOT)) for file in files]


# ---- Copies of the code, in which tests run ----


class Copy:
    """A copy of this checkout in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        shared = ROOT.parent / "shared"
        if shared.exists() and not (folder.parent / "shared").exists():
            (folder.parent / "shared").symlink_to(shared.resolve())
        # Time and size, by which Python knows stale bytecode, may be those of the mutant before; a hash is not.
        compileall.compile_dir(folder / "src", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)

    def test(self, tests: Sequence[str], *options: str, timeout: float | None = None) -> tuple[int | None, str]:
        """The exit code of pytest, None when time ran out, and what it printed."""
        chosen = self.folder.parent / f"{self.folder.name}.tests"
        chosen.write_text("\n".join(tests))
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COVERAGE_FILE": str(self.folder / ".coverage"),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options, f"@{chosen}"]
        with subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return None, ""
        return process.returncode, printed

    @contextlib.contextmanager
    def mutated(self, mutant: Mutant) -> Generator[None]:
        """Within the block, the copy has the mutant."""
        file = self.folder / mutant.path
        original = file.read_text(encoding="utf-8")
        file.write_text(mutant.changed or mutant.applied(original), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(original, encoding="utf-8")


class Bench:
    """Copies of the code, one a worker, and how long the tests take without a mutant."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.jobs = jobs
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            (folder / str(number)).mkdir()
            self._copies.put(Copy(folder / str(number)))

    @contextlib.contextmanager
    def _copy(self) -> Generator[Copy]:
        copy = self._copies.get()
        try:
            yield copy
        finally:
            self._copies.put(copy)

    def baseline(self, tests: Sequence[str], *options: str) -> tuple[float, dict[str, dict[int, list[str]]]]:
        """How long the tests take without a mutant, and the tests that execute each line of each file.

        Raises:
            SystemExit: A test fails without a mutant.
        """
        with self._copy() as copy:
            started = time.monotonic()
            code, printed = copy.test(tests, *options)
            if code != 0:
                raise SystemExit(f"tests fail without a mutant:\n{printed[-3000:]}")
            seconds = time.monotonic() - started
            by_file: dict[str, dict[int, list[str]]] = {}
            if options:
                data = CoverageData(str(copy.folder / ".coverage"))
                data.read()
                for name in data.measured_files():
                    lines = data.contexts_by_lineno(name)
                    relative = str(Path(name).relative_to(copy.folder))
                    by_file[relative] = {
                        line: sorted({c.rsplit("|", 1)[0] for c in contexts if c}) for line, contexts in lines.items()
                    }
        return seconds, by_file

    def run(self, mutant: Mutant, first: Sequence[str], timeout: float) -> Result:
        """Whether a mutant is noticed, by the tests that are likely to or by any other of its tests."""
        with self._copy() as copy, copy.mutated(mutant):
            for tests in filter(None, (first, mutant.tests)):
                code, printed = copy.test(tests, timeout=timeout)
                if code is None:
                    return "timeout"
                if code == 4 and tests is first:  # a module that can't be imported: pytest finds no test by its name
                    continue
                if code not in (0, 1, 2):
                    raise SystemExit(f"pytest ended with {code} for {mutant.path}:{mutant.line}:\n{printed[-3000:]}")
                if code:
                    return "killed"
        return "survived"

    def run_all(
        self, mutants: Sequence[Mutant], covering: Mapping[str, Mapping[int, Sequence[str]]], timeout: float
    ) -> list[tuple[Mutant, Result]]:
        """The result of each mutant, printed as it comes in."""

        def one(mutant: Mutant) -> tuple[Mutant, Result]:
            result = self.run(mutant, covering.get(mutant.path, {}).get(mutant.line, ()), timeout)
            print(f"  {result:<9} {mutant.path}:{mutant.line}  {mutant.title}", flush=True)
            return mutant, result

        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(one, mutants))


# ---- Reports ----


def check_required(bench: Bench, word: str) -> bool:
    """Run the required mutants whose title or path has the word, and say which survive."""
    mutants = [mutant for mutant in REQUIRED if word in mutant.title or word in mutant.path]
    tests = sorted({name for mutant in mutants for name in mutant.tests})
    seconds, _ = bench.baseline(tests)
    results = bench.run_all([mutant.located(ROOT) for mutant in mutants], {}, 3 * seconds + 10)
    dead = sum(result != "survived" for _, result in results)
    print(f"required mutants: {dead} of {len(results)} die", flush=True)
    return dead == len(results)


def sample(bench: Bench, path: str, tests: Sequence[str], size: int | None, seed: int) -> None:
    """Run the mutants of a file or folder, or a random sample of them, and print the rate."""
    started = time.monotonic()
    mutants = [
        mutant
        for file in python_files(path)
        for mutant in mutants_of(file, (ROOT / file).read_text(encoding="utf-8"), tests)
    ]
    total = len(mutants)
    if size is not None and size < total:
        mutants = sorted(random.Random(seed).sample(mutants, size), key=lambda mutant: (mutant.path, mutant.line))
    seconds, covering = bench.baseline(tests, "--cov=evalstone", "--cov-context=test", "--cov-report=")
    results = bench.run_all(mutants, covering, 3 * seconds + 10)
    dead = sum(result != "survived" for _, result in results)
    of = f"{len(results)} of {total} mutants" if len(results) < total else f"{total} mutants"
    rate = f"{100 * dead / len(results):.0f}%" if results else "none to kill"
    print(f"{path}: {dead} of {of} die ({rate}), {time.monotonic() - started:.0f} s", flush=True)


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="files or folders to mutate")
    parser.add_argument("--tests", nargs="+", default=(), help="the tests to run; default: the folder's own")
    parser.add_argument("--sample", type=int, help="how many mutants of each path; default: all, or 60 of each folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--required", nargs="?", const="", metavar="WORD", help="run the required mutants only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evalstone-mutants-") as folder:
        bench = Bench(Path(folder), options.jobs)
        if options.paths:
            for path in options.paths:
                sample(bench, path, options.tests or _own_tests(path), options.sample, options.seed)
            return 0
        alive = not check_required(bench, options.required or "")
        if options.required is None:
            for path, tests in FOLDERS.items():
                sample(bench, path, tests, options.sample or 60, options.seed)
        return 1 if alive else 0


def _own_tests(path: str) -> Sequence[str]:
    return next((tests for folder, tests in FOLDERS.items() if path.startswith(folder)), ("tests",))


if __name__ == "__main__":
    sys.exit(main())
