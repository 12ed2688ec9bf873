"""List the public names of other systems that have no row in src/evalstone/scorers/data/.

`python tools/foreign_names.py FOLDER` reads the packages in a folder without importing them: Python packages as
`pip install --no-deps --target FOLDER` leaves them (ragas, deepeval, inspect-ai, mlflow, lm-eval, arize-phoenix-evals,
arize-phoenix-client, langsmith, openevals, agentevals, opik, trulens-core, trulens-feedback, trulens-dashboard and
trulens-apps-langchain), and npm packages as `npm pack` leaves them (@mastra/evals and promptfoo), unpacked, with the
version in the name or without. The exit code is 1 if a name has no row.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from evalstone.scorers.other_systems import Name, table

DECLARED = re.compile(r"^export (?:declare )?(?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
ASYNC = re.compile(r"_async$|(?<=_)async_|^async_|^Async(?=[A-Z])")
"""What the asynchronous twin of a function has in its name."""
PROMPT = re.compile(r"create\w*Prompt$|Schema$|^[A-Z0-9_]+$")
"""Prompts and schemas that only their own scorers use."""
INTERNAL = frozenset(
    word
    for words in (
        "__title__ __version__ backends judges scorers datasets genai llm metrics utils types resources analytics",
        # of the clients of platforms: connections, identifiers and lists
        "APIResponse AsyncAPIResponse AsyncLangsmith AsyncStream BaseModel ContextThreadPoolExecutor DEFAULT_TIMEOUT",
        "DEFAULT_CONNECTION_LIMITS DEFAULT_MAX_RETRIES DefaultAioHttpClient DefaultAsyncHttpxClient DefaultHttpxClient",
        "LS_MESSAGE_VIEW_EXCLUDE LangSmithSecret NOT_GIVEN NoneType NotGiven Omit ProxiesTypes RequestOptions Stream",
        "Timeout Transport not_given omit file_from_path compute_run_id_for_secondary_replica set_runtime_overrides",
        "uuid7 uuid7_from_datetime cleanup close create delete get headers info list pull request_with_retries",
        "flush_compressed_traces address sandboxes threads sessions agents public workspace_id conversation_types",
        "clear_capabilities_cache clear_model_capabilities_cache set_session_hierarchy Basic LLMProvider GEvalPreset",
        "SYSTEM_PROMPT USER_PROMPT",
    )
    for word in words.split()
)


def exported(file: Path) -> Iterator[str]:
    """The names in `__all__` of a module; without one, those that it imports from its own package."""
    tree = ast.parse(file.read_text("utf-8"))
    names = [each for node in tree.body for each in _listed(node)]
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and _is_own(node, file))
    yield from names or (alias.asname or alias.name for node in imports for alias in node.names)


def _is_own(node: ast.ImportFrom, file: Path) -> bool:
    return bool(node.level) or (node.module or "").split(".")[0] == file.parent.parent.name


def _listed(node: ast.stmt) -> Iterable[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
        return []
    values = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return [value for value in values if isinstance(value, str)]


def matching(pattern: str, *files: str, folder: Path) -> Iterator[str]:
    """What the first group of a pattern finds in the files of a folder."""
    for glob in files:
        for file in sorted(folder.glob(glob)):
            yield from re.findall(pattern, file.read_text("utf-8"))


def methods(*places: str, folder: Path) -> Iterator[str]:
    """The public methods of classes; a place is a file and a class, `client.py:Client`."""
    for place in places:
        path, name = place.split(":")
        body = ast.parse((folder / path).read_text("utf-8")).body
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        for node in (each for one in found for each in one.body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                yield node.name


def functions(*files: str, folder: Path) -> Iterator[str]:
    """The public functions of modules."""
    yield from matching(r"(?m)^(?:async )?def ([a-z]\w*)", *files, folder=folder)


def of_modules(*modules: str, folder: Path) -> Iterator[str]:
    """What modules export."""
    for module in modules:
        file = folder / module / "__init__.py"
        if file.exists():
            yield from exported(file)


def declared(*files: str, folder: Path) -> Iterator[str]:
    """What declaration files of TypeScript export, without prompts and schemas."""
    for glob in files:
        for file in sorted(folder.glob(glob)):
            yield from (name for name in DECLARED.findall(file.read_text("utf-8")) if not PROMPT.search(name))


READERS: dict[str, list[tuple[str, Callable[..., Iterator[str]]]]] = {
    "ragas": [("ragas", partial(of_modules, "", "metrics", "metrics/collections"))],
    "deepeval": [("deepeval", partial(of_modules, "", "metrics", "test_case", "dataset"))],
    "inspect": [
        ("inspect_ai", partial(of_modules, "", "scorer", "solver")),
        ("inspect_ai", partial(matching, r'"--([a-z][\w-]+)"', "_cli/eval.py")),
    ],
    "mlflow": [
        ("mlflow", partial(of_modules, "genai", "genai/scorers", "genai/judges", "genai/datasets", "metrics")),
        ("mlflow", partial(of_modules, "metrics/genai")),
    ],
    "phoenix": [
        ("phoenix/evals", partial(of_modules, "", "metrics")),
        ("phoenix/client", partial(of_modules, "")),
        ("phoenix/client", partial(functions, "experiments/__init__.py")),
        ("phoenix/client/resources", partial(methods, "datasets/__init__.py:Datasets", "spans/__init__.py:Spans")),
        ("phoenix/client/resources", partial(methods, "experiments/__init__.py:Experiments")),
    ],
    "langsmith": [
        ("langsmith", partial(of_modules, "", "evaluation", "testing")),
        ("langsmith", partial(methods, "client.py:Client")),
        ("openevals", partial(of_modules, "", "prompts", "simulators", "trajectory", "json", "string")),
        ("openevals", partial(functions, "code/*.py", "json/*.py", "string/*.py")),
        ("agentevals", partial(of_modules, "trajectory", "graph_trajectory")),
        ("agentevals", partial(functions, "trajectory/*.py", "graph_trajectory/*.py")),
    ],
    "trulens": [
        ("trulens", partial(of_modules, "core", "feedback", "dashboard", "apps/langchain")),
        ("trulens/feedback", partial(methods, "llm_provider.py:LLMProvider", "groundtruth.py:GroundTruthAgreement")),
        ("trulens/feedback", partial(methods, "groundtruth.py:GroundTruthAggregator", "embeddings.py:Embeddings")),
        ("trulens/core", partial(methods, "session.py:TruSession")),
    ],
    "opik": [("opik", partial(of_modules, "", "evaluation", "evaluation/metrics"))],
    "lm-eval": [
        ("lm_eval", partial(matching, r'metric="([^"]+)"', "api/metrics.py")),
        ("lm_eval", partial(matching, r'register_(?:filter|aggregation)\(\s*"([^"]+)"', "filters/*.py", "api/*.py")),
        ("lm_eval", partial(matching, r'"--([a-z_]+)"', "_cli/*.py", "__main__.py")),
    ],
    "mastra": [
        ("mastra-evals*", partial(declared, "dist/scorers/utils.d.ts", "dist/vitest/*.d.ts")),
        ("mastra-evals*", partial(declared, "dist/scorers/llm/*/index.d.ts", "dist/scorers/code/*/index.d.ts")),
    ],
    "promptfoo": [
        ("promptfoo*", partial(matching, r'"((?:not-)?[a-z]+(?:-[a-z]+)+)": "\1"', "dist/src/index.d.ts")),
        ("promptfoo*", partial(matching, r'\.command\("([a-z-]+)"', "dist/src/main.js")),
    ],
}
"""The packages of a system by folder, and how their names are read."""


def missing(system: str, names: Iterable[str]) -> list[str]:
    """The names without a row."""
    rows = [row.name for row in table(system)]
    prefixes = [name.key for name in rows if name.is_prefix]
    found: list[str] = []
    for name in dict.fromkeys(names):
        own = Name(ASYNC.sub("", name))
        is_known = any(row.likeness(own) >= 2 or row.words[-len(own.words) :] == own.words for row in rows)
        is_known |= own.key.startswith(tuple(prefixes))
        if not is_known and name not in INTERNAL and not name.endswith("Error"):
            found.append(name)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    incomplete = False
    for system, readers in READERS.items():
        names = [
            name for place, read in readers for path in sorted(options.folder.glob(place)) for name in read(folder=path)
        ]
        if not names:
            print(f"{system}: not in {options.folder}", file=sys.stderr)
            continue
        without = missing(system, names)
        incomplete |= bool(without)
        print(f"{system}: {len(set(names))} names, {len(without)} without a row: {', '.join(without) or 'none'}")
    return int(incomplete)


if __name__ == "__main__":
    raise SystemExit(main())
