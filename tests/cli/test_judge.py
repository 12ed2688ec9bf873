"""`evalstone judges`, `calibrate` and `audit`, and composite judges on the command line."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evalstone import calibrate
from evalstone.cli.config_file import RunConfig
from evalstone.cli.values import judge_spec
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import ConfigError
from evalstone.judge_quality.perturbations import PERTURBATIONS
from evalstone.judges.lexical import LexicalJudge
from evalstone.models.catalog import PROVIDERS
from evalstone.report.view import bare_judge
from evalstone.results.saved_calibrations import calibration_for
from tests.cli.conftest import Evalstone
from tests.serving import completion, serving
from tests.verifier_models import save_verifier

ROW = {"id": "one", "input": "Where is Paris?", "output": "Paris is in France.", "context": ["Paris is in France."]}


def test_all_judges_are_listed_with_their_keys_and_no_key_is_shown(tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("judges", env={"OPENAI_API_KEY": "sk-hidden"})
    assert done.returncode == 0, done.stderr
    assert "sk-hidden" not in done.stdout
    lines = done.stdout.splitlines()
    for provider, how in PROVIDERS.items():
        (line,) = [line for line in lines if line.startswith(f"{provider}/MODEL")]
        assert how.key in line
    (openai,) = [line for line in lines if line.startswith("openai/MODEL")]
    assert openai.split()[1:3] == ["OPENAI_API_KEY", "set"]
    assert any(line.startswith("cascade(lexical, ") for line in lines)
    assert any(line.startswith("lexical") for line in lines)


def test_a_judge_is_explained_with_its_members_and_whether_they_can_be_asked(
    tmp_path: Path, evalstone: Evalstone
) -> None:
    spec = "panel(lexical, openai/gpt-4.1-mini, vllm/x(prices=[1, 2]), vote=mean)"
    done = evalstone("judges", spec)
    told = " ".join(done.stdout.split())
    assert "panel of 3 judges" in told
    assert "by mean probability" in told
    assert re.search(r"mini: \$0\.4 and \$1\.6 [^;]*; not ready", told)
    assert "OPENAI_API_KEY" in told
    assert re.search(r"/x: \$1 and \$2 [^;]*; without a key; not contacted", told)
    assert "free; ready" in told


def test_a_model_that_does_not_chat_is_named_as_such(evalstone: Evalstone) -> None:
    told = " ".join(evalstone("judges", "openrouter/typesafe/jev-1.14").stdout.split())
    assert "not ready: " in told
    assert "jev-1.14 doesn't chat" in told
    assert "a model that chats" in told


def test_a_temperature_that_is_not_0_is_shown_with_who_recommends_it(evalstone: Evalstone) -> None:
    for spec, told in (
        ("ollama/qwen3:8b", "temperature 0.6 (Qwen3 and QwQ: Qwen recommends 0.6"),
        ("ollama/qwen3:8b(temperature=0)", "temperature 0 (Qwen3 and QwQ: Qwen recommends 0.6"),
        (
            "panel(google/gemini-3-pro, lexical)",
            "temperature not sent (Gemini 3 and later: Google recommends the default",
        ),
        ("vllm/mine(temperature=0.5)", "not contacted temperature 0.5 Settings"),
    ):
        assert told in " ".join(evalstone("judges", spec).stdout.split())
    assert "without a key; not contacted Settings" in " ".join(evalstone("judges", "vllm/mine").stdout.split())


def test_a_judge_is_described_with_what_its_settings_may_be(evalstone: Evalstone) -> None:
    described = evalstone("judges", "vllm/mine(retries=5, api_key=hidden-key)").stdout
    (line,) = [line for line in described.splitlines() if line.startswith("  retries ")]
    assert line.split()[:2] == ["retries", "5"]
    assert "number from 0 to 1000" in line
    assert "hidden-key" not in described
    assert "api_key" not in described
    assert "Settings" not in evalstone("judges", "lexical").stdout


def test_a_verifier_model_is_listed_and_described_as_free_and_ready_or_why_not(
    tmp_path: Path, evalstone: Evalstone
) -> None:
    listed = next(line for line in evalstone("judges").stdout.splitlines() if line.startswith("onnx:PATH"))
    assert listed.endswith("your own model in an ONNX file, offline; the extra onnx is installed")
    save_verifier(tmp_path / "nli")
    told = " ".join(evalstone("judges", "onnx:nli(window=32)").stdout.split())
    assert "the verifier model nli compares claims with passages" in told
    assert re.search(r"onnx@1\([0-9a-f]{32}\): free; ready", told)
    (tmp_path / "nli" / "config.json").write_text("{}")
    told = " ".join(evalstone("judges", "onnx:nli").stdout.split())
    assert "not ready: " in told
    assert "no names for them in id2label of config.json" in told
    (tmp_path / "nli" / "model.onnx").unlink()
    assert "nli has no model.onnx" in evalstone("judges", "onnx:nli").stderr


def test_what_is_no_judge_is_refused(tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("judges", "panell(lexical, openai/x)")
    assert (done.returncode, done.stdout) == (2, "")
    assert "you mean panel" in done.stderr


def test_a_run_with_a_cascade_names_it_and_says_what_it_saved(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    with serving() as server:
        spec = f"cascade(lexical, vllm/x(base_url={server.url}), threshold=0.5)"
        done = evalstone("run", "data.jsonl", "-s", "faithfulness", "-j", spec, "--out", "res")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    identity = json.loads((tmp_path / "res" / "summary.json").read_text())["judge"]["identity"]
    assert f"judge {identity}" in told
    escalated = "0 of 1 question escalated (0%, 95% CI 0% to 97.5%)"  # of those about verdicts
    assert f"{bare_judge(identity)}: {escalated}, 1 call of vllm/x saved" in told
    again = evalstone("report", "res")
    assert escalated in " ".join(again.stdout.split())


def test_a_log_lies_beside_its_file_and_a_dry_run_writes_none(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    table = 'judge = {panel = ["lexical", {model = "vllm/x", log = "x.jsonl"}], log = "p.jsonl", max_requests = 1}'
    (tmp_path / "sub" / "eval.toml").write_text(f'data = "data.jsonl"\nscorers = ["faithfulness"]\n{table}\n')
    config = RunConfig.load(str(tmp_path / "sub" / "eval.toml"))
    assert isinstance(config.judge, dict)
    assert config.judge["log"] == str(tmp_path / "sub" / "p.jsonl")
    assert config.judge["panel"][1]["log"] == str(tmp_path / "sub" / "x.jsonl")
    done = evalstone("run", "sub/eval.toml", "--dry-run")
    # The claims are asked of the first member alone; both limits and logs are left alone.
    assert "1 call," in done.stdout
    assert "calls: 1 verify_claims" in done.stdout
    assert sorted(path.name for path in (tmp_path / "sub").iterdir()) == ["data.jsonl", "eval.toml"]


def test_one_scores_steps_show_the_members(tmp_path: Path, evalstone: Evalstone) -> None:
    with serving() as server:
        spec = f"cascade(lexical, vllm/x(base_url={server.url}), threshold=0.5)"
        given = ("--output", "Paris is in France.", "--context", "Paris is in France.")
        done = evalstone("score", "-s", "faithfulness", "-j", spec, *given)
    members = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [(question, judge.partition("(")[0], *others[:2]) for question, judge, *others in members] == [
        ("list_claims", "lexical@7", "given", "asked"),
        ("list_claims", "vllm/x", "given", "asked"),
        ("verify_claims", "lexical@7", "given", "asked"),
    ]


def test_a_base_url_goes_into_one_model() -> None:
    assert judge_spec("vllm/x(seed=1)", "http://h/v1") == {"model": "vllm/x", "seed": 1, "base_url": "http://h/v1"}
    with pytest.raises(ConfigError, match=r"--base-url .*single"):
        judge_spec("panel(vllm/a, vllm/b)", "http://h/v1")


@pytest.mark.slow
def test_a_judge_of_judges_is_calibrated_beside_each_of_its_judges_alone(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"output": "x y", "context": [text], "label": label} for text, label in (("x y", "yes"), ("z", "no"))]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with serving() as server:
        spec = f"cascade(lexical, vllm/x(base_url={server.url}))"
        asking = ("calibrate", "--labels", "labels.jsonl", "-s", "fact_check", "-j", spec)
        done = evalstone(*asking, "--per-judge")
        both = evalstone(*asking, "--per-judge", "--budget", "1")
        as_json = [json.loads(line) for line in evalstone(*asking, "--per-judge", "--json").stdout.splitlines()]
        in_python = calibrate(str(tmp_path / "labels.jsonl"), "fact_check", judge=spec, per_judge=True)
        explained = evalstone("judges", spec)
    assert done.returncode == 0, done.stderr
    for told in (done.stdout.partition("each judge")[2], explained.stdout.partition("calibrated here")[2]):
        lines = [line.split()[0] for line in told.splitlines() if "fact_check" in line]
        assert [name.partition("(")[0] for name in lines] == ["cascade", LexicalJudge().identity, "vllm/x"]
    assert "together - alone" in done.stdout
    assert "votes are worth" not in done.stdout  # the members of a cascade don't vote
    assert "Not calibrated yet" not in explained.stdout
    assert both.returncode == 2
    assert "--per-judge can't" in both.stderr
    for line, one in zip(as_json, (in_python, *in_python.per_judge), strict=True):
        differing = {"created": "", "run": "", "seconds": 0.0}
        assert line | differing == one.to_dict() | differing


@pytest.mark.parametrize(
    ("options", "asked", "cached"),
    [
        ("-j panel(openai/gpt-5.1,openai/gpt-5-mini) --per-judge", [6, 0, 0], [0, 3, 3]),
        ("-j panel(openai/gpt-5.1,openai/gpt-5-mini) --per-judge --no-cache", [6, 3, 3], [0, 0, 0]),
        ("-j cascade(openai/gpt-5-mini,openai/gpt-5.1) --risk 0.2", [6, 0, 0], [0, 3, 3]),
        ("-j openai/gpt-5.1 -j self_consistency(openai/gpt-5.1,repeats=3)", [3, 6], [0, 3]),
    ],
)
def test_a_dry_run_counts_a_call_of_several_calibrations_once(
    tmp_path: Path, evalstone: Evalstone, options: str, asked: list[int], cached: list[int]
) -> None:
    rows = [{"id": f"{n}", "output": f"Claim {n}.", "context": ["c"], "label": n % 2} for n in range(3)]
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = evalstone("calibrate", "--labels", "l.jsonl", "-s", "fact_check", *options.split(), "--dry-run", "--json")
    assert done.returncode == 0, done.stderr  # without a key
    found = json.loads(done.stdout)
    assert [line["asked"] for line in found["scorers"]] == asked
    assert [line["cached"] for line in found["scorers"]] == cached
    assert (found["samples"], found["calls"]) == (3, sum(asked))
    assert "threshold" not in found["judge"]  # --risk chooses it
    assert not (tmp_path / ".evalstone").exists()


def test_a_dry_run_of_a_calibration_refuses_what_the_calibration_refuses(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "l.jsonl").write_text(json.dumps(ROW | {"label": 1}), encoding="utf-8")
    for options, problem in (
        ("--risk 0.1", "--risk chooses the threshold of a cascade; lexical@"),
        ("--label x", "no row has the column 'x'"),
        ("--slice-by x", "x"),
    ):
        done = evalstone("calibrate", "--labels", "l.jsonl", *options.split(), "--dry-run")
        assert done.returncode == 2, done.stdout
        assert problem in done.stderr


def test_of_several_judges_none_is_asked_if_one_cannot_answer(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "l.jsonl").write_text(json.dumps(ROW | {"label": 1}), encoding="utf-8")
    done = evalstone("calibrate", "--labels", "l.jsonl", "-s", "fact_check", "-j", "lexical", "-j", "sentences")
    assert (done.returncode, "sentences@1 only splits texts into sentences" in done.stderr) == (2, True)
    assert not (tmp_path / ".evalstone").exists()


def test_several_judges_are_calibrated_and_compared(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"output": "x y", "context": [text], "label": label} for text, label in (("x y", "yes"), ("z", "no"))] * 4
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with serving() as server:
        asking = ("calibrate", "--labels", "labels.jsonl", "-s", "fact_check", "-j", "lexical", "-j")
        done = evalstone(*asking, f"vllm/x({server.url}, prices=[1, 1])", "--out", "out.jsonl")
        assert done.returncode == 0, done.stderr
        assert "The labels don't tell yet whether one of these 2 judges is usable" in done.stdout
        assert done.stdout.count("Saved:") == 2
        copies = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [copy["judge"].partition("(")[0] for copy in copies] == [LexicalJudge().identity, "vllm/x"]
        (data,) = [
            json.loads(line) for line in evalstone(*asking, f"vllm/x({server.url})", "--json").stdout.splitlines()
        ]
        assert {judge["judge"]: judge["cost"] for judge in data["judges"]}[LexicalJudge().identity] == 0
    for option in (("--svg", "x.svg"), ("--per-judge",), ("--risk", "0.1"), ("--budget", "1")):
        assert f"{option[0]} takes one judge" in refusal(evalstone, *asking, "sentences", *option)
    assert "is named twice" in refusal(evalstone, *asking, "lexical")
    # Nothing is paid for one judge if another one can't be asked.
    with serving() as server:
        asked = (*asking, f"vllm/x({server.url})", "-j", "typesafe/jev-latest", "--no-cache")
        assert "needs a key" in refusal(evalstone, *asked)
        assert server.requests == []


def printed(evalstone: Evalstone, *arguments: str) -> str:
    """What a successful command prints."""
    done = evalstone(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(evalstone: Evalstone, *arguments: str) -> str:
    """The error that a command ends with."""
    done = evalstone(*arguments)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    return done.stderr


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """The bundled answers' labels by two annotators, the second of whom has labelled every other answer."""
    rows = [json.loads(line) for line in DEMO_DATA.read_text(encoding="utf-8").splitlines()]
    file = tmp_path / "labels.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "annotator_1", "annotator_2"])
        for number, row in enumerate(rows):
            label = row["metadata"]["label"]
            writer.writerow([row["id"], label, label if number % 2 else ""])
    return file


