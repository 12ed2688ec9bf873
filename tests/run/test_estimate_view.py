"""What an estimate shows when it is printed."""

from __future__ import annotations

from evalstone import dry_run


def test_an_estimate_prints_the_calls_of_scorers_and_judges() -> None:
    rows = [{"output": "Oslo is in Norway.", "context": ["Oslo is in Norway."]}]
    lines = str(dry_run(rows, ["faithfulness", "bleu"], ledger=None)).splitlines()
    assert {"faithfulness", "bleu"} <= {line.split(" ")[0] for line in lines}
    assert lines[0].endswith("· judge lexical@7 · dry run")
    assert "1 verify_claims" in " ".join(lines)
