"""What an estimate shows when it is printed."""

from __future__ import annotations

from evalstone import dry_run


def test_an_estimate_prints_the_calls_of_scorers_and_judges() -> None:
    rows = [{"output": "Oslo is in Norway.", "context": ["Oslo is in Norway."]}]
    lines = str(dry_run(rows, ["faithfulness", "bleu"], ledger=None)).splitlines()
    assert {"faithfulness", "bleu", "lexical@7"} <= {line.split(" ")[0] for line in lines}