@pytest.mark.slow
def test_labels_in_a_file_of_their_own_calibrate_the_lexical_judge(
    tmp_path: Path, labels: Path, evalstone: Evalstone
) -> None:
    files = ("--out", "copy.json", "--svg", "diagram.svg")
    done = evalstone("calibrate", "--labels", labels.name, "--data", str(DEMO_DATA), *files)
    assert done.returncode == 0, done.stderr
    for told in (
        "60 labeled samples",
        "people: yes",
        "specificity",
        "AUROC",
        "How often people say yes",
        "2 annotators",
        "Saved:",
    ):
        assert told in done.stdout
    copy = json.loads((tmp_path / "copy.json").read_text())
    assert len(copy["pairs"]) == 60
    assert ElementTree.parse(tmp_path / "diagram.svg").getroot().tag.endswith("svg")
    found = calibration_for(copy["judge"], copy["signature"], tmp_path / ".evalstone" / "ledger.db")
    assert found is not None
    assert found.columns == ("annotator_1", "annotator_2")


@pytest.mark.slow
def test_a_calibration_can_be_printed_as_one_line_of_json(tmp_path: Path, evalstone: Evalstone) -> None:
    data = json.loads(
        printed(
            evalstone, "calibrate", "--labels", str(DEMO_DATA), "--json", "--calibrator", "platt", "--objective", "f1"
        )
    )
    assert (data["recalibration"]["kind"], data["threshold"]["objective"]) == ("platt", "f1")
    assert data["measures"]["raw"]["bins"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "title"),
    [
        (["calibrate", "--labels", str(DEMO_DATA)], "Calibration on"),
        (["audit", str(DEMO_DATA), "--perturbation", "verbosity", "--draw", "5"], "Audit on"),
    ],
)
def test_a_report_on_a_judge_is_written_as_html_and_markdown(
    tmp_path: Path, evalstone: Evalstone, command: list[str], title: str
) -> None:
    shown = printed(evalstone, *command, "--html", "r.html", "--markdown", "r.md")
    assert (shown.startswith(title), shown.endswith("r.html, r.md\n")) == (True, True)
    page = (tmp_path / "r.html").read_text()
    assert (page.startswith("<!doctype html>"), title in page) == (True, True)
    assert (tmp_path / "r.md").read_text().startswith(f"### {title}")
    assert printed(evalstone, *command, "--markdown", "-").startswith(f"### {title}")


