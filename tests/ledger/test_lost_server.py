"""A PostgreSQL server that goes away during a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.serving import obliging, serving


def test_a_connection_that_is_lost_ends_the_run_with_one_line_and_the_run_resumes(
    postgres_url: str, tmp_path: Path
) -> None:
    rows = [{"id": str(n), "output": f"answer number {n}", "context": [f"passage {n}"]} for n in range(20)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    administrator = sa.create_engine(postgres_url.replace("://", "+psycopg://"), poolclass=sa.pool.NullPool)
    cut = True

    def cutting(request: dict[str, Any], number: int) -> Any:
        if cut and number == 9:
            with administrator.begin() as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evalstone'"
                )
        return obliging(request, number)

    with serving(cutting) as server:
        options = ["-s", "faithfulness", "-j", "vllm/test", "--base-url", server.url, "--ledger", postgres_url, "-q"]
        command = [sys.executable, "-m", "evalstone", "run", "data.jsonl", *options, "--concurrency", "2"]
        lost = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        cut = False
        again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert 40 <= len(server.requests) <= 44
    assert lost.returncode == 2
    assert lost.stderr.startswith("evalstone: the connection to the ledger postgresql://")
    assert len(lost.stderr.splitlines()) == 1, lost.stderr
    assert "open-sesame" not in lost.stderr
    assert again.returncode == 0, again.stderr
