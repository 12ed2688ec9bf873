"""Commands with nothing installed but what `pip install evalstone` installs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROMPTFOO = Path(__file__).parents[1] / "compat/imports/promptfoo/results.json"
RUN = """
import importlib.metadata as metadata, json, re, runpy, sys

core, left = {"evalstone"}, ["evalstone"]
while left:
    for requirement in metadata.requires(left.pop()) or ():
        name = re.match(r"[\\w.-]+", requirement)[0].lower().replace("_", "-")
        if "extra ==" not in requirement and name not in core:
            try:
                metadata.distribution(name)
            except metadata.PackageNotFoundError:
                continue
            core.add(name)
            left.append(name)
homes = metadata.packages_distributions()


class Core:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *more):
        owners = {one.lower().replace("_", "-") for one in homes.get(name.partition(".")[0], ())}
        return None if owners and not owners & core else self.finder.find_spec(name, *more)

    def __getattr__(self, name):
        return getattr(self.finder, name)


sys.meta_path[:] = map(Core, sys.meta_path)
from evalstone.cli import app

codes = {}
for line in json.loads(sys.argv[1]):
    print("$", line, flush=True)
    sys.argv[1:] = line.split()
    try:
        app.main()
        codes[line] = 0
    except SystemExit as end:
        codes[line] = end.code or 0
    sys.stdout.flush()
print(json.dumps(codes))
"""
COMMANDS = {
    "check data.csv": 0,
    "check data.csv --json": 0,
    "run data.csv --scorer faithfulness --scorer exact_match --scorer rouge_l --out a": 0,
    "run data.csv --scorer faithfulness --scorer exact_match --scorer rouge_l --out b": 0,
    "run data.csv --scorer bleu": 2,
    "score --scorer faithfulness --output Paris. --context Paris.": 0,
    "report a --html a.html --junit a.xml --csv a.csv --markdown a.md": 0,
    "compare a b": 0,
    "gate a --min exact_match=0.1": 0,
    "power a": 0,
    "runs": 0,
    "scorers": 0,
    "scorers bleu": 2,
    "scorers --from ragas faithfulness": 0,
    "judges": 0,
    "calibrate --labels labels.csv --data data.csv": 0,
    "audit data.csv --scorer faithfulness": 0,
    "import results.json --out imported": 0,
    "init project --kind rag": 0,
    "skill install skills": 0,
    "ledger info": 0,
    "ledger verify": 0,
    "view": 2,
    "mcp": 2,
    "import promptfooconfig.yaml --out converted": 2,
}
"""Commands, and how each ends."""


@pytest.mark.slow
def test_commands_need_no_extra_but_those_that_say_so(tmp_path: Path) -> None:
    rows = ["id,question,answer,contexts,reference"]
    rows += [
        f'{n},Where is Paris?,In {"France" if n % 3 else "Italy"}.,"[""Paris is in France.""]",In France.'
        for n in range(40)
    ]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n", "utf-8")
    labels = ["id,label", *(f"{n},{'yes' if n % 3 else 'no'}" for n in range(40))]
    (tmp_path / "labels.csv").write_text("\n".join(labels) + "\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [x]\nproviders: [echo]\n", "utf-8")
    shutil.copy(PROMPTFOO, tmp_path / "results.json")
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([*COMMANDS])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == COMMANDS, done.stdout + done.stderr
    assert "# all samples, in a browser; needs the extra view" in done.stdout