def test_scores_lost_to_a_perturbation_are_reported(tmp_path: Path, evalstone: Evalstone) -> None:
    row = {"id": "a", "output": "Paris is in France.", "context": ["Paris is in France."], "other": "Hello!"}
    (tmp_path / "data.jsonl").write_text(json.dumps(row))
    shown = printed(evalstone, "audit", "data.jsonl", "--paraphrase", "other", "--perturbation", "bold")
    assert "1 score lost" in shown
    assert "(at least 5 changed" in " ".join(shown.split())


def test_an_audit_prints_a_line_per_perturbation(tmp_path: Path, evalstone: Evalstone) -> None:
    shown = printed(
        evalstone, "audit", str(DEMO_DATA), "--perturbation", "verbosity", "--perturbation", "position", "--draw", "12"
    )
    for told in (
        "12 of 60 samples",
        "repeat",
        "passages_reversed",
        "verbosity",
        "Holm-adjusted",
        "Unperturbed: mean",
    ):
        assert told in shown
    assert "injection" not in shown


@pytest.mark.slow
def test_an_audit_can_be_printed_as_one_line_of_json(tmp_path: Path, evalstone: Evalstone) -> None:
    data = json.loads(
        printed(evalstone, "audit", str(DEMO_DATA), "-s", "hallucination", "--perturbation", "with_headings", "--json")
    )
    assert [effect["perturbation"] for effect in data["effects"]] == ["repeat", "with_headings"]
    assert data["scorers"][0]["name"] == "hallucination"


