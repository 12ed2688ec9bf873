"""The model card of the lexical judge, docs/lexical-judge.md, from what was measured."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lexical_data import CORPORA

ROOT = Path(__file__).parent.parent
CARD = ROOT / "docs" / "lexical-judge.md"
TEXT = Path(__file__).with_name("lexical_card.md")
PACKAGE = ROOT / "src" / "evalstone" / "judges" / "lexical"
_SPEED = re.compile(r"^fact check .+\n.+ a second$", re.MULTILINE)

PUBLISHED = (
    ("GPT-4-turbo, prompted", "RAGTruth test, all tasks", "F1 63.4", "Niu et al. 2024"),
    (
        "encoders fine-tuned on RAGTruth",
        "RAGTruth test, all tasks",
        "F1 75 to 79",
        "Kovács and Recski 2025 (arXiv 2502.17125)",
    ),
)


def card(found: Mapping[str, Any], model: Mapping[str, Any], speed: str) -> str:
    """The card: the text of lexical_card.md with its tables and figures. speed: what `measured_speed` gives."""
    pooled = found["pooled"]
    parts = {
        "responses": responses(found["data_sets"]),
        "left_out": left_out(found["data_sets"]),
        "dialogue": dialogue(found["dialogue"]),
        "claims": claims(found["claims"]),
        "ablation": ablation(found["ablation"]),
        "published": published(pooled["ragtruth"]),
        "weights": weights(model),
        "ragtruth_auroc": f"{pooled['ragtruth']['auroc']:.3f}",
        "ragtruth_ece": f"{pooled['ragtruth']['calibration_error']:.3f}",
        "seen_ece": f"{pooled['seen']['calibration_error']:.3f}",
        "all_ece": f"{pooled['all']['calibration_error']:.3f}",
        "short": f"{-model['curves']['response']['weights'][3]:.2f}",
        "stems": f"{len(model['counts']):,}",
        "texts": f"{model['documents']:,}",
        "passage_auroc": f"{found['passages']['ragtruth_qa']['auroc']:.3f}",
        "passage_ece": f"{found['passages']['ragtruth_qa']['calibration_error']:.3f}",
        "statement_qa": f"{found['statements']['ragtruth_qa']['auroc']:.3f}",
        "statement_mtrag": f"{found['statements']['mtrag_human']['auroc']:.3f}",
        "speed": speed,
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, value in parts.items():
        text = text.replace(f"<{name}>", value)
    return text


def shipped_card() -> str:
    """The card of the model in the package, with the speed that it has now."""
    found = json.loads((PACKAGE / "measured.json").read_text("utf-8"))
    model = json.loads(gzip.decompress((PACKAGE / "model.json.gz").read_bytes()))
    speed = _SPEED.search(CARD.read_text("utf-8"))
    assert speed is not None, f"{CARD} has no measured speed"
    return card(found, model, speed[0])


def measured_speed() -> str:
    """What bench/lexical_speed.py prints."""
    command = [sys.executable, str(ROOT / "bench" / "lexical_speed.py")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def responses(sets: Mapping[str, Any]) -> str:
    """Whole responses, trained on other sources."""
    head = (
        "dataset",
        "responses (not supported), sources",
        "AUROC [95% CI]",
        "balanced accuracy",
        "F1",
        "ECE",
    )
    rows = [
        (
            name,
            f"{one['rows']} ({one['positive']}), {one['sources']}",
            f"{one['auroc']:.3f} [{one['auroc_interval'][0]:.3f}, {one['auroc_interval'][1]:.3f}]",
            f"{one['balanced_accuracy']:.3f}",
            f"{one['f1']:.3f}",
            f"{one['calibration_error']:.3f}",
        )
        for name, one in sets.items()
    ]
    return markdown(head, rows)


def left_out(sets: Mapping[str, Any]) -> str:
    """Whole responses, the dataset not in training, beside word overlap; the calibration error beside the other."""
    head = (
        "left-out dataset",
        "AUROC",
        "word overlap",
        "difference [95% CI]",
        "balanced accuracy",
        "F1",
        "ECE",
        "ECE, other sources of all datasets",
    )
    rows = [
        (
            name,
            *_beside_overlap(one),
            f"{one['left_out']['balanced_accuracy']:.3f}",
            f"{one['left_out']['f1']:.3f}",
            f"{one['left_out']['calibration_error']:.3f}",
            f"{one['calibration_error']:.3f}",
        )
        for name, one in sets.items()
    ]
    means = [
        sum(column) / len(sets)
        for column in zip(
            *(
                (
                    one["left_out"]["auroc"],
                    one["word_overlap_auroc"],
                    one["left_out"]["calibration_error"],
                    one["calibration_error"],
                )
                for one in sets.values()
            ),
            strict=True,
        )
    ]
    auroc, overlap, ece, seen = (f"{mean:.3f}" for mean in means)
    return markdown(head, [*rows, ("mean", auroc, overlap, f"{means[0] - means[1]:+.3f}", "", "", ece, seen)])


def dialogue(sets: Mapping[str, Any]) -> str:
    """Statements of dialogues beside a right and a wrong source, FaithDial not in training."""
    head = ("statements from", "statements (not supported)", "AUROC", "word overlap", "difference [95% CI]", "ECE")
    rows = [
        (
            CORPORA[name.removeprefix("dialogue_")],
            f"{one['rows']} ({one['positive']})",
            *_beside_overlap(one),
            f"{one['left_out']['calibration_error']:.3f}",
        )
        for name, one in sets.items()
    ]
    return markdown(head, rows)


def _beside_overlap(one: Mapping[str, Any]) -> tuple[str, str, str]:
    auroc, overlap = one["left_out"]["auroc"], one["word_overlap_auroc"]
    low, high = one["difference_interval"]
    return f"{auroc:.3f}", f"{overlap:.3f}", f"{auroc - overlap:+.3f} [{low:+.3f}, {high:+.3f}]"


def ablation(lines: Sequence[Mapping[str, Any]]) -> str:
    """Whole responses with and without the rule for false fields."""
    head = ("dataset", "responses affected", "AUROC with / without", "left out: with / without")
    rows = [
        (
            line["name"],
            str(line["responses"]),
            f"{line['auroc']:.3f} / {line['auroc_without']:.3f}",
            f"{line['left_out']:.3f} / {line['left_out_without']:.3f}",
        )
        for line in lines
    ]
    return markdown(head, rows)


def claims(sets: Mapping[str, Any]) -> str:
    """Single claims."""
    head = ("dataset", "claims (not supported)", "AUROC", "balanced accuracy")
    rows = [
        (name, f"{one['rows']} ({one['positive']})", f"{one['auroc']:.3f}", f"{one['balanced_accuracy']:.3f}")
        for name, one in sets.items()
    ]
    return markdown(head, rows)


def published(ragtruth: Mapping[str, float]) -> str:
    """Figures of other judges, and this one's beside them."""
    head = ("judge", "data", "result", "source")
    ours = f"F1 {100 * ragtruth['f1']:.1f}, AUROC {100 * ragtruth['auroc']:.1f}"
    own = ("lexical", "RAGTruth, half of its sources, cross-validated", ours, "measured here")
    return markdown(head, [own, *PUBLISHED])


def weights(model: Mapping[str, Any]) -> str:
    """The weights of the measures that count."""
    pairs = zip(model["measures"], model["weights"], strict=True)
    ranked = sorted(((weight, name) for name, weight in pairs if weight), reverse=True)
    return ", ".join(f"`{name}` {weight:.2f}" for weight, name in ranked)
