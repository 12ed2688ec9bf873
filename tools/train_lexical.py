"""Train the lexical judge: writes its model, what was measured of it, and docs/lexical-judge.md.

    python tools/train_lexical.py --data DIR          (`make train-lexical`)

DIR holds the gzipped JSON lines of the grounding data: `group`, `context`, `response`, `label` (1: the response says
something that the context does not support), `query` and `spans` where there are any. The model is the same each time:
no random number is drawn. Takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lexical_card import CARD, card, measured_speed
from lexical_data import DATA_SETS, DIALOGUE, Numbers, Row, counted, dialogues, measured, read, words_of
from lexical_fit import (
    FOLDS,
    Fit,
    Table,
    balanced,
    fit,
    fold_of,
    logistic_fit,
    out_of_fold,
    overlap_curve,
    response_curve,
    table,
)
from lexical_relevance import Pair, curve, passage_pairs, statement_pairs
from lexical_report import ablation, report

from evalstone.judges.lexical.features import NAMES
from evalstone.judges.lexical.model import FORMAT
from evalstone.judges.lexical.tokens import STEMMER

PACKAGE = Path(__file__).parent.parent / "src" / "evalstone" / "judges" / "lexical"
DIGITS = 4


@dataclass(frozen=True)
class Claims:
    """Claims whose label is known: their z by what was fitted on other sources, and where they are from."""

    z: Numbers
    supported: np.ndarray[Any, np.dtype[np.bool_]]
    sets: np.ndarray[Any, np.dtype[np.str_]]
    folds: np.ndarray[Any, np.dtype[np.int64]]
    fields: np.ndarray[Any, np.dtype[np.bool_]]


def claims_of(rows: Sequence[Row], columns: Table) -> Claims:
    """The labeled claims of responses, each with its out-of-fold z."""
    fits = [fit(columns, columns.folds != fold) for fold in range(FOLDS)]
    found = [
        (_z(fits[fold_of(row.group)], values), label, row.data_set, fold_of(row.group), row.fields)
        for row in rows
        for values, label in zip(row.claims, row.claim_labels, strict=False)
    ]
    z, supported, sets, folds, fields = zip(*found, strict=True)
    return Claims(np.array(z), np.array(supported), np.array(sets), np.array(folds), np.array(fields))


def _z(fitted: Fit, values: Sequence[float]) -> float:
    return float(fitted.z(np.array([values]))[0])


def claim_curve(claims: Claims, *, fields: bool) -> tuple[Numbers, float, Numbers]:
    """From z to P(supported) of one claim, supported and other claims of each dataset counting the same; and that
    probability of each claim by a curve on other sources. SummEdits and StorySumm teach nothing here."""
    usable = (claims.fields == fields) & ~np.isin(claims.sets, ("summedits", "storysumm"))

    def fitted(within: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[Numbers, float]:
        weights = balanced(claims.sets, claims.supported, within)
        return logistic_fit(claims.z[:, None], claims.supported, weights, ridge=0.0005, signs=[True])

    found = np.zeros(len(claims.z))
    for fold in range(FOLDS):
        slopes, offset = fitted(usable & (claims.folds != fold))
        there = (claims.fields == fields) & (claims.folds == fold)
        found[there] = 1 / (1 + np.exp(-(claims.z[there] * slopes[0] + offset)))
    return *fitted(usable), found


def rounded(value: float) -> float:
    """A number as it is written: the same whatever the last bits of a machine's arithmetic are."""
    return round(float(value), DIGITS) + 0.0


def curve_data(slopes: Numbers, offset: float) -> dict[str, Any]:
    """A curve as the model file has it."""
    return {"weights": [rounded(slope) for slope in slopes], "offset": rounded(offset)}


