"""What reports say of a judge's audit."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import Sample, audit
from evalstone.judge_quality.perturbations import CHECKED
from evalstone.judges import ScriptedJudge
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.base import Question
from evalstone.report.html import page
from evalstone.report.text import text
from evalstone.report.view import View
from evalstone.results.views.audit import audit_view
from tests.fakes import claims, verdicts


def test_an_audit_of_few_samples_does_not_say_that_nothing_affects_the_judge() -> None:
    def lead(n: int, *perturbations: str) -> str:
        samples = [Sample(id=f"s{i}", output=f"Fact {i}.", context=[f"Fact {i}.", "Another."]) for i in range(n)]
        config: Any = {"perturbations": perturbations}
        return audit_view(audit(samples, "faithfulness", ledger=None, **config)).sections[0].lead[0]

    assert "at least 6 changed" in lead(2, "passages_reversed")
    assert lead(6, "passages_reversed").startswith("No perturbation")
    assert "at least 7 changed" in lead(6, "passages_reversed", "first_passage_last")
    assert "Too few" not in lead(6, "repeat")
    assert "No perturbation" not in lead(6, "repeat")


def test_an_audit_names_the_perturbations_that_change_too_few_samples() -> None:
    samples = [
        Sample(id=f"s{n}", output=f"Fact {n}.", context=[f"Fact {n}.", "Another."] if n else ["Fact 0."])
        for n in range(8)
    ]
    config: Any = {"perturbations": ("passages_reversed", "verbosity")}
    made = audit(samples[:7], "faithfulness", ledger=None, **config)
    assert (made["passages_reversed"].n, made["verbosity"].n) == (6, 7)
    few = "Too few samples to find an effect of passages_reversed (at least 7 changed samples are needed)."
    assert few in audit_view(made).sections[0].lead
    more = audit(samples, "faithfulness", ledger=None, **config)
    assert not any("Too few" in text for text in audit_view(more).sections[0].lead)


@pytest.mark.parametrize(("verdict", "word"), [("supported", "yes"), ("not_mentioned", "no")])
def test_an_audit_of_a_judge_that_always_says_the_same_names_it(verdict: str, word: str) -> None:
    def constant(question: Question[Any]) -> Any:
        return claims(question.text) if isinstance(question, ListClaims) else verdicts((verdict, (1,)))

    def lead(count: int, script: Any) -> tuple[str, ...]:
        samples = [Sample(id=f"s{n}", output=f"Fact {n}.", context=["A.", "B."]) for n in range(count)]
        config: Any = {"perturbations": ("passages_reversed",)}
        judge = ScriptedJudge(script)
        return audit_view(audit(samples, "faithfulness", judge=judge, ledger=None, **config)).sections[0].lead

    same = f"All verdicts are {word}: the judge is indistinguishable from one that always says {word}."
    assert same in lead(8, constant)
    assert not any("All verdicts" in line for line in lead(1, constant))


def test_an_audit_whose_unchanged_verdicts_are_equal_says_so_where_others_flip() -> None:
    lead = audited().sections[0].lead
    assert any(line.startswith("All verdicts ") and line.endswith(" no.") for line in lead)


def audited() -> View:
    def credulous(question: Question[Any]) -> Any:
        """Supports a claim only where the answer says that it was checked."""
        if isinstance(question, ListClaims):
            return claims(question.text)
        assert isinstance(question, VerifyClaims)
        return verdicts("supported" if CHECKED in question.claims[0] else "not_mentioned")

    samples = [Sample(id=f"s{n}", output=f"Claim {n} is wrong.", context=[f"Fact {n}.", "Another."]) for n in range(12)]
    config: Any = {"perturbations": ("injection", "passages_reversed", "options")}
    return audit_view(audit(samples, "faithfulness", judge=ScriptedJudge(credulous), ledger=None, **config))


def test_an_audit_says_first_that_a_judge_follows_injections_on_a_terminal_and_as_a_page() -> None:
    view = audited()
    (section,) = view.sections
    assert "judge follows instructions" in section.lead[0]
    assert section.lead[-1].startswith("Unperturbed: mean 0.000 (95% CI 0.000 to 0.265) ")
    assert " 12 samples, 0% (0% to 26.5%) yes " in section.lead[-1]
    cells = {row[0].text: [cell.text for cell in row] for row in section.tables[0].rows}
    followed = cells["injection_checked"]
    assert (followed[-1], followed[1], "+1.000" in followed) == ("follows the injection", "100%", True)
    assert cells["passages_reversed"][-1] == ""
    for report in (text(view), "".join(page(view))):
        assert "follows the injection" in report
        assert "Not applicable to" in report or "not applicable" in report.lower()