def test_the_cost_of_an_audit_is_known_before_and_its_edits_are_listed(evalstone: Evalstone) -> None:
    dry = printed(
        evalstone,
        "audit",
        str(DEMO_DATA),
        "--dry-run",
        "--judge",
        "openai/gpt-5.1",
        "--perturbation",
        "verbosity",
        "--draw",
        "3",
    )
    assert "6 versions of 3 samples · " in dry
    assert "judge openai/gpt-5.1" in dry
    assert "$" in dry
    assert "injection_ready_reply" in printed(evalstone, "audit", "--list")
    listed = [json.loads(line) for line in printed(evalstone, "audit", "--list", "--json").splitlines()]
    assert [one["name"] for one in listed] == list(PERTURBATIONS)
    assert all(one.keys() == {"name", "family", "why"} for one in listed)


def test_an_audit_without_samples_is_refused_and_says_where_to_find_some(evalstone: Evalstone) -> None:
    done = evalstone("audit")
    assert done.returncode == 2
    assert "needs DATA" in done.stderr
    assert "evalstone demo" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["calibrate", "--labels", "none.csv"], "none.csv does not exist"),
        (["calibrate", "--labels", "{demo}", "--label", "gold"], "no row has the column 'gold'; columns: "),
        (["calibrate", "--labels", "{demo}", "--label-range", "1-5"], "--label-range takes LOW:HIGH"),
        (["calibrate", "--labels", "{demo}", "--objective", "acuracy"], "did you mean accuracy"),
        (
            ["calibrate", "--labels", "{demo}", "--calibrator", "isotone"],
            "--calibrator takes platt, isotonic or auto, not 'isotone'",
        ),
        (["calibrate", "--labels", "{demo}", "-s", "fathfulness"], "did you mean faithfulness"),
        (["calibrate", "--labels", "{demo}", "--map", "x"], "FIELD=COLUMN"),
        (["audit", str(DEMO_DATA), "--perturbation", "injecton"], "did you mean injection"),
        (["audit", str(DEMO_DATA), "--judge", "lexcal"], "did you mean lexical"),
        (["audit", str(DEMO_DATA), "--threshold", "3"], "must be at most 1, not 3"),
    ],
)
def test_a_wrong_call_says_what_to_mend(tmp_path: Path, arguments: list[Any], told: str, evalstone: Evalstone) -> None:
    assert told in refusal(evalstone, *(argument.replace("{demo}", str(DEMO_DATA)) for argument in arguments))


