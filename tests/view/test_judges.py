"""The pages of judges: their verdicts, their curves, and where they and people differ."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from evalstone import calibrate, evaluate
from evalstone.ledger.store import Ledger
from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.same_labels import on_same_labels
from evalstone.results.saved_calibrations import calibration_file, calibrations_folder, save_calibration
from evalstone.results.views.calibration import calibrations_table
from evalstone.stats import SelectiveRisk
from evalstone.view.addresses import sample_address
from evalstone.view.calibrations import names_judge
from tests.report.hostile import MARKUP
from tests.results.test_calibration import made
from tests.view.conftest import client_of

ANSWERS = [("Paris is in France.", "Paris is in France."), ("Rome is on Mars.", "Rome is a city in Italy.")]
ROWS = [
    {"id": f"s{n}", "output": ANSWERS[n % 2][0], "context": [ANSWERS[n % 2][1]], "label": "no" if n < 3 else LABEL}
    for n in range(20)
    for LABEL in ("no" if n % 2 else "yes",)
]
"""The judge is right except for two good answers that people call bad."""


def stored(url: str, calibration: Calibration) -> str:
    """The address of a calibration that is stored."""
    Ledger(url).close()
    save_calibration(calibration, url)
    return f"/judges/{calibration_file(calibration, url).stem}"


def many(judge: str, missed: int, **more: Any) -> Calibration:
    """60 good and 60 bad answers, of which the judge misses some."""
    pairs: list[tuple[float, Any]] = [(0.9, 1)] * 60 + [(0.6, 0)] * missed + [(0.1, 0)] * (60 - missed)
    return fit(replace(made(pairs), judge=judge, labels="labels.csv", columns=("label",), labels_id="l", **more))


@pytest.mark.slow
def test_the_list_has_verdicts_labels_and_the_runs_that_use_a_judge(url: str) -> None:
    calibration = calibrate(ROWS, ledger=url)
    run = evaluate(ROWS, "faithfulness", ledger=url, name="nightly")
    stored(url, many("other@1", 26))
    client = client_of(url)
    reply = client.get("/judges")
    assert reply.status == 200
    assert f"/runs/{run.id}" in reply.links("^/runs/")
    for words in ("8 good, 12 bad", "60 good, 60 bad", "usable to rank systems", "43%", "just now", "no run", "1 run"):
        assert words in reply.words, words
    again = evaluate(ROWS, "faithfulness", ledger=url)
    (listed,) = client.get("/judges").links("#runs$")
    assert {f"/runs/{each.id}" for each in (run, again)} <= {*client.get(listed).links("^/runs/")}
    by_judge = {each["judge"]: each for each in client.get("/judges.json").json}
    assert by_judge["other@1"]["verdict"] == many("other@1", 26).verdict.to_dict()
    assert {"id": run.id, "name": "nightly"} in by_judge[calibration.judge]["runs"]
    rows = {row["judge"]: row for row in csv.DictReader(io.StringIO(client.get("/judges.csv").text))}
    assert (rows["other@1"]["use"], rows["other@1"]["disagreements"], rows["other@1"]["runs"]) == ("systems", "26", "0")


def test_figures_on_labels_that_chose_something_are_marked(url: str) -> None:
    risk = SelectiveRisk(threshold=0.7, limit=0.1, confidence=0.95, kept=90, wrong=2, bound=0.07, labeled=120)
    stored(url, many("plain@1", 26))
    assert "optimistic" not in client_of(url).get("/judges").words
    stored(url, many("aligned@1", 26, n_aligned_with=30))
    stored(url, many("cascade@1", 26, risk=risk))
    for said in ("optimistic: aligned with 30 of these labels", "optimistic: threshold chosen on these labels"):
        assert client_of(url).get("/judges").words.count(said) == 1
    rows = {each["judge"]: each for each in client_of(url).get("/judges.json").json}
    assert {name: (row["aligned_with"], row["chose_threshold"]) for name, row in rows.items()} == {
        "plain@1": (0, False),
        "aligned@1": (30, False),
        "cascade@1": (0, True),
    }
    (table,) = [calibrations_table("judges", [many("aligned@1", 26, n_aligned_with=30)])]
    assert table.rows[0][3].text == "usable to rank systems; optimistic: aligned with 30 of these labels"


def test_the_list_says_what_the_page_of_the_judge_says(url: str) -> None:
    """Labels that don't tell whether a judge ranks systems can still show that it errs too often on single samples."""
    pairs: list[tuple[float, Any]] = [(0.9, 1)] * 40 + [(0.9, 0)] * 22 + [(0.1, 0)] * 18
    unclear = fit(replace(made(pairs), judge="unclear@1", labels="labels.csv", columns=("label",), labels_id="l"))
    assert (unclear.verdict.use, unclear.verdict.notes[0]["single"]) == ("undecided", "no")
    few = fit(replace(made([(0.9, 1), (0.1, 0)]), judge="few@1", labels="few.csv", columns=("label",), labels_id="f"))
    for calibration, badge in ((unclear, "not usable for single samples"), (few, "labels don't tell yet")):
        address = stored(url, calibration)
        badges = [
            html.unescape(each)
            for page in (client_of(url).get("/judges"), client_of(url).get(address))
            for each in re.findall(r'<span class="label [^"]*">([^<]*)</span>', page.text)
        ]
        assert badges.count(badge) == 2, badges


