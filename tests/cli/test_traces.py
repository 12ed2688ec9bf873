"""`evalstone traces`, and traces as the data of `evalstone run`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.datasets import load
from tests.cli.conftest import Evalstone
from tests.traced import chat, message, span, spans


def write(path: Path) -> None:
    found = {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": '[{"content": "Bern is in Switzerland."}]',
    }
    failed = {"code": 2, "message": "boom"}
    agent: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"}
    ask = chat([message("user", "Where is Bern?")], "Bern is in Switzerland.")
    rows = [
        spans(
            span(1, "invoke_agent guide", agent, trace="a" * 32, start=0),
            span(2, "retrieval", found, parent=1, trace="a" * 32),
            span(3, "chat", ask, parent=1, trace="a" * 32),
        ),
        spans(span(1, "chat x", ask, trace="b" * 32, start=3600, status=failed), service="blog"),
        spans(span(1, "chat", {"gen_ai.operation.name": "chat"}, trace="c" * 32)),
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_file_of_traces_is_scored_and_what_is_left_out_is_said(evalstone: Evalstone, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl")
    done = evalstone("run", "t.jsonl", "--scorer", "faithfulness", "--scorer", "latency(limit=5)")
    assert ": 1 × a trace without content" in done.stderr
    assert "t.jsonl · 2 samples" in done.stdout
    done = evalstone("run", "t.jsonl", "--limit", "1", "--scorer", "faithfulness", "--json")
    assert json.loads(done.stdout)["dataset"]["samples"] == 1


def test_the_samples_are_listed_by_service_and_entity(evalstone: Evalstone, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl")
    done = evalstone("traces", "t.jsonl")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["blog", "chat", "x", "1", "1", "0", "1"] in lines
    assert ["shop", "guide", "1", "1", "1", "0"] in lines
    assert lines[-1] == ["2", "of", "2", "samples"]
    assert "without content" in done.stderr


@pytest.mark.parametrize(
    ("options", "services"),
    [
        ([], ["shop", "blog"]),
        (["--where", "service=shop"], ["shop"]),
        (["--where", "service=shop", "--where", "service=blog"], ["shop", "blog"]),
        (["--where", "service=shop", "--where", "error=yes"], []),
        (["--where", "error=yes"], ["blog"]),
        (["--where", "context=yes"], ["shop"]),
        (["--where", "entity=guide"], ["shop"]),
        (["--where", "model=gpt-5.1"], ["shop", "blog"]),
        (["--since", "2026-11-18T12:00"], ["blog"]),
        (["--until", "2026-11-18T12:00"], ["shop"]),
        (["--limit", "1"], ["shop"]),
    ],
)
def test_a_selection_becomes_a_dataset(
    evalstone: Evalstone, tmp_path: Path, options: list[str], services: list[str]
) -> None:
    write(tmp_path / "t.jsonl")
    done = evalstone("traces", "t.jsonl", *options, "--out", "d.jsonl")
    if not services:
        assert (done.returncode, done.stdout) == (3, "0 of 2 samples\n")
        assert not (tmp_path / "d.jsonl").exists()
        return
    told = f"{len(services)} of 2 samples in d.jsonl\n"
    assert (done.returncode, done.stdout) == (0, told)
    chosen = load(tmp_path / "d.jsonl").samples
    assert [sample.metadata["trace"]["service"] for sample in chosen] == services
    whole = {sample.id: sample for sample in load(tmp_path / "t.jsonl")}
    assert all(sample == whole[sample.id] for sample in chosen)


def test_a_dataset_replaces_no_traces(evalstone: Evalstone, tmp_path: Path) -> None:
    write(tmp_path / "t.jsonl")
    write(tmp_path / "other.jsonl")
    before = (tmp_path / "t.jsonl").read_bytes()
    (tmp_path / "list.json").write_text(f"[\n{','.join(before.decode().splitlines())}]")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "list.json")
    for file, out in (("t.jsonl", "./t.jsonl"), ("t.jsonl", "other.jsonl"), ("list.json", "link.jsonl")):
        kept = (tmp_path / out).read_bytes()
        done = evalstone("traces", file, "--out", out)
        assert done.returncode == 2, done.stdout
        assert repr(out) in done.stderr
        assert " for --out" in done.stderr
        assert (tmp_path / out).read_bytes() == kept
    for _ in range(2):
        assert evalstone("traces", "t.jsonl", "--out", "d.jsonl").returncode == 0


def test_metadata_of_other_forms_is_no_error(evalstone: Evalstone, tmp_path: Path) -> None:
    forms = [{"started": "2026-11-18T13:00"}, {"started": "yesterday"}, {"started": 1}, {"trace": "abc"}]
    rows = [{"input": "a", "output": "b", "metadata": metadata} for metadata in forms]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert evalstone("traces", "d.jsonl").stdout.endswith("4 of 4 samples\n")
    assert evalstone("traces", "d.jsonl", "--since", "2026-11-18T12:00").stdout.endswith("1 of 4 samples\n")
    assert evalstone("traces", "d.jsonl", "--since", "2026-11-18T14:00").stdout == "0 of 4 samples\n"


def test_a_file_of_something_else_is_refused_with_what_it_may_hold(evalstone: Evalstone, tmp_path: Path) -> None:
    (tmp_path / "odd.jsonl").write_text('{"foo": 1}\n')
    done = evalstone("traces", "odd.jsonl")
    assert done.returncode == 2, done.stderr
    assert " contains neither traces" in done.stderr
    assert "nor evalstone samples" in done.stderr
    assert "--map" not in done.stderr


@pytest.mark.parametrize("name", ["t.jsonl.1", "t.ndjson.12", "t.jsonl.3.gz"])
def test_a_file_that_was_rotated_is_read(evalstone: Evalstone, tmp_path: Path, name: str) -> None:
    write(tmp_path / "t.jsonl")
    data = (tmp_path / "t.jsonl").read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert evalstone("traces", name).stdout.endswith("2 of 2 samples\n")
    assert f"{name} · 2 samples" in evalstone("run", name, "--scorer", "contains(expected=Bern)").stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["traces", "t.jsonl", "--where", "service"], "--where takes FIELD=VALUE"),
        (["traces", "t.jsonl", "--where", "servise=x"], "service"),
        (["traces", "t.jsonl", "--where", "error=true"], "yes or no"),
        (["traces", "t.jsonl", "--since", "soon"], "--since takes a time"),
        (["traces", "t.jsonl", "--out", "absent/d.jsonl"], "absent/d.jsonl"),
        (["collect", "--judge", "lexical"], "--judge requires --scorer"),
        (["collect", "--settle", "5"], "--settle requires --scorer"),
        (["collect", "--scorer", "contains(expected=x)", "--settle", "5"], "--settle takes a time"),
        (["collect", "--scorer", "no_such_scorer"], "no_such_scorer"),
        (["collect", "--out", "absent/t.jsonl"], "absent/t.jsonl"),
        (["collect", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_a_wrong_call_is_refused(evalstone: Evalstone, tmp_path: Path, arguments: list[str], problem: str) -> None:
    write(tmp_path / "t.jsonl")
    done = evalstone(*arguments)
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
