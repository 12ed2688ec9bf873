"""What was measured of whole responses, as data: by data set, and over several together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lexical_data import DATA_SETS, RAGTRUTH, Numbers, Row
from lexical_fit import Table, by_source, left_out
from lexical_metrics import auroc, auroc_interval, balanced_accuracy, calibration_error, f1

from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.lexical.features import NAMES

DIGITS = 4
SEEN = tuple(name for name in DATA_SETS if name not in ("summedits", "storysumm"))


def report(rows: Sequence[Row], columns: Table) -> dict[str, Any]:
    """Figures by data set, in grouped cross-validation by source and with the data set left out, and pooled ones."""
    groups = np.array([row.group for row in rows])
    source, other = by_source(columns), left_out(columns)
    overlap = columns.measures[:, NAMES.index("anywhere_plain")]
    found: dict[str, Any] = {}
    for name in DATA_SETS:
        there = columns.of(name)
        low, high = auroc_interval(source[there], columns.supported[there], groups[there])
        found[name] = {
            "rows": int(there.sum()),
            "positive": int((~columns.supported[there]).sum()),
            "sources": len(set(groups[there].tolist())),
            **_figures(source, columns, name),
            "auroc_interval": [round(low, DIGITS), round(high, DIGITS)],
            "left_out": _figures(other, columns, name),
            "word_overlap_auroc": round(auroc(overlap[there], columns.supported[there]), DIGITS),
        }
    pooled = {
        "ragtruth": _figures(source, columns, *RAGTRUTH),
        "seen": _figures(source, columns, *SEEN),
        "all": _figures(source, columns, *DATA_SETS),
    }
    return {"judge": LexicalJudge().identity, "data_sets": found, "pooled": pooled}


def ablation(rows: Sequence[Row], whole: dict[str, Any], without: Table) -> list[dict[str, Any]]:
    """AUROC by dataset with the rule for false fields, as reported, and without it."""
    source, other = by_source(without), left_out(without)
    found: list[dict[str, Any]] = []
    for name in DATA_SETS:
        there, figures = without.of(name), whole["data_sets"][name]
        found.append(
            {
                "rule": "false_fields",
                "name": name,
                "responses": sum(row.states_false for row in rows if row.data_set == name),
                "auroc": figures["auroc"],
                "auroc_without": round(auroc(source[there], without.supported[there]), DIGITS),
                "left_out": figures["left_out"]["auroc"],
                "left_out_without": round(auroc(other[there], without.supported[there]), DIGITS),
            }
        )
    return found


def _figures(probability: Numbers, columns: Table, *names: str) -> dict[str, float]:
    """Figures over some data sets, their rows together; in the calibration error each data set counts the same."""
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