def test_what_a_run_says_of_its_judge_leads_to_the_page_of_the_judge(url: str) -> None:
    run = evaluate(ROWS, ["faithfulness", "hallucination"], ledger=url)
    client = client_of(url)
    assert client.get(f"/runs/{run.id}").links("^/judges/") == []
    calibration = calibrate(ROWS, ledger=url)
    (address,) = client.get(f"/runs/{run.id}").links("^/judges/")
    assert address == f"/judges/{calibration_file(calibration, url).stem}"


def test_a_judge_has_its_verdict_curves_and_disagreements_with_links_to_the_samples(url: str) -> None:
    calibration = calibrate(ROWS, ledger=url)
    client = client_of(url)
    address = f"/judges/{calibration_file(calibration, url).stem}"
    reply = client.get(address)
    assert reply.status == 200
    assert calibration.run
    samples = [sample_address(calibration.run, name) for name in ("s0", "s2")]
    assert reply.links("/samples/") == samples
    assert [kind for kind in ("split", "curves", "reliability") if f'class="{kind}"' in reply.text] == [
        "split", "curves", "reliability",
    ]  # fmt: skip
    assert "Judge and people differ on 2 of 20 samples: 2 missed bad answers and 0 flagged good answers." in reply.words
    assert client.get(f"{address}?show=flagged").links("/samples/") == []
    for link in samples:
        while (found := client.get(link)).status == 202:
            pass
        assert found.status == 200
        assert "Paris is in France." in found.text
    data = client.get(f"{address}.json").json
    assert [(one["sample_id"], one["error"], one["href"]) for one in data["disagreements"]] == [
        ("s0", "missed", samples[0]),
        ("s2", "missed", samples[1]),
    ]
    assert data["verdict"] == calibration.verdict.to_dict()
    rows = csv.reader(io.StringIO(client.get(f"{address}.csv").text))
    assert tuple(next(rows)) == calibration.sample_rows().columns
    assert len([*rows]) == 20


def test_without_its_run_a_judge_has_no_links_and_says_why(url: str) -> None:
    gone = replace(many("j@1", 2), run="gone")
    for calibration, why in ((gone, "is no longer in the ledger"), (many("k@1", 2), "is not known")):
        reply = client_of(url).get(stored(url, calibration))
        assert reply.links("/samples/") == []
        assert why in reply.words