def written(path: Path, data: Mapping[str, Any]) -> None:
    """Write data as gzipped JSON, the same bytes for the same data."""
    text = json.dumps(data, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def fitted_to(rows: Sequence[Row], columns: Table) -> tuple[Fit, dict[str, Any], Claims]:
    """The weights that rows give, the curves of responses and claims as the model file has them, and the claims."""
    every = np.ones(len(rows), dtype=bool)
    claims = claims_of(rows, columns)
    curves = {
        "response": curve_data(*response_curve(columns, every, out_of_fold(columns, every))),
        "overlap": curve_data(*overlap_curve(columns, every)),
        "claim": curve_data(*claim_curve(claims, fields=False)[:2]),
        "field_claim": curve_data(*claim_curve(claims, fields=True)[:2]),
    }
    return fit(columns, every), curves, claims


def train(folder: Path) -> None:
    """Fit, measure and write everything."""
    data = {name: read(folder, name) for name in DATA_SETS}
    documents, counts = counted([row for rows in data.values() for row in rows])
    words = words_of(documents, counts)
    rows = [row for name in DATA_SETS for row in measured(name, data[name], words)]
    columns = table(rows)
    fitted, curves, claims = fitted_to(rows, columns)
    passages, statements = list(passage_pairs(data, words)), list(statement_pairs(data, words))
    passage, statement = curve(passages), curve(statements)
    curves |= {"passage": curve_data(*passage[:2]), "statement": curve_data(*statement[:2])}
    model = {
        "format": FORMAT,
        "measures": list(NAMES),
        "stemmer": STEMMER,
        "weights": [rounded(weight) for weight in fitted.weights],
        "intercept": rounded(fitted.intercept),
        "curves": curves,
        "documents": documents,
        "counts": counts,
    }
    written(PACKAGE / "model.json.gz", model)
    talks = dialogues(data[DIALOGUE], words)
    found = report(columns, {name: table(list(measured(name, one, words))) for name, one in talks.items()})
    without = [row for name in DATA_SETS for row in measured(name, data[name], words, boolean_fields=False)]
    found["ablation"] = ablation(rows, found, table(without))
    by_form = (claim_curve(claims, fields=True)[2], claim_curve(claims, fields=False)[2])
    found["claims"] = claim_report(claims, np.where(claims.fields, *by_form))
    found["passages"] = pair_report(passages, passage[2])
    found["statements"] = pair_report(statements, statement[2])
    found["model"] = hashlib.sha256((PACKAGE / "model.json.gz").read_bytes()).hexdigest()[:16]
    (PACKAGE / "measured.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    CARD.write_text(card(found, model, measured_speed()), encoding="utf-8")


def claim_report(claims: Claims, probability: Numbers) -> dict[str, Any]:
    """How well single claims are classified, by dataset."""
    from lexical_metrics import auroc, balanced_accuracy  # noqa: PLC0415 - beside its only use

    found: dict[str, Any] = {}
    for name in DATA_SETS:
        rows = claims.sets == name
        if 0 < claims.supported[rows].sum() < rows.sum():
            found[name] = {
                "rows": int(rows.sum()),
                "positive": int((~claims.supported[rows]).sum()),
                "auroc": rounded(auroc(probability[rows], claims.supported[rows])),
                "balanced_accuracy": rounded(balanced_accuracy(probability[rows], claims.supported[rows])),
            }
    return found


def pair_report(pairs: Sequence[Pair], probability: Numbers) -> dict[str, Any]:
    """How well texts of a question are distinguished from those of another, by dataset."""
    from lexical_metrics import auroc, calibration_error  # noqa: PLC0415 - beside its only use

    own = np.array([pair.own for pair in pairs])
    sets = np.array([pair.data_set for pair in pairs])
    return {
        name: {
            "rows": int((sets == name).sum()),
            "auroc": rounded(auroc(probability[sets == name], own[sets == name])),
            "calibration_error": rounded(calibration_error(probability[sets == name], own[sets == name])),
        }
        for name in sorted(set(sets.tolist()))
    }


def main() -> int:
    """Train from a folder."""
    parser = argparse.ArgumentParser(description="Train the lexical judge and write its model and model card.")
    parser.add_argument("--data", type=Path, required=True, help="folder with the gzipped JSON lines")
    folder: Path = parser.parse_args().data
    missing = [name for name in DATA_SETS if not (folder / f"{name}.jsonl.gz").is_file()]
    if missing:
        print(f"{folder} has no {', '.join(f'{name}.jsonl.gz' for name in missing)}; the model stays as it is")
        return 2
    train(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