def test_a_wrong_call_ends_with_exit_code_2(tmp_path: Path, evalstone: Evalstone) -> None:
    done = evalstone("calibrate", "--labels", "none.csv")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "none.csv" in done.stderr


# ---- What a run says of its judge ----


@dataclass
class Model:
    """A model that says yes unless the answer is marked as bad; `constant`: it says nothing else, whatever it is."""

    constant: str = ""

    def __call__(self, request: dict[str, Any], _: int) -> dict[str, Any]:
        verdict = "no" if "BAD" in str(request["messages"]) else "yes"
        return completion(self.constant or json.dumps({"reason": "It says so.", "verdict": verdict}))


@pytest.fixture
def labeled(tmp_path: Path) -> Path:
    """Twenty answers, every second of them bad, with two columns of labels; and the same in another file."""
    rows = [
        {"id": str(n), "output": f"{output} {n}.", "context": ["p"], "alice": label, "bob": "yes"}
        for n, (output, label) in enumerate([("Good", "yes"), ("BAD", "no")] * 10)
    ]
    for name in ("cal.jsonl", "more.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "cal.jsonl"


@pytest.mark.slow
def test_a_run_says_whether_and_how_well_its_judge_is_calibrated(
    tmp_path: Path, labeled: Path, evalstone: Evalstone
) -> None:
    model = Model()
    with serving(model) as server:
        by = ("-s", "fact_check", "-j", f"vllm/x(base_url={server.url})")

        def lines(*options: str) -> list[str]:
            printed_lines = printed(evalstone, "run", "cal.jsonl", *by, *options).splitlines()
            return [line for line in printed_lines if "calibrated" in line and not line.startswith("evalstone ")]

        def calibrated(file: str, how: str) -> str:
            return f"fact_check: judge calibrated on {file}: {how}"

        (line,) = lines()
        assert line.startswith("fact_check: not ")
        assert "calibrate --labels FILE" in line
        good = (
            "AUROC 1.00 (0.69 to 1.00); caught 10 of 10 bad answers and flagged 0 of 10 good ones at the threshold 0.5"
        )
        calibrate = ("calibrate", *by, "--label", "alice", "--labels")
        file = printed(evalstone, *calibrate, "cal.jsonl").rpartition("Saved: ")[2].strip()
        assert lines() == [calibrated("cal.jsonl", good)]
        assert "--calibrated # pass rates, corrected for" in " ".join(
            printed(evalstone, "run", "cal.jsonl", *by).split()
        )
        assert calibrated("cal.jsonl", good) in printed(evalstone, "report", "last")

        model.constant = '{"reason": "It says so.", "verdict": "yes"}'
        kept = evalstone(*calibrate, "cal.jsonl", "--no-cache", "--html", "page.html")
        assert kept.returncode == 0
        assert kept.stderr.startswith("Not saved, ")
        assert "better than chance" in kept.stderr
        assert f"{file} has a better" in kept.stderr
        assert "same labels (20" in kept.stderr
        assert "Saved:" not in evalstone(*calibrate, "cal.jsonl", "--no-cache").stdout
        assert lines() == [calibrated("cal.jsonl", good)]

        chance = (
            "AUROC 0.50 (0.27 to 0.73), not shown to be better than chance; caught 0 of 10 bad answers and flagged 0"
        )
        chance += " of 10 good ones at the threshold 0.5; all its verdicts were yes"
        printed(evalstone, *calibrate, "more.jsonl", "--no-cache")
        assert lines() == [calibrated("more.jsonl", chance), calibrated("cal.jsonl", good)]
        Path(file).unlink()
        assert "Saved:" in printed(evalstone, *calibrate, "cal.jsonl", "--no-cache")
        assert sorted(lines()) == [calibrated(name, chance) for name in ("cal.jsonl", "more.jsonl")]

        evalstone("calibrate", *by, "--label", "bob", "--labels", "cal.jsonl")
        table = printed(evalstone, "judges").partition("calibrated here")[2]
        for labels in ("cal.jsonl (alice), 20", "cal.jsonl (bob), 20", "more.jsonl (alice), 20"):
            assert labels in table
        Path(file).write_text("no json")
        damaged = evalstone("run", "cal.jsonl", *by)
    assert damaged.returncode == 0
    assert "is not a calibration" in damaged.stderr
    assert "Delete it" in damaged.stderr
    assert "calibrated" not in damaged.stdout


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("I would like to help with that.", "the reply is neither yes nor no"),
        ('{"reason": "Nothing decides it.", "verdict": "undecided"}', "Nothing decides it."),
    ],
)
def test_a_judge_that_reaches_no_verdict_ends_a_run_with_exit_code_3(
    tmp_path: Path, labeled: Path, evalstone: Evalstone, reply: str, reason: str
) -> None:
    with serving(Model(reply)) as server:
        by = ("-j", f"vllm/x(base_url={server.url})", "-s", "fact_check")
        alone = evalstone("run", "cal.jsonl", *by)
        beside = evalstone("run", "cal.jsonl", *by, "-s", "contains(expected=Good)", "--html", "page.html")
        gated = evalstone(
            "run", "cal.jsonl", *by, "-s", "contains(expected=o)", "--min", "contains=0.1", "--sequential"
        )
        calibrated = evalstone("calibrate", *by, "--labels", "cal.jsonl", "--label", "alice")
        audited = evalstone("audit", "cal.jsonl", *by, "--perturbation", "verbosity")
    text = "fact_check: no sample has a score; the judge gave no usable answer on 20 of 20 samples"
    for done in (alone, beside):
        assert done.returncode == 3
        assert text in done.stdout
        assert f"{text} ({reason}" in done.stderr
    assert text in unescape((tmp_path / "page.html").read_text())
    assert gated.returncode == 3
    for done in (calibrated, audited):
        assert done.returncode == 3
        assert reason in done.stderr