def test_disagreements_come_in_pages(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.view.pages.judge.PER_PAGE", 4)
    client, address, found = client_of(url), stored(url, many("j@1", 10)), list[int]()
    while address:
        reply = client.get(address)
        found.append(reply.words.count("missed bad answer 0.6"))
        address = next(iter(reply.links("after=")), "")
    assert found == [4, 4, 2]


@pytest.mark.slow
def test_a_panel_is_shown_with_its_members_whose_calibrations_are_stored(url: str) -> None:
    for judge, missed in (("a@1", 20), ("b@1", 30), ("aa@1", 5)):
        stored(url, many(judge, missed))
    reply = client_of(url).get(stored(url, many("panel(a@1, b@1, vote=majority)", 20)))
    assert "The 2 votes are worth about" in reply.words
    assert "The best single member is a@1: accuracy" in reply.words
    assert "aa@1" not in reply.words.partition("Members")[2].partition("Confusion")[0]


def test_a_panel_is_shown_with_its_members_by_their_votes(url: str) -> None:
    panel = many("panel(c@1, d@1, vote=majority)", 20)
    scores = [pair.value for pair in panel.pairs]
    votes = {"c@1": tuple(scores), "d@1": (1 - scores[0], *scores[1:])}
    address = stored(url, replace(panel, votes=votes))
    client = client_of(url)
    reply = client.get(address)
    assert "The 2 votes are worth about 1.0 independent ones" in reply.words
    assert "verdicts are those of its votes on the panel" in reply.words
    assert client.get(f"{address}.json").json["members"]["by_votes"]


def test_judges_on_the_same_labels_are_in_one_plot(url: str) -> None:
    first, second = (stored(url, many(judge, missed)).rpartition("/")[2] for judge, missed in (("a@1", 1), ("b@1", 30)))
    reply = client_of(url).get(f"/judges?calibration={first}&calibration={second}")
    assert "2 judges on the same 120 labeled samples" in reply.words
    assert "b@1 is less accurate than a@1." in reply.words
    assert reply.text.count('<polyline class="curve') == 2
    assert reply.text.count('<circle class="dot') == 2


def test_only_common_labels_are_compared() -> None:
    one, other = many("a@1", 10), many("b@1", 10)
    other = replace(other, pairs=(*other.pairs[:50], LabeledScore("new", 0.1, (1.0,))))
    other = replace(other, pairs=(LabeledScore("0", 0.9, (0.0,)), *other.pairs[1:]))
    judges = on_same_labels([one, other])
    assert [len(each.calibration.pairs) for each in judges] == [49, 49]
    assert [each.difference is None for each in judges] == [True, False]


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/judges/nothing", 404, "no calibration nothing"),
        ("/judges.xml", 404, "no such page"),
        ("/judges/{id}?show=all+of+them", 400, "show: all, missed, flagged, not "),
        ("/judges?calibration={id}&calibration={other}", 400, "no labeled sample in common"),
        ("/judges?calibration={id}&calibration=x", 404, "no calibration x"),
        ("/judges?calibration=1&calibration=2&calibration=3&calibration=4", 400, "at most 3 judges"),
        ("/judges?calibration={id}", 200, "Choose two or three judges"),
        ("/judges/{broken}", 503, "is not a calibration"),
        ("/judges", 200, "is not a calibration"),
    ],
)
def test_what_is_wrong_is_said(url: str, address: str, status: int, text: str) -> None:
    name = stored(url, many("a@1", 3)).rpartition("/")[2]
    elsewhere = tuple(replace(pair, sample_id=f"x{pair.sample_id}") for pair in many("b@1", 3).pairs)
    other = stored(url, replace(many("b@1", 3), pairs=elsewhere)).rpartition("/")[2]
    (calibrations_folder(url) / "bro-ken.json").write_text("{")
    reply = client_of(url).get(address.format(id=name, other=other, broken="bro-ken"))
    assert (reply.status, text in reply.words) == (status, True)


def test_without_calibrations_the_page_says_how_to_make_one(url: str) -> None:
    Ledger(url).close()
    for each in (url, None):
        assert "evalstone calibrate --labels FILE" in client_of(each).get("/judges").words


def test_a_changed_calibration_is_read_again(url: str) -> None:
    address = stored(url, many("a@1", 3))
    client = client_of(url)
    assert "3 missed bad answers" in client.get(address).words
    stored(url, many("a@1", 12))
    assert "12 missed bad answers" in client.get(address).words


def test_drift_compares_the_first_and_the_last_run_on_the_same_answers(url: str) -> None:
    address = f"/judges/{calibration_file(calibrate(ROWS, ledger=url), url).stem}"
    client = client_of(url)
    assert "evalstone run ANSWERS --no-cache" in client.get(address).words
    for name in ("first", "middle", "last"):
        evaluate(ROWS * 1, "faithfulness", ledger=url, name=name)
    words = client.get(address).words.partition("Judge drift")[2]
    assert "3 runs" in words
    assert words.index("first") < words.index("last")
    assert "middle" not in words
    assert any(verdict in words for verdict in ("stable", "inconclusive"))


def test_hostile_names_do_nothing(url: str) -> None:
    hostile = replace(many(MARKUP, 5), labels=MARKUP, columns=(MARKUP,), scorer=MARKUP)
    address = stored(url, hostile)
    client = client_of(url)
    for page in (client.get("/judges"), client.get(address)):
        assert page.status == 200
        assert "<img" not in page.text
    assert json.loads(client.get(f"{address}.json").text)["judge"] == MARKUP


def test_a_judge_is_found_in_the_name_of_a_panel() -> None:
    panel = "panel(lexical@7, openai/gpt-5.1, cascade(a, b, threshold=0.8), vote=majority)"
    assert [
        name
        for name in ("lexical@7", "openai/gpt-5.1", "gpt-5.1", "openai/gpt-5", "a", "c")
        if names_judge(panel, name)
    ] == [
        "lexical@7",
        "openai/gpt-5.1",
        "a",
    ]
