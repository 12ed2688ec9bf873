"""Data and results at addresses: a local S3 server has them (`make test-ray`)."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import evalstone
from evalstone import ConfigError, evaluate
from evalstone._core.storage import Location
from evalstone.scale import merge, score_shard
from tests.serving import listener

pa, fs = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.fs")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("moto")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket."""
    with listener() as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        next(line for line in server.stdout if "Running on" in line)
        # It logs each request, and would wait once the pipe is full.
        threading.Thread(target=server.stdout.read, daemon=True).start()
        settings = {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "y", "ENDPOINT_URL": url, "DEFAULT_REGION": "us-east-1"}
        for name, value in settings.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
        yield "s3://bucket"
        server.terminate()


def test_data_and_results_may_be_in_a_bucket(bucket: str) -> None:
    rows: list[dict[str, Any]] = [{"id": f"q{n}", "output": f"a{n % 3}", "reference": "a1"} for n in range(90)]
    system, _ = fs.FileSystem.from_uri(bucket)
    for part in range(3):
        table = pa.Table.from_pylist(rows[part * 30 : part * 30 + 30])
        pq.write_table(table, f"bucket/data/{part}.parquet", filesystem=system, row_group_size=10)
    Location.of(f"{bucket}/lines.jsonl").write("".join(f"{json.dumps(row)}\n" for row in rows).encode())

    pattern, out = f"{bucket}/data/*.parquet", f"{bucket}/results"
    for shard in (2, 1):
        score_shard(pattern, "exact_match", shard, 2, out=out)
    run, one = merge(out), evaluate(pattern, "exact_match", ledger=None)
    assert run.summary[0].interval == one.summary[0].interval
    assert [record.outcome for record in run.records] == [record.outcome for record in one.records]
    assert evalstone.read_run(out) == run
    assert run.dataset_version == evalstone.load(f"{bucket}/lines.jsonl").version
    with pytest.raises(ConfigError, match="no file matches s3://bucket/none/"):
        score_shard(f"{bucket}/none/*.parquet", "exact_match", 1, 1, out=out)
    with pytest.raises(ConfigError, match=r"has no results in blocks: summary\.json is missing") as absent:
        evalstone.read_run(f"{bucket}/nothing")
    assert absent.value.kind == "missing"