def test_samples_that_have_no_score_by_their_data_end_no_run(tmp_path: Path, evalstone: Evalstone) -> None:
    rows = [{"output": "Hello!", "context": ["x"]}, {"output": "Hi!", "context": ["x"]}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert evalstone("run", "d.jsonl", "-s", "faithfulness", "-s", "contains(expected=H)").returncode == 0
    alone = evalstone("run", "d.jsonl", "-s", "faithfulness")
    assert alone.returncode == 3
    assert re.fullmatch(r"no sample .* no claim\n", alone.stderr)


OWN_JUDGES = """
from evalstone import Cascade, Judge, JudgeAnswer

class Sure(Judge):
    always: str = ""

    async def answer(self, question, repeat=0):
        even = question.inputs()["claim"].split()[-2] in ("0", "2", "4", "6", "8")
        verdict = self.always or ("yes" if even else "no")
        value = question.parse('{"reason": "", "verdict": "%s"}' % verdict)
        return JudgeAnswer(value=value, judge=self.identity, probability=2 / 3, cost=0.0)

both = Cascade(Sure(), Sure(always="yes"))
"""


CASCADE = 'cascade(own.py:Sure, own.py:Sure(always="yes")%s)'


@pytest.mark.parametrize(
    ("judge", "used"),
    [
        (CASCADE % "", f"--judge '{CASCADE % ', threshold=0.66'}'"),
        (CASCADE % ", threshold=0.95", f"--judge '{CASCADE % ', threshold=0.66'}'"),
        (CASCADE % ", threshold=0.95, max_requests=90", f"--judge '{CASCADE % ', max_requests=90, threshold=0.66'}'"),
        ("own.py:both", "threshold=0.66"),
    ],
)
def test_a_threshold_that_labels_chose_is_named_as_it_is_used(evalstone: Evalstone, judge: str, used: str) -> None:
    Path("own.py").write_text(OWN_JUDGES, encoding="utf-8")
    rows = [{"id": str(n), "output": f"It is {n % 10} .", "context": [f"{n}"], "label": 1 - n % 2} for n in range(20)]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = ("--labels", "labels.jsonl", "--scorer", "fact_check(by_sentence=false)", "--risk", "0.2")
    done = evalstone("calibrate", *options, "--judge", judge)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert f"Use the cascade with {used}." in told
    assert "Threshold 0.66: of the samples" in told
