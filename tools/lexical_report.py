"""What was measured of whole responses, as data: by dataset, and over several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lexical_data import DATA_SETS, DIALOGUE, RAGTRUTH, Numbers, Row
from lexical_fit import Table, by_source, left_out, predicted
from lexical_metrics import auroc, auroc_interval, balanced_accuracy, calibration_error, f1

from evalstone.judges.lexical import LexicalJudge

DIGITS = 4
SEEN = tuple(name for name in DATA_SETS if name not in ("summedits", "storysumm"))


def report(columns: Table, dialogues: Mapping[str, Table]) -> dict[str, Any]:
    """Figures by dataset, in grouped cross-validation by source and with the dataset left out, and pooled ones."""
    source, other = by_source(columns), left_out(columns)
    found: dict[str, Any] = {}
    for name in DATA_SETS:
        there = columns.of(name)
        low, high = auroc_interval(source[there], columns.supported[there], columns.groups[there])
        found[name] = {
            **_left_out(other[there], columns.where(there)),
            **_figures(source, columns, name),
            "auroc_interval": [round(low, DIGITS), round(high, DIGITS)],
        }
    without = ~columns.of(DIALOGUE)
    talks = {name: _left_out(predicted(columns, without, one), one) for name, one in dialogues.items()}
    pooled = {
        "ragtruth": _figures(source, columns, *RAGTRUTH),
        "seen": _figures(source, columns, *SEEN),
        "all": _figures(source, columns, *DATA_SETS),
    }
    return {"judge": LexicalJudge().identity, "data_sets": found, "dialogue": talks, "pooled": pooled}


def _left_out(probability: Numbers, rows: Table) -> dict[str, Any]:
    """Figures on a dataset that was not trained on, and how its AUROC differs from that of word overlap."""
    every = [rows.plain_overlaps[:, 0], rows.plain_overlaps[:, 1]]
    overlap = max(every, key=lambda one: auroc(one, rows.supported))
    low, high = auroc_interval(probability, rows.supported, rows.groups, overlap)
    return {
        "rows": len(rows.sets),
        "positive": int((~rows.supported).sum()),
        "sources": len(set(rows.groups.tolist())),
        "left_out": _figures(probability, rows, *set(rows.sets.tolist())),
        "word_overlap_auroc": round(auroc(overlap, rows.supported), DIGITS),
        "difference_interval": [round(low, DIGITS), round(high, DIGITS)],
    }


def ablation(rows: Sequence[Row], whole: dict[str, Any], without: Table) -> list[dict[str, Any]]:
    """AUROC by dataset with the rule for fields that are a yes or a no, as reported, and without it."""
    source, other = by_source(without), left_out(without)
    found: list[dict[str, Any]] = []
    for name in DATA_SETS:
        there, figures = without.of(name), whole["data_sets"][name]
        found.append(
            {
                "rule": "boolean_fields",
                "name": name,
                "responses": sum(row.contradicts_field for row in rows if row.data_set == name),
                "auroc": figures["auroc"],
                "auroc_without": round(auroc(source[there], without.supported[there]), DIGITS),
                "left_out": figures["left_out"]["auroc"],
                "left_out_without": round(auroc(other[there], without.supported[there]), DIGITS),
            }
        )
    return found


def _figures(probability: Numbers, columns: Table, *names: str) -> dict[str, float]:
    """Figures over some datasets, their rows together; in the calibration error each dataset counts the same."""
    there = columns.of(*names)
    kept, supported = probability[there], columns.supported[there]
    weights = np.array([1 / columns.of(name).sum() for name in columns.sets[there]])
    figures = {
        "auroc": auroc(kept, supported),
        "balanced_accuracy": balanced_accuracy(kept, supported),
        "f1": f1(kept, supported),
        "calibration_error": calibration_error(kept, supported, weights),
    }
    return {name: round(value, DIGITS) for name, value in figures.items()}
