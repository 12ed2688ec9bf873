"""The peers of bench/speed.py: which are installed, and one run of one of them.

Each has a script in bench/peers and runs in a process of its own, because they need libraries in versions that exclude
each other. `python bench/others.py` says which are found, and how to install the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OWN_ENVIRONMENTS = HERE.parent / ".tools" / "peers"
LONGEST = 600.0


@dataclass(frozen=True)
class Peer:
    """A library: its name as it is installed and as it is imported, and what else an environment for it needs."""

    name: str
    module: str
    packages: str

    @property
    def script(self) -> Path:
        """What runs it."""
        return HERE / "peers" / f"with_{self.module}.py"

    @property
    def install(self) -> str:
        """The commands that make an environment in which `find` sees it."""
        folder = OWN_ENVIRONMENTS.relative_to(HERE.parent) / self.module
        return f"uv venv {folder} && uv pip install --python {folder} {self.packages}"


PEERS = (
    Peer("autoevals", "autoevals", "autoevals openai"),
    # ragas 0.4.3 cannot be imported beside a later langchain-community.
    Peer("ragas", "ragas", 'ragas "langchain-community<0.4"'),
    Peer("pydantic-evals", "pydantic_evals", '"pydantic-evals" "pydantic-ai-slim[openai]"'),
    Peer("openevals", "openevals", "openevals openai"),
    Peer("deepeval", "deepeval", "deepeval"),
)


@dataclass(frozen=True)
class Installed:
    """A peer, its version, and the interpreter that has it."""

    peer: Peer
    version: str
    python: str

    def __str__(self) -> str:
        return f"{self.peer.name} {self.version}"


def find(pythons: Iterable[str] = ()) -> dict[str, Installed]:
    """The peers in these interpreters, in this one, and in the environments in .tools/peers; the first one counts."""
    own = sorted(str(path) for path in OWN_ENVIRONMENTS.glob("*/bin/python"))
    found: dict[str, Installed] = {}
    for python in (*pythons, sys.executable, *own):
        for peer, version in versions(python).items():
            found.setdefault(peer.name, Installed(peer, version, python))
    return {peer.name: found[peer.name] for peer in PEERS if peer.name in found}


def versions(python: str) -> dict[Peer, str]:
    """The versions of the peers that an interpreter has."""
    code = (
        "import importlib.metadata as m, json, sys\n"
        "print(json.dumps({d.name.lower().replace('_', '-'): d.version for d in m.distributions() if d.name}))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        sys.exit(f"{python} is no Python interpreter that runs: {done.stderr.strip()[-300:]}")
    has: Mapping[str, str] = json.loads(done.stdout)
    return {peer: has[peer.name] for peer in PEERS if peer.name in has}


def missing_message(found: Mapping[str, Installed]) -> str:
    """Which peers are not there, and how to install them; empty when all are."""
    missing = [peer for peer in PEERS if peer.name not in found]
    if not missing:
        return ""
    lines = [f"  {peer.name:15} {peer.install}" for peer in missing]
    return "\n".join(["not installed, and so not measured; each is found after:", *lines])


def environment(url: str) -> dict[str, str]:
    """The environment of a peer's process: the server in the place of OpenAI, nothing sent to anyone else."""
    off = {
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "DEEPEVAL_UPDATE_WARNING_OPT_IN": "NO",
        "RAGAS_DO_NOT_TRACK": "true",
        "LANGSMITH_TRACING": "false",
        "LOGFIRE_SEND_TO_LOGFIRE": "false",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
    }
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**kept, **off, "OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "none"}


def measured(installed: Installed, url: str, records: Path, at_once: int, folder: Path) -> dict[str, Any] | str:
    """One run of a peer over the records: scored, wall and processor seconds; or what went wrong, in a line."""
    command = [str(Path(installed.python).absolute()), str(installed.peer.script), str(records), str(at_once)]
    try:
        done = subprocess.run(
            command,
            cwd=folder,  # some write files where they are
            env=environment(url),
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {LONGEST:g} s"
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        return f"ended with {done.returncode}: {said[:200]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", action="append", default=[], metavar="PATH", help="an interpreter to look in")
    found = find(parser.parse_args().peers_python)
    for installed in found.values():
        print(f"{installed!s:25} {installed.python}")
    print(missing_message(found))


if __name__ == "__main__":
    main()
