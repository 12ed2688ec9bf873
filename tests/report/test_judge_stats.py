"""What a report says of judges made of judges."""

from __future__ import annotations

import io

from rich.console import Console

from evalstone import Cascade, Panel, evaluate
from evalstone.judges import ScriptedJudge
from evalstone.report.html import run_page
from evalstone.report.judging import judging_told
from evalstone.report.markdown import run_markdown
from evalstone.report.terminal import show_run
from evalstone.results.run import Run
from tests.fakes import claims, verdicts

SAMPLE = {"id": "one", "output": "x and y", "context": ["p"]}


def saying(name: str, *words: str) -> ScriptedJudge:
    return ScriptedJudge({"list_claims": claims("x", "y"), "verify_claims": verdicts(*words)}, name=name)


def run_of(name: str = "a") -> Run:
    panel = Panel(saying(name, "supported", "supported"), saying("b", "supported", "contradicted"))
    return evaluate([SAMPLE], ["faithfulness"], judge=Cascade(panel, saying("dear", "supported")), ledger=None)


def on_screen(run: Run) -> str:
    out = io.StringIO()
    show_run(run, Console(file=out, width=5000))
    return out.getvalue()


def test_a_cascade_says_what_it_escalated_and_saved_and_a_panel_how_far_it_agreed() -> None:
    cascade, panel = judging_told(run_of().judge_stats)
    assert cascade.endswith("threshold=0.9): 1.5 of 2 questions escalated (75%), 0 calls of dear saved")
    assert panel == (
        "panel(a, b, vote=majority): 2 questions, 2 verdicts with a mean agreement of 0.750 and 0.500 bits of entropy"
    )


def test_every_report_of_a_run_says_so() -> None:
    run = run_of()
    for report in (on_screen(run), "".join(run_page(run)), "\n".join(run_markdown(run))):
        plainly = report.replace("\\", "")
        assert "1.5 of 2 questions escalated (75%)" in plainly
        assert "a mean agreement of 0.750 and 0.500 bits of entropy" in plainly


def test_a_long_name_hides_no_figure_and_none_can_write_to_the_screen() -> None:
    shown = on_screen(run_of("\x1b[31m" + "a" * 3000))
    assert "1.5 of 2 questions escalated (75%)" in shown
    assert "bits of entropy" in shown
    assert "\x1b" not in shown
