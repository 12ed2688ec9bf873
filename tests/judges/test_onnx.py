"""Verifier models of the user's: what their logits say of claims, and what is refused."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from evalstone import (
    Failed,
    ReplayJudge,
    Score,
    ScriptedJudge,
    Skipped,
    calibrate,
    evaluate,
    parse_judge,
    read_run,
    write_run,
)
from evalstone.cli.config_file import RunConfig
from evalstone.cli.values import judge_spec, scorer_specs
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import ConfigError, JudgeDeclined, MissingDependency
from evalstone.judges import Cascade, DecisionOrText, OnnxJudge, verifier
from evalstone.judges import onnx as onnx_judge
from evalstone.questions import ClaimSupported, ListClaims, VerifyClaims
from evalstone.run.rebuilt import rebuilt_prompts
from tests.fakes import verdicts
from tests.verifier_models import MEANING, NLI, save_verifier

CLAIM = "it is free"
BY_TOKEN: Any = {"bad": (-6, 6), "yes": (8, -8), "no": (-8, 8)}


def answered(judge: OnnxJudge, question: Any) -> Any:
    return asyncio.run(judge.answer(question))


def verified(folder: Path, *passages: str, claims: tuple[str, ...] = (CLAIM,), **settings: Any) -> Any:
    """The verdicts, and the probabilities of the first claim: supported, not mentioned, contradicted."""
    answer = answered(OnnxJudge(str(folder), **settings), VerifyClaims(claims=claims, context=passages))
    outcomes = ("supported", "not_mentioned", "contradicted")
    shares = [answer.alternatives[f"1.verdict={outcome}"] for outcome in outcomes]
    assert sum(shares) == pytest.approx(1)
    return [each.verdict for each in answer.value], [round(share, 3) for share in shares]


@pytest.mark.parametrize("labels", [NLI, ("contradiction", "entailment", "neutral"), ("NEUTRAL", "Entails", "refutes")])
def test_the_labels_of_a_cross_encoder_decide_whatever_their_order(tmp_path: Path, labels: tuple[str, ...]) -> None:
    places = [verifier.LABELS[label.casefold()] for label in labels]
    order = [("supported", "not_mentioned", "contradicted").index(outcome) for outcome in places]
    weights = {word: [values[place] for place in order] for word, values in MEANING.items()}
    folder = save_verifier(tmp_path, weights, labels=labels)
    assert verified(folder, "the museum yes") == (["supported"], [0.995, 0.002, 0.002])
    assert verified(folder, "the museum maybe") == (["not_mentioned"], [0.002, 0.995, 0.002])
    assert verified(folder, "the museum no") == (["contradicted"], [0.002, 0.002, 0.995])
    assert verified(folder, "the museum", claims=("it is no", "yes"))[0] == ["contradicted", "supported"]
    answer = answered(OnnxJudge(str(folder)), ClaimSupported(claim=CLAIM, context=("the museum no",)))
    assert (answer.value.verdict, round(answer.value.probability, 3), round(answer.probability, 3)) == (
        "no",
        0.002,
        0.998,
    )
    assert answer.value.probability == answer.alternatives["yes"] == pytest.approx(1 - answer.alternatives["no"])


@pytest.mark.parametrize(
    ("labels", "otherwise"),
    [(("not_entailment", "entailment"), "not_mentioned"), (("contradiction", "entailment"), "contradicted")],
)
def test_two_labels_are_enough(tmp_path: Path, labels: tuple[str, ...], otherwise: str) -> None:
    folder = save_verifier(tmp_path, {"yes": (0, 5), "no": (5, 0)}, labels=labels)
    assert verified(folder, "yes")[0] == ["supported"]
    verdict, shares = verified(folder, "no")
    assert verdict == [otherwise]
    assert shares[0] == 0.007
    assert sorted(shares)[0] == 0


@pytest.mark.parametrize("place", [4, 20, 21, 22, 24, 44, 60, 99])
def test_a_long_passage_is_read_in_windows_that_overlap_and_the_best_counts(tmp_path: Path, place: int) -> None:
    words = ["museum"] * 100
    words[place] = "yes"
    folder = save_verifier(tmp_path, window=32)
    assert verified(folder, " ".join(words))[0] == ["supported"]
    assert verified(folder, "closed", " ".join(words), "closed")[0] == ["supported"]
    assert verified(folder, "museum " * 100 + "no")[0] == ["contradicted"]
    # What takes two words that are a few words apart is in one window, wherever it is.
    folder = save_verifier(tmp_path / "both", {"yes": (3, 0, 0), "free": (0, 4.5, 0)}, window=32)
    assert verified(folder, " ".join(words))[0] == ["not_mentioned"]
    words[place - 4] = "yes"
    assert verified(folder, " ".join(words))[0] == ["supported"]


def test_one_window_that_supports_a_claim_outweighs_one_that_contradicts_it(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path, window=32)
    against, support = "no " + "museum " * 18, "yes " + "museum " * 18
    assert verified(folder, against, support) == (["supported"], [0.995, 0.0, 0.005])
    # Together in one window, they are what the model makes of them.
    assert verified(folder, "no no", "yes") == (["contradicted"], [0.002, 0.0, 0.998])
    # Passages that fit are read whole, and together.
    assert len(windows_of(folder, ["museum"] * 5)) == 1
    assert len(windows_of(folder, ["museum " * 18, "museum " * 18])) == 2


def windows_of(folder: Path, passages: list[str], *claims: str) -> list[Any]:
    judge = OnnxJudge(str(folder))
    judge.check()
    return list(verifier.loaded(verifier.model_files(folder, None, None)).windows(passages, claims or (CLAIM,)))


def test_a_token_classifier_judges_each_claim_by_its_own_tokens(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path, BY_TOKEN, labels=None, by_token=True)
    claims = ("it is free", "it is bad", "the museum", "bad")
    assert verified(folder, "yes", claims=claims)[0] == ["supported"] * 4  # 2 · 8 - 2 · 6 logits
    found = verified(folder, "closed", claims=claims)[0]
    assert found == ["not_mentioned"] * 4  # without a word for or against it, a tie is no support
    weak = save_verifier(
        tmp_path / "weak", {**BY_TOKEN, "yes": (1, -1)}, labels=("SUPPORTED", "HALLUCINATED"), by_token=True
    )
    assert verified(weak, "yes", claims=claims)[0] == ["supported", "not_mentioned", "supported", "not_mentioned"]
    # All claims are read at once, as the answer that they are from.
    (window,) = windows_of(weak, ["yes"], *claims)
    assert [place for place in window.claims if place is not None] == [0, 0, 0, 1, 1, 1, 2, 2, 3]


def test_a_token_classifier_reads_a_whole_answer_and_a_long_one_by_its_sentences(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path, {"bad": (-6, 6), "yes": (1, -1)}, labels=None, by_token=True, window=40)
    judge = parse_judge(f"onnx:{folder}")
    assert judge.context_limits.whole
    long = "It is free today . " * 5
    rows = [{"output": text, "context": ["yes"]} for text in (long, long + "It is bad now . ", "bad")]
    run = evaluate(rows, "fact_check", judge=judge, ledger=None)
    assert [round(record.value or 0, 2) for record in run.records] == [0.88, 0.0, 0.0]
    assert [len(record.calls) for record in run.records] == [1, 1, 1]
    # That whole answers were asked about is stored: the model may be gone.
    info, stored = run["fact_check"].info, read_run(write_run(run, tmp_path / "run")).asking
    for record, sample in zip(run.records, run.samples or (), strict=True):
        assert len(rebuilt_prompts(record, sample, info, keeps_reasoning=False, asking=stored).asked) == 1
    replay = ReplayJudge.from_records(tmp_path / "run" / "records.jsonl")
    again = evaluate(rows, "fact_check", judge=replay, ledger=None)
    assert [record.value for record in again.records] == [record.value for record in run.records]
    assert not parse_judge(f"onnx:{save_verifier(tmp_path / 'nli')}").context_limits.whole


@pytest.mark.parametrize("kind", ["nli", "tokens"])
def test_scorers_of_support_use_it_and_claims_are_sentences(tmp_path: Path, kind: str) -> None:
    weights = {"yes": (4, -4), "bad": (-6, 6), "no": (-4, 4)}
    tokens: dict[str, Any] = {"weights": weights, "labels": None, "by_token": True} if kind == "tokens" else {}
    folder = save_verifier(tmp_path / "m", **tokens)
    rows: Any = [
        {"id": "a", "output": "It is free . The museum closed .", "context": ["yes"]},
        {"id": "b", "output": "It is free .", "context": ["no"]},
        {"id": "c", "output": "It is free .", "context": []},
    ]
    names = ["faithfulness", "hallucination", "fact_check"]
    run = evaluate(rows, names, judge=f"onnx:{folder}", ledger=tmp_path / "l")
    assert [run[name].mean for name in names[:2]] == [1 / 3, 2 / 3]
    first, second = (
        record.value for record in run.records if record.scorer == "fact_check" and record.value is not None
    )
    assert first > 0.9
    assert second < 0.1
    faithful = next(record for record in run.records if record.scorer == "faithfulness")
    assert next(call.members[0].judge for call in faithful.calls) == "sentences@1"
    again = evaluate(rows, names, judge=f"onnx:{folder}", ledger=tmp_path / "l")
    assert {call.source for record in again.records for call in record.calls} == {"asked", "shared", "cached"}
    assert not [
        c for r in again.records for c in r.calls for m in c.members if m.source == "asked" and "onnx" in m.judge
    ]
    assert [record.outcome for record in again.records] == [record.outcome for record in run.records]
    assert (run.cost, again.cost) == (0, 0)


def test_stored_answers_are_replayed_without_the_model(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path / "m")
    rows = [{"output": "It is free .", "context": ["yes"]}]
    run = evaluate(rows, ["faithfulness", "fact_check"], judge=f"onnx:{folder}", ledger=None)
    write_run(run, tmp_path / "out")
    shutil.rmtree(folder)
    replay = ReplayJudge.from_records(tmp_path / "out" / "records.jsonl")
    replayed = evaluate(rows, ["faithfulness", "fact_check"], judge=replay, ledger=None)
    assert [record.outcome for record in replayed.records] == [record.outcome for record in run.records]


def test_a_question_on_many_claims_is_rebuilt_as_it_was_asked(tmp_path: Path) -> None:
    judge = parse_judge(f"onnx:{save_verifier(tmp_path / 'm')}")
    row = {"output": "".join(f"Room {n} is free . " for n in range(60)), "context": ["yes"]}
    run = evaluate([row], "faithfulness", judge=judge, ledger=None)
    record, info = run.records[0], run["faithfulness"].info
    found = rebuilt_prompts(record, next(iter(run.samples or ())), info, keeps_reasoning=False, asking=run.asking)
    asked = {(leaf.fingerprint, leaf.judge) for call in record.calls for leaf in call.leaves()}
    assert found.asked.keys() == asked
    assert len(asked) == 2


def test_a_cascade_keeps_what_is_probable_and_asks_for_the_other_claims(tmp_path: Path) -> None:
    second = ScriptedJudge({"verify_claims": verdicts(("contradicted", [1]))}, name="model")
    rows = [{"output": "It is free . It is closed .", "context": ["It is free yes"]}]
    tokens = {"yes": (2, 0, 0), "free": (3, 0, 0), "closed": (-4, 0, 0)}
    judge = Cascade(f"onnx:{save_verifier(tmp_path / 'm', tokens)}", second, threshold=0.9)
    run = evaluate(rows, "faithfulness", judge=judge, ledger=tmp_path / "l")
    (record,) = run.records
    assert isinstance(record.outcome, Score)
    assert record.value == 0.5
    detail = record.calls[-1].detail or {}
    assert (detail["items"], detail["escalated"]) == ([2], 0.5)
    assert [question.kind for question in second.asked] == ["verify_claims"]
    assert second.asked[0].claims == ("It is closed .",)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_model_with_random_weights_is_shown_to_be_no_better_than_chance(tmp_path: Path) -> None:
    text = DEMO_DATA.read_text("utf-8")
    words = sorted(set(json.dumps(text).replace('\\"', " ").split()))
    folder = save_verifier(tmp_path, 7, words=words, window=512)
    made = calibrate(DEMO_DATA, "fact_check", judge=f"onnx:{folder}", ledger=None)
    assert (made.n_failed, len(made.pairs), made.passed) == (0, 60, False)
    assert made.unusable is not None
    assert "Not usable, not even to rank systems" in str(made)


@pytest.mark.parametrize("weights", ["weights.bin", f"gewichte-ü-{'w' * 150}.bin"], ids=len)
def test_its_identity_is_of_the_files_and_not_of_their_place(weights: str, tmp_path: Path) -> None:
    folder = save_verifier(tmp_path / "a", external=weights)
    judge = OnnxJudge(str(folder))
    assert pickle.loads(pickle.dumps(judge)) == judge
    moved = Path(shutil.copytree(folder, tmp_path / "b"))
    known = judge.identity
    assert OnnxJudge(str(moved)).identity == OnnxJudge(str(moved / "model.onnx")).identity == known
    assert not set(str(tmp_path).split("/")) & set(known.split("/"))
    (moved / "README.md").write_text("Another text.")
    assert OnnxJudge(str(moved)).identity == known
    others = {known}

    def differs(**settings: Any) -> None:
        identity = OnnxJudge(str(moved), **settings).identity
        assert identity not in others
        others.add(identity)

    differs(window=48)
    differs(labels=("entailment", "contradiction", "neutral"))
    for name in (weights, "tokenizer.json", "model.onnx"):
        (moved / name).write_bytes((moved / name).read_bytes() + b" ")
        differs()
    config = json.loads((moved / "config.json").read_text())
    (moved / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 50}))
    differs()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "weights.bin"])
def test_a_file_changed_in_place_is_another_model_even_with_its_old_size_and_time(name: str, tmp_path: Path) -> None:
    folder = save_verifier(tmp_path, external="weights.bin")
    judge, file = OnnxJudge(str(folder)), folder / name
    before, was = judge.identity, file.stat()
    if name == "tokenizer.json":
        file.write_text(file.read_text().replace('"yes"', '"yep"'))
    else:
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (was.st_size, was.st_mtime_ns)
    assert judge.identity != before


def test_a_model_changed_in_place_is_loaded_again(tmp_path: Path) -> None:
    folder, other = save_verifier(tmp_path / "a"), save_verifier(tmp_path / "b", {"yes": (0, 0, 4)})
    file = folder / "model.onnx"
    assert verified(folder, "yes")[0] == ["supported"]
    was, content = file.stat(), (other / "model.onnx").read_bytes()
    assert len(content) == was.st_size
    file.write_bytes(content)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert verified(folder, "yes")[0] == verified(other, "yes")[0] != ["supported"]


@pytest.mark.parametrize(
    ("spec", "path", "settings"),
    [
        ("onnx:nli", "nli", {}),
        ("onnx:models/nli-base/model.onnx", "models/nli-base/model.onnx", {}),
        ("onnx:./nli(window=256)", "nli", {"window": 256}),
        ("onnx:nli(labels=[entailment, neutral, contradiction])", "nli", {"labels": NLI}),
        ('"onnx:my models (new), 2/nli"', "my models (new), 2/nli", {}),
        ({"model": "onnx:my models/nli", "window": 64}, "my models/nli", {"window": 64}),
        ("decision(onnx:nli, text=sentences)", "nli", {}),
        ({"decision": {"model": "onnx:nli"}, "text": "sentences"}, "nli", {}),
    ],
)
def test_it_is_named_by_its_path(
    spec: Any, path: str, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_verifier(Path(path).parent if path.endswith(".onnx") else Path(path))
    judge = parse_judge(spec)
    assert judge == DecisionOrText(OnnxJudge(path, **settings))
    assert isinstance(judge, DecisionOrText)
    assert judge.decides.path == str(tmp_path / path)  # type: ignore[attr-defined]


def test_a_path_in_a_configuration_file_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_verifier(tmp_path / "sub" / "models" / "nli")
    file = tmp_path / "sub" / "eval.toml"
    judge = 'judge = {cascade = ["onnx:models/nli", "lexical"], threshold = 0.8}'
    scorer = 'scorers = [{name = "fact_check", judge = "onnx:models/nli"}]'
    file.write_text(f'data = "d.jsonl"\n{scorer}\n{judge}\n')
    monkeypatch.chdir(tmp_path)
    config = RunConfig.load(str(file))
    for found in (
        parse_judge(judge_spec(config.judge, None, config.folder("judge"))).members[0],
        scorer_specs(config.scorers, config.folder("scorers"))[0].judge,
    ):
        assert found == DecisionOrText(OnnxJudge(str(folder)))


@pytest.mark.parametrize(
    ("scorers", "judge", "problem"),
    [
        ("toxicity", "onnx:m", "toxicity asks find_toxicity, and "),
        ("context_precision", "onnx:m", "only says whether passages support claims; name a judge for the rest, as in"),
        ("geval", "decision(onnx:m, text=lexical)", None),
    ],
)
def test_a_scorer_with_other_questions_is_refused_before_the_run(
    scorers: str, judge: str, problem: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_verifier(Path("m"))
    rows = [{"input": "q", "output": "It is free .", "context": ["yes"], "reference": "r"}]
    if problem is None:
        run = evaluate(rows, "answer_relevancy", judge=judge, ledger=None)
        assert run["answer_relevancy"].n_score == 1
        return
    with pytest.raises(ConfigError) as caught:
        evaluate(rows, scorers, judge=judge, ledger=None)
    assert problem in str(caught.value)
    assert f"decision(onnx:{tmp_path / 'm'}, text=openai/gpt-5.1)" in str(caught.value)


def test_what_it_cannot_answer_it_declines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = OnnxJudge(str(save_verifier(tmp_path, window=32)))
    with pytest.raises(JudgeDeclined, match="only says whether passages support claims"):
        answered(judge, ListClaims(text="a"))
    question = ClaimSupported(claim=CLAIM, context=("yes",))
    own = replace(question, prompt=replace(question.prompt, instructions="Be strict."))
    with pytest.raises(JudgeDeclined, match="follows no instructions"):
        answered(judge, own)
    with pytest.raises(JudgeDeclined, match="claim 1 has 20 tokens, and at most 13 fit into half a window"):
        answered(judge, ClaimSupported(claim="free " * 20, context=("yes",)))
    with pytest.raises(JudgeDeclined, match=r"claim 2 is empty$"):
        answered(judge, VerifyClaims(claims=(CLAIM, " "), context=("yes",)))
    monkeypatch.setattr(onnx_judge, "MOST_WINDOWS", 3)
    assert answered(judge, ClaimSupported(claim=CLAIM, context=("free " * 40,))).value.verdict == "no"
    with pytest.raises(JudgeDeclined, match="are more than 3 windows"):
        answered(judge, ClaimSupported(claim=CLAIM, context=("free " * 400,)))
    run = evaluate([{"output": "It is free .", "context": ["free " * 400]}], "fact_check", judge=judge, ledger=None)
    assert isinstance(run.records[0].outcome, Skipped)


def test_blank_passages_are_none(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path)
    assert verified(folder, "", " \u200b") == verified(folder) == (["not_mentioned"], [0, 1, 0])


def test_half_a_character_is_read_as_an_unknown_one(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path)
    assert verified(folder, "yes \udfff", claims=("it is \ud800 free",))[0] == ["supported"]


@pytest.mark.parametrize(
    ("shape", "problem"), [((1, "tokens"), None), ((1, 64), "1 × 64"), ((8, "tokens"), "8 × tokens")]
)
def test_a_model_of_a_fixed_shape_is_refused_with_what_to_do(tmp_path: Path, shape: Any, problem: str | None) -> None:
    folder = save_verifier(tmp_path, shape=shape)
    if problem is None:
        assert verified(folder, "yes")[0] == ["supported"]
        return
    with pytest.raises(
        ConfigError, match=f"input_ids has the fixed shape {problem}; expected 1 × any number"
    ) as caught:
        OnnxJudge(str(folder)).check()
    assert str(caught.value).endswith("export the model with dynamic axes")


def test_a_logit_that_is_no_number_fails_its_sample(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path, {"yes": (np.nan, 0, 0), "no": (0, 0, 1)})
    rows = [{"id": str(n), "output": "It is free .", "context": [word]} for n, word in enumerate(("yes", "no"))]
    run = evaluate(rows, "fact_check", judge=f"onnx:{folder}", ledger=None)
    first, second = (record.outcome for record in run.records)
    assert isinstance(first, Failed)
    assert "gave a logit that isn't finite" in first.error
    assert isinstance(second, Score)


@pytest.mark.parametrize(
    "settings",
    [
        {"inputs": ("input_ids",)},
        {"inputs": ("input_ids", "attention_mask", "token_type_ids")},
        {"ids": TensorProto.INT32},
        {"output": TensorProto.FLOAT16},
        {"external": "model.onnx_data"},
        {"name": "onnx/model.onnx"},
        {"name": "model_quantized.onnx"},
        {"labels": ("LABEL_0", "LABEL_1", "LABEL_2"), "given": NLI},
    ],
    ids=str,
)
def test_models_are_read_as_they_are_exported(tmp_path: Path, settings: dict[str, Any]) -> None:
    given = settings.pop("given", None) if "given" in settings else None
    folder = save_verifier(tmp_path, **settings)
    assert verified(folder, "yes", labels=given)[0] == ["supported"]
    settings["given"] = given


def test_a_quantized_model_gives_the_same_answer_alone_and_among_others(tmp_path: Path) -> None:
    quantization: Any = pytest.importorskip("onnxruntime.quantization")
    folder = save_verifier(tmp_path)
    weights = quantization.QuantType.QInt8
    quantization.quantize_dynamic(folder / "model.onnx", folder / "int8.onnx", weight_type=weights)
    judge = OnnxJudge(str(folder / "int8.onnx"))
    question = VerifyClaims(claims=(CLAIM,), context=("yes",))
    alone = answered(judge, question)

    async def together() -> list[Any]:
        others = [VerifyClaims(claims=(f"{CLAIM} no",) * n, context=("yes",)) for n in range(1, 20)]
        return await asyncio.gather(*map(judge.answer, [*others, question]))

    assert asyncio.run(together())[-1].alternatives == alone.alternatives
    assert alone.value[0].verdict == "supported"


def absent(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def written(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def copied(folder: Path) -> None:
    shutil.copy(folder / "a.onnx", folder / "b.onnx")


@pytest.mark.parametrize(
    ("settings", "change", "problem"),
    [
        ({}, absent("tokenizer.json"), "model.onnx needs its tokenizer.json beside it; there is none"),
        ({}, absent("model.onnx"), "m has no model.onnx"),
        ({}, absent("config.json"), "has 3 outputs and no names for them in id2label of config.json"),
        ({}, shutil.rmtree, "there is no file or folder "),
        ({}, written("model.onnx", ""), "model.onnx is empty"),
        ({}, written("model.onnx", "version https://git-lfs.github.com/spec/v1\n"), "is a pointer of Git LFS"),
        ({}, written("model.onnx", "no model"), "model.onnx can't be loaded as an ONNX model: "),
        ({}, written("tokenizer.json", "{}"), "tokenizer.json is no tokenizer: "),
        ({}, written("config.json", "{"), "config.json can't be read as JSON: "),
        ({}, written("config.json", "[]"), "config.json has no JSON object"),
        ({}, written("config.json", '{"id2label": ["a"]}'), "config.json: id2label must be an object such as"),
        ({}, written("config.json", '{"id2label": {"1": "a"}}'), "config.json: id2label must be an object such as"),
        ({"labels": ("LABEL_0", "LABEL_1")}, None, "has 2 outputs and no names for them in id2label"),
        ({"labels": ("good", "poor")}, None, "the label must be one such as entailment, neutral and contradiction"),
        ({"labels": ("entailment", "supported")}, None, "the labels entailment and supported don't say what a verdict"),
        ({"labels": ("neutral", "contradiction")}, None, "don't say what a verdict is; expected one"),
        ({"labels": ("entailment",), "weights": {"yes": (1,)}}, None, "don't say what a verdict is"),
        ({}, written("config.json", '{"id2label": {"0": "entailment", "1": "neutral"}}'), "has 3 outputs and 2 labels"),
        ({"external": "w.bin"}, absent("w.bin"), "model.onnx has weights in the file w.bin, which isn't there"),
        ({"inputs": ("pixels",)}, None, "has the input pixels; a verifier model has input_ids and"),
        ({"inputs": ("attention_mask",)}, None, "has no input input_ids"),
        ({"output": TensorProto.INT8}, None, "model.onnx: logits has int8 values; logits are floats"),
        ({"name": "a.onnx"}, copied, "several models: a.onnx and b.onnx; name one"),
    ],
)  # fmt: skip
def test_a_model_that_is_none_is_refused_at_the_start(
    settings: dict[str, Any], change: Any, problem: str, tmp_path: Path
) -> None:
    folder = save_verifier(tmp_path / "m", **settings)
    if change is not None:
        change(folder)
    with pytest.raises(ConfigError) as caught:
        evaluate([{"output": "a", "context": ["b"]}], "fact_check", judge=OnnxJudge(str(folder)), ledger=None)
    assert problem in str(caught.value)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(("length", "external"), [(5, True), (6, False), (127, False)])
def test_weights_are_named_within_the_file_up_to_its_last_byte(length: int, external: bool, tmp_path: Path) -> None:
    folder = save_verifier(tmp_path)
    model = folder / "model.onnx"
    model.write_bytes(b"\x08\x07\n\x08location\x12" + bytes([length]) + b"w.bin")
    (folder / "w.bin").write_bytes(b"weights")
    found = verifier.model_files(folder, None, None).external
    assert found == ((folder / "w.bin",) if external else ())


def test_weights_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder = save_verifier(tmp_path / "m", external="xyzw.bin")
    model = folder / "model.onnx"
    model.write_bytes(model.read_bytes().replace(b"xyzw.bin", b"../w.bin"))
    with pytest.raises(ConfigError, match=r"has weights in \.\./w\.bin, which is not in its folder"):
        OnnxJudge(str(folder)).check()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"window": 8}, "onnx: window must be a whole number of 32 or more"),
        ({"labels": "entailment"}, "onnx: labels must be a list of texts"),
        ({"path": " "}, "onnx: path must be text that is not blank"),
        ({"batch": 8}, "OnnxJudge: unknown parameter 'batch'"),
    ],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], problem: str) -> None:
    given: Any = {"path": "nli", **settings}
    with pytest.raises(ConfigError) as caught:
        OnnxJudge(**given)
    assert problem in str(caught.value)


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_without_the_extra_the_error_is_the_install_line(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_verifier(tmp_path)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependency, match=rf"{library} is not installed.*\[onnx\]"):
        evaluate([{"output": "a", "context": ["b"]}], "fact_check", judge=f"onnx:{folder}", ledger=None)


@pytest.mark.parametrize(
    ("config", "tokenizer", "window"),
    [
        ({"max_position_embeddings": 512}, {}, 512),
        ({"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}, {}, 512),
        ({"max_position_embeddings": 8192}, {"model_max_length": 1e30}, 4096),
        ({"max_position_embeddings": 512}, {"model_max_length": 256}, 256),
        ({"max_position_embeddings": 0}, {"model_max_length": 384}, 384),
        ({"max_position_embeddings": None}, {}, 512),
    ],
)
def test_the_window_is_read_in_the_configuration(config: Any, tokenizer: Any, window: int, tmp_path: Path) -> None:
    folder = save_verifier(tmp_path, **config)
    if config["max_position_embeddings"] is None:
        (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert verifier.model_files(folder, None, None).window == window
    assert verifier.model_files(folder, None, 100).window == 100
