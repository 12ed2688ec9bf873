"""`evalstone align` and runs with what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.birds import ROUNDED, labeled
from tests.cli.conftest import Evalstone
from tests.judge_quality.test_align import RIGHT, chat
from tests.serving import completion, serving

SCORER = "relevancy_check"


def write(rows: list[dict[str, Any]], name: str = "labels.jsonl") -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.slow
def test_an_aligned_judge_scores_runs_from_a_line_and_from_a_file(tmp_path: Path, evalstone: Evalstone) -> None:
    write(labeled(60))
    with serving(chat) as server:
        judge = f"vllm/x({server.url})"
        call = ("align", "--labels", "labels.jsonl", "-s", SCORER, "-j", judge, "--examples", "2")
        dry = evalstone(*call, "--dry-run")
        assert (dry.returncode, server.requests) == (0, [])
        said = " ".join(dry.stdout.split())
        assert (
            "At most 108 judge calls, cost unknown: the judge is asked as it is on 60 labeled samples, and in 1" in said
        )
        done = evalstone(*call, "--out", "align.json")
        assert done.returncode == 0, done.stderr
        assert "At most 108 judge calls" in done.stderr
        assert len(server.requests) == 108
        known = evalstone(*call[:-1], "0", "--dry-run")
        said = " ".join(known.stdout.split())
        assert "No judge calls: the answers on all 60 labeled samples are in the ledger." in said
        assert f"vllm/x({server.url})" in said or "vllm/x 0 0 0 $0.00" in said
        assert "The aligned judge is better: a gain in accuracy of" in done.stdout
        used = f"vllm/x({server.url}, align=align.json)"
        assert f"--judge '{used}'" in done.stdout.replace("\n", "")
        file = json.loads(Path("align.json").read_text(encoding="utf-8"))
        assert (file["format"], file["passed"], len(file["chosen"]["examples"])) == ("alignment/1", True, 2)

        line = evalstone("run", "labels.jsonl", "-s", SCORER, "-j", used, "--out", "line", "--json")
        assert line.returncode == 0, line.stderr
        Path("inner").mkdir()
        Path("align.json").rename("inner/align.json")
        table = f'data = "../labels.jsonl"\nscorers = ["{SCORER}"]\n[judge]\nmodel = "vllm/x"\n'
        Path("inner/e.toml").write_text(f'{table}base_url = "{server.url}"\nalign = "align.json"\n')
        asked = len(server.requests)
        filed = evalstone("run", "inner/e.toml", "--json")
        assert filed.returncode == 0, filed.stderr
        assert len(server.requests) == asked  # the same judge by its content: all answers are in the ledger
        plain = evalstone("run", "labels.jsonl", "-s", SCORER, "-j", judge, "--out", "plain", "--json")
        judges = [json.loads(run.stdout)["judge"]["identity"] for run in (line, filed, plain)]
        assert judges[0] == judges[1] == f"aligned(vllm/x({server.url}), align={judges[0][-17:]}"
        assert judges[2] == judge
        compared = evalstone("compare", "plain", "line")
        assert compared.returncode == 2
        assert "judges differ" in compared.stderr.lower() + compared.stdout.lower()
        other = evalstone("run", "labels.jsonl", "-s", "answer_correctness", "-j", used.replace("=a", "=inner/a"))
        assert other.returncode == 2
        assert "the alignment was made for relevancy_check" in other.stderr
        both = evalstone(
            "run", "labels.jsonl", "-s", SCORER, "-s", "contains(expected=birds)", "-j", used.replace("=a", "=inner/a")
        )
        assert both.returncode == 0, both.stderr


def test_without_a_gain_nothing_is_written(tmp_path: Path, evalstone: Evalstone) -> None:
    write(labeled(40))
    Path("wording.txt").write_text(RIGHT)
    reply = completion(json.dumps({"reason": "It compares.", "verdict": "no"}))
    with serving(lambda _, __: reply) as server:
        call = ("align", "--labels", "labels.jsonl", "-s", SCORER, "-j", f"vllm/x({server.url})", "--examples", "0")
        done = evalstone(*call, "--wording", "wording.txt", "--wording", "lenient", "--out", "align.json")
        assert done.returncode == 4
        assert "align.json is not written: the aligned judge is not shown to be better." in done.stderr
        assert "Nothing that was tried is better than the judge as it is" in " ".join(done.stdout.split())
        assert not Path("align.json").exists()
        systems = [request["messages"][0]["content"] for request in server.requests]
    for text in (RIGHT, 'doubt, the right label is "yes"'):
        assert sum(text in system for system in systems) == 40


def test_labels_are_read_once_so_that_they_may_come_from_a_pipe(evalstone: Evalstone) -> None:
    write(labeled(40))
    lines = Path("labels.jsonl").read_text(encoding="utf-8")
    done = evalstone("align", "--labels", "-", "-s", SCORER, "-j", "lexical", "-q", typed=lines)
    of_file = evalstone("align", "--labels", "labels.jsonl", "-s", SCORER, "-j", "lexical", "-q")
    assert (done.returncode, done.stderr) == (of_file.returncode, of_file.stderr)
    assert done.stdout.partition("\n")[2] == of_file.stdout.partition("\n")[2] != ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--wording", "absent.txt"], "--wording takes a text file, strict or lenient; 'absent.txt' can't be read"),
        (["--out", "labels.jsonl"], "--out would overwrite 'labels.jsonl', which is read"),
        (["-j", "lexical(align=absent.json)"], "align: can't read 'absent.json': No such file or directory"),
        (["-j", "lexical(align=labels.jsonl)"], "align: labels.jsonl is no alignment:"),
    ],
)
def test_what_can_not_start_is_refused(evalstone: Evalstone, options: list[str], message: str) -> None:
    write(labeled(40))
    done = evalstone("align", "--labels", "labels.jsonl", "-s", SCORER, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert ROUNDED in Path("labels.jsonl").read_text()
