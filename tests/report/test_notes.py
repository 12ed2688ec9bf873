"""Every sentence of a note stands here once; other tests hold results to kinds and values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.front_ends import COMMAND_LINE, MARK, PYTHON
from evalstone._core.json import to_jsonable
from evalstone.errors import DataError
from evalstone.report.notes import NOTES, clause_of, sentence_of, sentences_of
from evalstone.types import Note, note

SOURCES = Path(__file__).parents[2] / "src"


def missing(kind: str, counted: int, undefined: int, **more: str) -> Note:
    values = {"of": "run", "noun": "sample", **more}
    return note(kind, "caution", "s", **values, without_score=3, counted=counted, undefined=undefined)


def lost(**values: Any) -> Note:
    places = {name: values.pop(name, 0) for name in ("retrieval", "generation", "unknown")}
    known: dict[str, Any] = {
        "answers": 60,
        "unscored": 0,
        "low": sum(map(int, places.values())),
        **places,
        "answer": "factual_correctness",
        "passages": "context_recall",
        "low_limit": 0.5,
        "lower_is_better": False,
        "lacking_limit": 0.5,
    }
    return note("losses", "fact", **known | values)


GAIN: dict[str, Any] = {"objective": "accuracy", "gain": (0.12, 0.03, 0.21), "labels": 96}
UNSHOWN: dict[str, Any] = {"gain": (0.05, -0.02, 0.12), "needed": 250}
OF_BRIER: dict[str, Any] = {"objective": "brier", "gain": (0.0, 0.0, 0.0)}
SAID: tuple[tuple[Note, str], ...] = (
    (
        note("interval_uncorrected", scorers=("words",), comparisons=3),
        "The interval of words excludes 0, but is not corrected: p is, for 3 comparisons, and decides.",
    ),
    (
        note("nothing_detectable", scorers=("r", "s"), why="missing"),
        "No minimum detectable difference of r, s: scores are missing, and could hide any.",
    ),
    (
        note("not_compared", "caution", scorers=("words",), runs=("A", "B")),
        "A and B: no sample has a score of words in both runs: not compared.",
    ),
    (
        note("imported", tool="promptfoo 0.123.1", file="results.json"),
        "The scores are those of promptfoo 0.123.1, imported from results.json.",
    ),
    (note("printed_equal", tool="t", numbers=1), "1 number that t printed is the same here."),
    (note("printed_equal", tool="t", numbers=12), "12 numbers that t printed are the same here."),
    (
        note("printed_with_failed", "caution", "s", tool="t", failed=1, what="failed"),
        "s: t counts 1 result that failed as a score.",
    ),
    (
        note("printed_with_failed", "caution", "s", tool="t", failed=2, what="mean"),
        "s: the mean of t includes 2 results that failed.",
    ),
    (
        note("printed_differs", "warning", "s", tool="t", what="sum", printed=3.5, ours=3.25),
        "s: t printed a sum of scores of 3.5, and here it is 3.25.",
    ),
    (
        note("printed_differs", "warning", "s", tool="t", what="mean", printed=0.5, ours=None),
        "s: t printed a mean of 0.5, and here there is none.",
    ),
    (
        note("scale_assumed", "caution", "words", tool="t", highest=80.0, scale=100.0),
        "words: t doesn't say which scores are possible; the highest is 80, so the scale is taken to be 100; if it "
        'is another, such as 80, import with scales={"words": 80}.',
    ),
    (
        note("scale_assumed", "caution", "words", tool="t", highest=99.5, scale=100.0),
        "words: t doesn't say which scores are possible; the highest is 99.5, so the scale is taken to be 100; if it "
        'is another, such as 200, import with scales={"words": 200}.',
    ),
    (
        note("metric_unknown", "caution", tool="t", metric="no-such", place="France"),
        "The metric no-such of t isn't known here (first in France); its scores are read as they are.",
    ),
    (
        note("direction_unsure", "caution", "s", tool="t"),
        "s: t doesn't say whether low or high scores are good, and its verdicts don't show it for every score; high "
        "ones are taken to be good.",
    ),
    (
        note("more_rows", "warning", tool="t"),
        "The file is one page of t and says that more follow: the numbers cover only this page.",
    ),
    (
        note("without_verdict", "caution", "s", tool="t", scores=2),
        "s: t leaves 2 scores without a verdict out of its own numbers, so they aren't compared; the mean "
        "includes them.",
    ),
    (
        note("eval_unfinished", "caution", tool="t", status="error", error="no key"),
        "The evaluation in t did not finish (status: error): no key; the numbers cover only the samples in its log.",
    ),
    (
        note("eval_unfinished", "caution", tool="t", status="started", error=""),
        "The evaluation in t did not finish (status: started); the numbers cover only the samples in its log.",
    ),
    (
        note("entries_replaced", tool="t", entries=2),
        "2 entries of the archive are there more than once; as in t, the last one counts.",
    ),
    (
        note("samples_limited", tool="t", samples=1, what="message, token"),
        "1 answer ended at a limit in t (message, token).",
    ),
    (
        note("samples_unlogged", "caution", tool="t"),
        "T logged no samples: each score is that of all trials of a sample, and no texts are known.",
    ),
    (
        note("printed_by_case", "fact", "s", tool="t"),
        "s: t averages the trials of each sample before the samples; here all trials count alike, so the means differ "
        "where trials have no score.",
    ),
    (
        note("metric_of_all", "caution", tool="t", what="open: bleu"),
        "T calculates these over all samples at once, so that they have no scores here: open: bleu.",
    ),
    (
        note("results_of_means", "caution", tool="t", files=2, what="a.json and b.json"),
        "2 files of t with means only are left out, since samples are needed: a.json and b.json.",
    ),
    (
        note("systems_left_out", "caution", systems=2, what="a and b"),
        "2 systems without scores are left out: a and b.",
    ),
    (
        note("parts_left_out", "caution", parts=1, what="math (0.3.9): it has no results"),
        "1 part of the folder is left out: math (0.3.9): it has no results.",
    ),
    (
        note("printed_uncompared", tool="t", what="s: mine"),
        "T printed numbers that aren't compared with those here: s: mine.",
    ),
    (
        note("scored_without_answer", "caution", tool="t", rows=2),
        "The system gave no answer in 2 rows that t scored all the same; these scores count, as they do there.",
    ),
    (
        note("cases_repeated", cases=1, rows=2),
        "1 case is in the file more than once, unlike most: the 2 rows are samples, "
        "in a group for each case, and no trials.",
    ),
    (
        note("trials_absent", "caution", absent=1, trials=3),
        "Some samples have fewer than 3 trials: 1 trial is not in the file.",
    ),
    (
        note("alignment_better", **GAIN),
        "The aligned judge is better: a gain in accuracy of +0.120 (95% CI +0.030 to +0.210) on 96 labels that had no "
        "part in the choice.",
    ),
    (
        note("alignment_uninformative", "warning", **GAIN, measured=(0.51, 0.45, 0.57)),
        "The aligned judge is no use: it shows a gain in accuracy of +0.120 (95% CI +0.030 to +0.210) only because it "
        "comes closer to the more frequent label. It isn't shown to tell yes from no: its balanced accuracy is 0.510 "
        "(95% CI 0.450 to 0.570; 0.5 is chance).",
    ),
    (
        note("alignment_not_shown", "caution", **GAIN | UNSHOWN),
        "No gain is shown: a gain in accuracy of +0.050 (95% CI -0.020 to +0.120) on 96 labels that had no part in the "
        "choice. About 250 labels in all would show such a gain.",
    ),
    (
        note("alignment_default", "caution", **GAIN | OF_BRIER),
        "Nothing that was tried is better than the judge as it is: choosing from these labels gives a gain in Brier "
        "score of 0.000 (95% CI 0.000 to 0.000) on 96 labels that had no part in the choice.",
    ),
    (
        note("judge_tells_nothing_apart", "warning", of="AUROC", measured=(0.404, 0.245, 0.586)),
        "As it is, this judge isn't shown to tell yes from no: its AUROC is 0.404 (95% CI 0.245 to 0.586; 0.5 is "
        "chance).",
    ),
    (
        note("alignment_ended_early", "warning", reason="the budget is spent"),
        "Nothing was chosen, because it ended early: the budget is spent.",
    ),
    (
        note("few_examples", "caution", examples=1),
        "Only 1 labeled sample can be shown as examples; more examples were not tried.",
    ),
    (
        note("several_labels", samples=3, of=9),
        "3 of 9 samples are judged with several labels, so that its own label doesn't say which of them is right; they "
        "are not shown as examples.",
    ),
    (
        note("labels_of_strata", "caution"),
        "The labels were drawn by strata of the scores; the gain is that on these labels, not on all samples of the "
        "run.",
    ),
    (
        note("no_examples_read"),
        "This judge reads no worked examples, so none were tried.",
    ),
    (
        note("examples_not_counted", "caution", samples=2),
        "2 labeled samples not counted: the judge is shown them as examples.",
    ),
    (
        note("labels_used_to_align", "warning", samples=80, of=100),
        "The judge was aligned with 80 of these 100 labels: the figures are optimistic; calibrate it on others.",
    ),
    (
        note("corrected_by_aligned_labels", "warning", samples=40, of=41),
        "The judge was aligned with 40 of the 41 labels of this calibration, on which it errs less than on others, so "
        "the correction is too small; calibrate it on others.",
    ),
    (
        note("labels_chose_threshold", "warning", threshold=0.705),
        "These labels chose the cascade's threshold, 0.705: the figures are optimistic; calibrate the cascade that has "
        "it on others.",
    ),
    (
        note("corrected_by_choosing_labels", "warning", threshold=0.705),
        "The labels of this calibration chose the cascade's threshold, 0.705, so it may err less on them than on "
        "others, and the correction may be too small; calibrate the cascade that has it on others.",
    ),
    (
        note("judges_differ", "warning", judges=("a@1", "b@1")),
        "The judges differ (a@1, b@1).",
    ),
    (
        note("scorer_differs", "warning", name="s", signatures=("s@1", "s@2")),
        "The scorer s differs (s@1, s@2).",
    ),
    (
        note("reasoning_differs", "warning"),
        "Only one of them scores the reasoning in front of outputs (keep_reasoning).",
    ),
    (
        note("versions_differ", "warning", versions=("v1", "v2")),
        "The dataset versions differ (v1, v2) and the texts are not available.",
    ),
    (
        note("cases_differ", "warning", different=1, samples=4),
        "1 of 4 samples with a different input, reference or instructions.",
    ),
    (
        note("expectations_differ", "warning", different=1, samples=1, fields=("topics",)),
        "1 of 1 sample with a different expected trajectory, reference of a turn or metadata.topics.",
    ),
    (
        note("samples_differ", "warning", only=(1, 0), examples=("s4", ""), by_question=True),
        "The samples differ: 1 only in the first run (such as 's4'), 0 only in the second, by what was "
        "asked, because they have no IDs.",
    ),
    (
        note("answers_differ", runs=("A", "B"), different=3, samples=4),
        "A and B: 3 of 4 samples with a different output, context or conversation.",
    ),
    (
        note("written_in_one_run", runs=("A", "B"), samples=3, written=(3, 0), fields=("rubrics",)),
        "A and B: the judge wrote metadata.rubrics of 3 of 3 samples in the first run and of 0 in the second; the "
        "others have it in the data, or none at all.",
    ),
    (
        note("written_unpaired", "caution", runs=("A", "B"), name="rubric"),
        "A and B: rubric: the judge wrote what answers of one run are held against, and the other run has it in the "
        "data; whether both are alike isn't checked, because samples aren't compared one by one.",
    ),
    (
        note("written_during_run", "warning", name="rubric"),
        "Rubric: the judge writes what answers are held against during the run, so whether it is the baseline's is "
        "known only at the end; gate the finished run, or run on data that have it.",
    ),
    (
        note("same_run", "warning", runs=("A", "B")),
        "A and B: they are the same run.",
    ),
    (
        note("several_trials", trials=(2, 2)),
        "They have 2 trials of each sample; a sample's score is the mean of its trials.",
    ),
    (
        note("several_trials", trials=(2, 3)),
        "They have 2 and 3 trials of each sample; a sample's score is the mean of its trials.",
    ),
    (
        note("other_run_stopped", "warning", run="first", reason="out of money"),
        "The first run stopped early (out of money).",
    ),
    (
        note("scorers_of_one_run", scorers=("r", "s")),
        "Only in one of the runs: r, s.",
    ),
    (
        note("stopped_by_gate", "warning", run="first", paired=True),
        "Its gate stopped the first run: the difference is biased away from the threshold; its test and "
        "limits bet on the scores in the order in which they were drawn, which is valid at any stopping "
        "time.",
    ),
    (
        note("stopped_by_gate", "warning", run="second", paired=False),
        "Its gate stopped the second run: its mean is biased away from the threshold, and intervals under-cover.",
    ),
    (
        note("could_be_paired", "caution", samples=1),
        "1 sample in both runs: a paired comparison, without unpaired=True, usually has more power.",
    ),
    (
        note("paired_by_question", "warning", because="no_ids"),
        "These samples have no IDs, so samples are paired by what was asked.",
    ),
    (
        note("paired_by_question", "warning", because="traces"),
        "These samples are from traces, each with an ID of its own, so samples are paired by what was asked.",
    ),
    (
        note("paired_in_order", "warning", samples=1),
        "1 sample asked the same as another one and is paired by its order, which must be the same in both runs.",
    ),
    (
        note("paired_in_order", "warning", samples=2),
        "2 samples asked the same as another one and are paired by their order, which must be the same in both runs.",
    ),
    (
        note("slices_too_small", slices=1, field="topic", least=5),
        "1 slice of topic with fewer than 5 samples or groups is left out, being too small to be tested.",
    ),
    (
        note("slices_too_small", slices=2, field="topic", least=5),
        "2 slices of topic with fewer than 5 samples or groups are left out, being too small to be tested.",
    ),
    (
        note("not_ranked"),
        "The runs are not ranked, because a gate stopped one of them.",
    ),
    (
        note("run_ended_early", "warning", reason="out of money"),
        "The run ended early: out of money. The numbers cover only the samples that were scored.",
    ),
    (
        note("results_failed", "warning", results=2),
        "2 results failed. No mean includes them; the reasons are below.",
    ),
    (
        note("of_target", "warning", text="its answers were replayed"),
        "Its answers were replayed.",
    ),
    (
        note("outputs_replaced", samples=1),
        "The target's answers replace the output that the data have for 1 sample.",
    ),
    (
        note("outputs_replaced", samples=2),
        "The target's answers replace the outputs that the data have for 2 samples.",
    ),
    (
        note("of_judge", "warning", text="it has not seen poems"),
        "It has not seen poems.",
    ),
    (
        note("not_in_english", "warning", samples=1, of=1),
        "Not in English: at least 1 of 1 sample; the lexical judge was only measured on English, and misses what other "
        "languages support: use a model.",
    ),
    (
        note("not_in_english", "warning", samples=2, of=3),
        "Not in English: at least 2 of 3 samples; the lexical judge was only measured on English, and misses what "
        "other languages support: use a model.",
    ),
    (
        note("same_family", "caution", judge="openai/gpt-5.1", family="GPT", samples=1, of=1),
        "The judge openai/gpt-5.1 and the model that answered 1 of 1 sample are of one family (GPT): judges may favor "
        "answers like their own; compare it with people (evalstone calibrate), or with a judge of another family.",
    ),
    (
        note("same_family_labeled", "caution", samples=2, of=3),
        "The model that answered 2 of 3 labeled samples is of the judge's own family of models: judges may favor "
        'answers like their own; slice_by="model" shows whether it agrees with people there as well as elsewhere.',
    ),
    (
        note("setting_refused", "warning", setting="logprobs", answers=1),
        "The endpoint refused the setting logprobs; 1 answer was given without it.",
    ),
    (
        note("escalates_nearly_all", "warning", judge="cascade(a, b)", share=0.97, questions=40),
        "The judge cascade(a, b) escalated 97% of 40 questions, so its first judge saves next to "
        "nothing; lower the threshold, or let labels choose it (fit_cascade).",
    ),
    (
        note("reasoning_left_out", "warning", outputs=None),
        "Outputs begin with a model's reasoning, such as <think>…</think>; it is not scored "
        "(keep_reasoning=True scores it).",
    ),
    (
        note("reasoning_left_out", "warning", outputs=2),
        "2 outputs begin with a model's reasoning, such as <think>…</think>; it is not scored "
        "(keep_reasoning=True scores it).",
    ),
    (
        note("reasoning_kept", "warning", outputs=1),
        "An output begins with a model's reasoning, such as <think>…</think>; it is scored as a part of the answer.",
    ),
    (
        note("items_dropped", "warning", times=1),
        "The judges listed 1 item not found in the judged text, even after a correction. The scores "
        "leave out what records.jsonl names as dropped.",
    ),
    (
        note("citations_doubtful", "warning", times=2),
        "In 2 results, the judge cites a passage that has no word in common with a claim, although "
        "another passage has: see `citations` in the judge calls of the records. No verdict was changed.",
    ),
    (
        note("secrets_repeated", "warning", times=1),
        "The endpoint sent back a secret in 1 response; it is shown and stored as ***.",
    ),
    (
        lost(retrieval=14, generation=9),
        "Of 23 answers with factual_correctness below 0.5, 14 lack the passage (context_recall below 0.5): retrieval; "
        "9 had it: generation.",
    ),
    (
        lost(retrieval=1, unknown=2, unscored=4, lacking_limit=2.5, passages="recall_at_k"),
        "Of 3 answers with factual_correctness below 0.5, 1 lacks the passage (recall_at_k below 2.5): retrieval; "
        "0 had it: generation; 2 without recall_at_k: unknown. Not counted: 4 of 60 answers without "
        "factual_correctness.",
    ),
    (
        lost(generation=1, answer="hallucination", low_limit=5.0, lower_is_better=True),
        "Of 1 answer with hallucination above 5, 0 lack the passage (context_recall below 0.5): retrieval; 1 had it: "
        "generation.",
    ),
    (
        note("scores_missing", "caution", "s", missing=1, of=4, noun="sample", bounds=(0.5, 0.75), scale=1.0),
        "s: 1 of 4 samples has no score; with it, the mean would be between 0.500 and 0.750.",
    ),
    (
        note("scores_missing", "caution", "s", missing=2, of=4, noun="trial", bounds=(5.0, 7.5), scale=10.0),
        "s: 2 of 4 trials have no score; with them, the mean would be between 5.00 and 7.50.",
    ),
    (
        note("no_values", "caution"),
        "No sample has a score.",
    ),
    (
        note("single_unit", "caution", "s", noun="cluster"),
        "s: a single cluster.",
    ),
    (
        note("single_unit_run", "caution"),
        "One of the runs has a single sample or cluster.",
    ),
    (
        note("small_sample", "caution", "s", n=29),
        "s: small sample (n = 29): rare failures may be missing.",
    ),
    (
        note("few_clusters", "caution", "s", clusters=4),
        "s: only 4 clusters: the interval is approximate.",
    ),
    (
        note("heavy_units", "caution", "s", heaviest=2, of=1230, noun="cluster"),
        "s: 2 of 1,230 clusters carry half of the weight: no interval can allow for heavier ones that the data lack.",
    ),
    (
        note("heavy_units", "caution", "s", heaviest=1, of=20, noun="sample"),
        "s: 1 of 20 samples carries half of the weight: no interval can allow for heavier ones that the data lack.",
    ),
    (
        note("all_equal", "caution", "s", n=5),
        "s: all 5 values are equal, so there is no interval.",
    ),
    (
        note("equal_clusters", "caution", "s", clusters=5),
        "s: all clusters have the same sum: clusters ignored.",
    ),
    (
        note("few_changed", "caution", "s", changed=0, pairs=40),
        "s: none of 40 pairs changed: too few for a significant difference.",
    ),
    (
        note("few_changed", "caution", "s", changed=4, pairs=40),
        "s: only 4 of 40 pairs changed: too few for a significant difference.",
    ),
    (
        note("stopped_sequence", "caution", "s"),
        "s: the gate stopped the run, so the interval is a confidence sequence, which is valid at any stopping time; "
        "the mean is biased away from the threshold.",
    ),
    (
        note("stopped_comparison", "caution"),
        "A gate stopped one of the runs: p and the interval are two-sided and valid at any stopping time, so they may "
        "leave open what the gate decided.",
    ),
    (
        note("variance_below_zero", "caution", "s", components=("samples", "trials")),
        "s: the variance of samples and trials was estimated below 0.",
    ),
    (
        note("few_pilot_changes", "caution", "s", changed=1 / 80, difference=0.05),
        "s: in the pilot, 1.2% of the samples changed, which can't add up to a difference of 0.05: the plan is the "
        "upper end of the range, with as many further changes as that needs.",
    ),
    (
        note("constant_pilot", "caution", "s"),
        "s: the pilot's values don't vary: plan for the upper end of the range.",
    ),
    (
        note("small_pilot", "caution", "s", n=3),
        "s: small pilot (n = 3): its standard deviation is uncertain.",
    ),
    (
        note("missing_in_pilot", "caution", "s", missing=3, of=40, hidden=0.08108),
        "s: 3 of the pilot's 40 samples lack a score: the plan expects as many of them, and that the comparison counts "
        "them as any score, which can hide a difference of up to 0.081 from any number of samples.",
    ),
    (
        note("missing_in_pilot", "caution", "s", missing=1, of=4, hidden=0.5),
        "s: 1 of the pilot's 4 samples lacks a score: the plan expects as many of them, and that the comparison counts "
        "them as any score, which can hide a difference of up to 0.5 from any number of samples.",
    ),
    (
        note("no_usable_answer", "warning", "s", unanswered=1, samples=2),
        "s: no sample has a score; the judge gave no usable answer on 1 of 2 samples.",
    ),
    (
        note("equal_scores", "warning", "s", scores=2, value=0.0, scale=1.0),
        "s: all 2 scores of the judge are 0.000: these samples are equally good or bad, or it can't tell them apart.",
    ),
    (
        note("equal_verdicts", "warning", "s", verdicts=1300, verdict="supported"),
        "s: all 1,300 verdicts of the judge are 'supported'.",
    ),
    (
        note("needs_both_labels", "warning"),
        "It needs labels of both kinds, yes and no.",
    ),
    (
        note("not_above_chance", "warning", auroc=(0.5, 0.312, 0.688)),
        "Its judge is not shown to be better than chance (AUROC 0.500, 95% CI 0.312 to 0.688).",
    ),
    (
        note("calibration_not_used", "warning", auroc=(0.5, 0.312, 0.688)),
        "Audits and reports don't use this calibration: its judge is not shown to be better than chance (AUROC 0.500, "
        "95% CI 0.312 to 0.688).",
    ),
    (
        note("one_verdict", "warning", verdict="yes", threshold=0.5),
        "All verdicts at 0.5 (default) are yes.",
    ),
    (
        note("most_labels_unscored", "warning"),
        "Most labeled samples have no score.",
    ),
    (
        note("annotators_split_everywhere", "warning"),
        "Annotators are evenly split on every sample: no verdict can be checked and no threshold was learned.",
    ),
    (
        note("labels_all_alike", "warning", label="no"),
        "Every label says no: the other verdict can't be checked and no threshold was learned.",
    ),
    (
        note("few_labels", "caution", yes=3, no=1),
        "Few labels (3 yes, 1 no): rely on the intervals, not the estimates.",
    ),
    (
        note("no_judge_usable", "warning", judges=2),
        "None of these 2 judges is usable on these labels, not even to rank systems.",
    ),
    (
        note("no_judge_told", "caution", judges=3),
        "The labels don't tell yet whether one of these 3 judges is usable; label more samples.",
    ),
    (
        note("best_judge", judge="a", use="samples", worse=(), unknown=(), margin=0.05),
        "Use a, which is usable for single samples.",
    ),
    (
        note("best_judge", judge="a", use="systems", worse=("b", "c"), unknown=("d",), margin=0.05),
        "Use a, which is usable to rank systems: it is more accurate than b and c, which cost less; the labels don't "
        "tell whether d, which costs less, lacks less than 0.05 of its accuracy.",
    ),
    (
        note("cheaper_judge", judge="b", best="a", cost=0.04, best_cost=12.5, difference=(0.01, -0.02, 0.04)),
        "Use b: it costs $0.04 for 1,000 samples instead of $12.5, and is at most 0.040 less accurate than a "
        "(difference 0.010, 95% CI -0.020 to +0.040).",
    ),
    (
        note(
            "judge_usable",
            single="yes",
            threshold=0.5,
            most=0.2,
            bad=(0.04, 0.01, 0.11, 2, 53),
            good=(0.05, 0.01, 0.14, 3, 60),
        ),
        "Usable for single samples and to rank systems: misses 4% of bad answers (95% CI 1% to 11%; 2 of 53) and flags "
        "5% of good answers (95% CI 1% to 14%; 3 of 60) at the threshold 0.5.",
    ),
    (
        note(
            "judge_usable",
            "caution",
            single="no",
            threshold=0.5,
            most=0.2,
            bad=(0.43, 0.3, 0.57, 23, 53),
            good=(0.05, 0.01, 0.14, 3, 60),
        ),
        "Usable to rank systems, not for single samples: misses 43% of bad answers (95% CI 30% to 57%; 23 of 53) and "
        "flags 5% of good answers (95% CI 1% to 14%; 3 of 60) at the threshold 0.5.",
    ),
    (
        note(
            "judge_usable",
            "caution",
            single="undecided",
            threshold=3.5,
            most=0.2,
            bad=(0.2, 0.1, 0.3, 2, 10),
            good=(0.05, 0.01, 0.14, 3, 60),
        ),
        "Usable to rank systems; whether for single samples, these labels don't tell: misses 20% of bad answers "
        "(95% CI "
        "10% to 30%; 2 of 10) and flags 5% of good answers (95% CI 1% to 14%; 3 of 60) at the threshold 3.5.",
    ),
    (
        note("judge_not_usable", "warning", auroc=(0.58, 0.5, 0.65), least=0.7),
        "Not usable, not even to rank systems: it rates a good answer better than a bad one in 58% of pairs (95% "
        "CI 50% "
        "to 65%; 50% is chance), and that takes 70%.",
    ),
    (
        note("judge_reversed", "warning", auroc=(0.2, 0.1, 0.3), least=0.7),
        "Not usable, or yes and no are swapped: it rates a good answer better than a bad one in 20% of pairs (95% "
        "CI 10% "
        "to 30%; 50% is chance).",
    ),
    (
        note("judge_undecided", "caution", single="undecided", auroc=(0.75, 0.62, 0.85), least=0.7),
        "These labels don't tell whether it is usable to rank systems: it rates a good answer better than a bad one in "
        "75% of pairs (95% CI 62% to 85%; 50% is chance), and that takes 70%.",
    ),
    (
        note("judge_undecided", "caution", single="no", auroc=(0.75, 0.62, 0.85), least=0.7),
        "Not usable for single samples; these labels don't tell whether it is usable to rank systems: it rates a good "
        "answer better than a bad one in 75% of pairs (95% CI 62% to 85%; 50% is chance), and that takes 70%.",
    ),
    (
        note("judge_pairs", auroc=(0.83, 0.76, 0.9)),
        "It rates a good answer better than a bad one in 83% of pairs (95% CI 76% to 90%; 50% is chance).",
    ),
    (
        note(
            "judge_errors",
            "fact",
            threshold=0.5,
            bad=(0.43, 0.1, 0.9, 1, 2),
            good=(0.0, 0.0, 0.3, 0, 10),
            weighted=True,
        ),
        "At the threshold 0.5, it misses 43% of bad answers (95% CI 10% to 90%; 1 of 2 labeled) and flags 0% of good "
        "answers (95% CI 0% to 30%; 0 of 10 labeled).",
    ),
    (
        note("judge_errors", threshold=0.5, bad=(0.5, 0.1, 0.9, 1, 2), good=(0.0, 0.0, 0.3, 0, 10)),
        "At the threshold 0.5, it misses 50% of bad answers (95% CI 10% to 90%; 1 of 2) and flags 0% of good "
        "answers (95% "
        "CI 0% to 30%; 0 of 10).",
    ),
    (
        note("judge_labels_to_decide", more=120, labels=60, auroc=0.75, least=0.7),
        "About 120 more labels like these would tell, if the share stays at 75%.",
    ),
    (
        note("judge_labels_to_decide", more=None, labels=60, auroc=0.71, least=0.7),
        "71% is so close to 70% that even many times as many labels may not tell.",
    ),
    (
        note("judge_more_labels", decides=True, of="bad", more=60, drawn=110, share=0.12, low=0.06, high=0.2),
        "About 60 more labels of bad answers (about 110 if drawn like these) would tell, if the share stays at 12%.",
    ),
    (
        note("judge_more_labels", decides=True, of="", more=110, drawn=110, share=0.12, low=0.06, high=0.2),
        "About 110 more labels like these would tell, if both shares stay.",
    ),
    (
        note("judge_more_labels", decides=False, of="good", more=1, drawn=1, share=0.43, low=0.33, high=0.53),
        "About 1 more label of good answers would narrow the 43% to about 33% to 53%.",
    ),
    (
        note("judge_better_threshold", threshold=0.8, expected=(0.2, 0.25)),
        "A threshold of 0.8 is better: on new samples, expect it to miss 20% of bad answers and to flag 25% of "
        "good ones.",
    ),
    (
        note("judge_unknown", "warning", why="unscored", missing=30, labels=40),
        "Nothing can be said: 30 of 40 labeled samples have no score.",
    ),
    (
        note("judge_unknown", "warning", why="few", good=36, bad=4, least=6),
        "Nothing can be said yet: 36 good and 4 bad answers are labeled, and 6 of each are needed.",
    ),
    (
        note("judge_unknown", "warning", why="one_kind", good=20, bad=0, least=6),
        "Nothing can be said yet: all 20 labeled answers are good; label at least 6 bad ones.",
    ),
    (
        note("judge_unknown", "warning", why="one_kind", good=0, bad=0, least=6),
        "Nothing can be said yet: 0 good and 0 bad answers are labeled, and 6 of each are needed.",
    ),
    (
        note("no_discrimination", "warning"),
        "The judge scored every sample the same: no discrimination.",
    ),
    (
        note("uninformative_accuracy", "warning", threshold=0.5, accuracy=(0.75, 0.52, 0.907), rate=0.75),
        "The accuracy at 0.5 (default), 0.750 (95% CI 0.520 to 0.907), is not above the no-information rate, 0.750.",
    ),
    (
        note("uninformative_accuracy", "warning", threshold=0.5, accuracy=(0.8, 0.52, 0.907), rate=0.75),
        "The accuracy at 0.5 (default), 0.800 (95% CI 0.520 to 0.907), is not shown to be above the no-information "
        "rate, 0.750.",
    ),
    (
        note("ranks_opposite", "warning", name="bias", lower_is_better=True),
        "Scores rank opposite to the labels. Yes is what a full score of bias means, where lower is better: were "
        "labels that mean the opposite read as yes?",
    ),
    (
        note("annotators_split", "caution", samples=1),
        "1 sample with evenly split annotators left out of the verdicts.",
    ),
    (
        note("labels_not_at_random", "caution", by_score=40, by_hand=0, shared=0, of=100),
        "40 of 100 labels are of samples chosen by the judge's score: they are unlike the others, which biases the "
        "figures; a file of labels with the columns stratum, stratum_size and run_size lets them be weighted.",
    ),
    (
        note("labels_not_at_random", "caution", by_score=40, by_hand=1, shared=0, of=100),
        "41 of 100 labels are of samples chosen by the judge's score (40) or by hand (1): "
        "they are unlike the others, which biases the figures; choose samples to label at random.",
    ),
    (
        note("labels_not_at_random", "caution", by_score=4, by_hand=1, shared=2, of=100),
        "7 of 100 labels are of samples chosen by the judge's score (4), by hand (1) or for another run (2): "
        "they are unlike the others, which biases the figures; choose samples to label at random.",
    ),
    (
        note("labels_not_at_random", "caution", by_score=0, by_hand=0, shared=2, of=2),
        "2 of 2 labels are of samples chosen for another run: they are unlike the others, which biases the figures; "
        "choose samples to label at random.",
    ),
    (
        note("labels_weighted", "fact", labels=100, samples=2500),
        "Labels drawn by strata of scores: verdicts at the default threshold, mean differences, the no-information "
        "rate and AUROC are estimates for 2,500 samples, with each label weighted by its stratum; other figures and "
        "the counts describe the 100 labeled samples.",
    ),
    (
        note("rows_without_label", "fact", rows=2, of=100),
        "2 of 100 rows are without a label (empty, null, NaN or a word such as n/a) and not judged.",
    ),
    (
        note("labels_clustered", "fact", labels=100, clusters=40),
        "100 labels in 40 clusters of samples with the same group or the same texts: intervals are those of clusters.",
    ),
    (
        note("strata_without_labels", "warning", samples=500, of=3000),
        "500 of 3,000 samples are in strata of scores without labels: the figures say nothing about them.",
    ),
    (
        note("judge_unknown", "warning", why="strata", samples=500, of=3000),
        "Nothing can be said of the run yet: 500 of 3,000 samples are in strata of scores without labels.",
    ),
    (
        note("labeled_without_score", "caution", skipped=1, failed=2),
        "3 labeled samples without a score: 1 skipped, 2 failed.",
    ),
    (
        note("calibration_ended_early", "warning", reason="out of money"),
        "The run ended early (out of money); the calibration was not saved.",
    ),
    (
        note("audit_ended_early", "warning", reason="out of money"),
        "The audit ended early: out of money.",
    ),
    (
        note("audit_failures", "warning", results=1),
        "1 result failed.",
    ),
    (
        note("not_applicable", perturbations=("reversed", "padded")),
        "Not applicable to any sample: reversed, padded.",
    ),
    (
        note("follows_instructions", "warning", "s", perturbations=("injection",)),
        "s: the judge follows instructions in the text that it judges.",
    ),
    (
        note("affected_by", "warning", "s", why="the length of the answer", perturbations=("duplicated", "verbosity")),
        "s: affected by the length of the answer (duplicated, verbosity).",
    ),
    (
        note("affected_by_instruction", "warning", "s", perturbations=("injection",)),
        "s: affected by an instruction to the judge, which it seems to treat as part of the text (injection).",
    ),
    (
        note("unaffected", "fact", "s"),
        "s: no perturbation affected it by more than chance.",
    ),
    (
        note("too_few_changed", "caution", "s", perturbations=("reversed",), of=1, needed=7),
        "s: too few samples to find any effect (at least 7 changed samples are needed).",
    ),
    (
        note("too_few_changed", "caution", "s", perturbations=("reversed", "padded"), of=3, needed=7),
        "s: too few samples to find an effect of reversed, padded (at least 7 changed samples are needed).",
    ),
    (
        note("lost_to_perturbations", "caution", "s", scores=1),
        "s: 1 score lost to a perturbation: skipped or failed once perturbed.",
    ),
    (
        note("one_verdict_unchanged", "warning", "s", verdict="yes"),
        "s: all verdicts on unchanged samples are yes.",
    ),
    (
        note("indistinguishable", "warning", "s", verdict="no"),
        "s: all verdicts are no: the judge is indistinguishable from one that always says no.",
    ),
    (
        note("too_few_labels", "caution", "s", labels=1, least=30),
        "s: only 1 label: too few for an estimate; label at least 30 samples.",
    ),
    (
        note("few_label_groups", "caution"),
        "Labels in too few groups to correct the mean.",
    ),
    (
        note("same_labels", "caution", "s", labels=20, label=1.0),
        "s: all 20 labels are 1: whether the judge agrees with people can't be told from labels of one kind; label "
        "more samples.",
    ),
    (
        note("strata_merged", "caution", "s", strata=10),
        "s: strata with fewer than two labels were merged: 10.",
    ),
    (
        note("one_sided_labels", "caution", "s"),
        "s: the labels need both passes and fails.",
    ),
    (
        note("few_class_labels", "caution", "s", labels=19),
        "s: only 19 labels in one class: the interval is approximate.",
    ),
    (
        note("judge_by_chance", "caution", "s", sum=(1.0, 0.781, 1.219), confidence=0.95),
        "s: the judge is not significantly better than chance on the labeled samples, so its pass rate can't be "
        "corrected: sensitivity + specificity is 1.00 (95% CI 0.78 to 1.22), and 1 at chance.",
    ),
    (
        note(
            "unlike_the_labels",
            "caution",
            "s",
            passed=(1.0, 0.988, 1.0),
            sensitivity=(0.8, 0.738, 0.851),
            specificity=(0.9, 0.851, 0.936),
            confidence=0.9,
        ),
        "s: the judge passed 1.00 (90% CI 0.99 to 1.00) of the run, which no rate explains with its sensitivity of "
        "0.80 (90% CI 0.74 to 0.85) and specificity of 0.90 (90% CI 0.85 to 0.94): the run's samples must be unlike "
        "the labeled ones.",
    ),
    (
        note("clustered", "fact", "s", clusters=5, trials=1),
        "s: clustered samples: cluster-robust interval (5 clusters).",
    ),
    (
        note("clustered", "fact", "s", clusters=5, trials=2),
        "s: trials of a sample are not independent: cluster-robust interval (5 clusters).",
    ),
    (
        note("weighted", "fact", "s", samples=20, effective=9.5),
        "s: weighted mean: 20 samples of unequal weight say about as much as 9.5 of equal weight.",
    ),
    (
        note("labels_unscored", "caution", "s", labels=1),
        "s: left out: 1 labeled sample without a score.",
    ),
    (
        note("labels_in_run", "fact", "s", labels=2),
        "s: this run contains 2 labeled samples: labels=… needs fewer assumptions.",
    ),
    (
        note("clusters_ignored", "caution", "s"),
        "s: the samples are clustered, which these intervals don't account for.",
    ),
    (
        note("judged_by_another", "warning", name="s", before=("a",), now=("b", "c")),
        "The judge of s was a in the baseline, and is b and c now.",
    ),
    (
        note("reasoning_mixed", "warning", name="s"),
        "Only some of the scores of s are of outputs with the reasoning in front (keep_reasoning).",
    ),
    (
        note("cycles_not_whole", "caution", covers="0:04:10", cycle="0:01:40"),
        "The baseline covers 0:04:10, which is no whole number of cycles of 0:01:40.",
    ),
    (
        note("times_taken_as_alike", "caution"),
        "The alarm takes scores to be alike at all times: if they vary with the hour or the weekday, "
        "watch whole days or weeks (cycle).",
    ),
    (
        note("no_baseline", "caution", name="evals/baseline"),
        "There is no baseline evals/baseline, so nothing is compared.",
    ),
    (
        note("baseline_broken_off", "warning", reason="interrupted"),
        "The baseline was broken off (interrupted), so that it shows no difference.",
    ),
    (
        note("run_broken_off", "warning", reason="interrupted"),
        "The run was broken off (interrupted), so which samples have a score depends on what happened; "
        "resume it, and check it again.",
    ),
    (
        note("run_stopped_by_gate"),
        "The run was stopped by its own gate, so the tests bet on the scores in the order in which they "
        "were drawn, which is valid at any stopping time.",
    ),
    (
        note("run_stopped", "warning", reason="out of money"),
        "The run stopped early (out of money); samples that it didn't reach are not tested.",
    ),
    (
        note("unused_labels", "caution", scorers=("s",)),
        "The labels of s are not used: no check of it was set.",
    ),
    (
        note("unused_labels", "caution", scorers=("r", "s")),
        "The labels of r, s are not used: no check of them was set.",
    ),
    (
        note("unused_baseline", "caution"),
        "The baseline is not used: neither max_regression nor max_difference was set.",
    ),
    (
        missing("missing_left_out", counted=0, undefined=1),
        's: 3 samples without a score left out, as if the others stood for them; missing="worst" counts them.',
    ),
    (
        missing("missing_partly_counted", counted=2, undefined=1),
        "s: of 3 samples without a score, 2 count as the worst in tests for a pass and as the best in "
        'tests for a fail, and 1 for which it is undefined left out; missing="worst" counts them as '
        "well.",
    ),
    (
        missing("missing_partly_counted", counted=0, undefined=3),
        's: of 3 samples without a score, 3 for which it is undefined left out; missing="worst" counts them as well.',
    ),
    (
        missing("missing_counted", counted=3, undefined=0, of="baseline", noun="answer"),
        "s: 3 answers of the baseline without a score count as the worst in tests for a pass and as the "
        'best in tests for a fail; missing="ignore" leaves them out.',
    ),
    (
        missing("missing_counted", counted=1, undefined=1),
        "s: 3 samples without a score counts as the worst in tests for a pass and as the best in tests "
        'for a fail; missing="failed" leaves out those for which it is undefined.',
    ),
    (
        note("undefined_left_out", "caution", "s", samples=1),
        "s: what is required leaves out 1 sample for which the score is undefined.",
    ),
    (
        note("undefined_in_both", "caution", "s", check="regression", samples=8, of_both=15),
        "s: the regression leaves out 8 of 15 samples, where the score is undefined in both runs.",
    ),
    (
        note("unpaired_left_out", "caution", "s", check="regression", samples=1),
        "s: the regression leaves out 1 sample that only one of the runs has.",
    ),
    (
        note("larger_change", "warning", "s", change=0.1, sample="q1", before=0.5, after=0.75),
        "s: sample 'q1' changes by 0.25, from 0.5 to 0.75, but max_change=0.1: the check fails, whatever the estimate "
        "is.",
    ),
    (
        note("largest_change", "fact", "s", change=0.1),
        "s: the difference is tested as if no sample's score can change by more than 0.1.",
    ),
    (
        note("judged_mean", "caution", "s", tested=True, settings=("labels",)),
        "s: the test is of the judge's mean, not of what people would say; labels=… corrects that.",
    ),
    (
        note("judged_mean", "caution", "s", tested=False, settings=()),
        "s: the comparison is of the judge's mean, not of what people would say.",
    ),
    (
        note("judged_difference", "caution", "s", settings=("labels", "baseline_labels")),
        "s: the difference from the baseline is the judge's, not what people would say; labels=… and "
        "baseline_labels=… correct it.",
    ),
)


SAID_BY_KIND = {each.kind: each for each, _ in SAID}


def test_every_kind_that_results_have_is_said_and_stands_here() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    used = set(re.findall(r'\bnote\(\s*"([a-z_]+)"', text))
    assert {each.kind for each, _ in SAID} == NOTES.keys()
    assert used <= NOTES.keys()


@pytest.mark.parametrize(("given", "said"), SAID, ids=[each.kind for each, _ in SAID])
def test_a_note_is_a_sentence(given: Note, said: str) -> None:
    assert sentence_of(given) == said


@pytest.mark.parametrize(
    ("given", "command_line", "mark"),
    [
        (SAID_BY_KIND["could_be_paired"], "without --unpaired,", "a paired comparison usually"),
        (SAID_BY_KIND["unused_baseline"], "--max-regression nor --max-difference", "max_regression nor max_difference"),
        (SAID_BY_KIND["reasoning_left_out"], "(--keep-reasoning scores it)", "(keep_reasoning=True scores it)"),
        (SAID_BY_KIND["labels_in_run"], "samples: --labels needs", "2 labeled samples"),
        (SAID_BY_KIND["missing_counted"], "; --missing failed leaves", '; missing="failed" leaves'),
        (SAID_BY_KIND["judged_difference"], "; --labels and --baseline-labels correct it", "would say"),
    ],
)
def test_settings_are_named_as_users_write_them(given: Note, command_line: str, mark: str) -> None:
    assert command_line in clause_of(given, COMMAND_LINE)
    assert mark in clause_of(given, MARK)


def test_what_several_scorers_have_in_common_is_said_once() -> None:
    both = [note("undefined_left_out", "caution", name, samples=1) for name in ("r", "s")]
    (said,) = sentences_of([*both, both[0]], PYTHON)
    assert said == f"r, s: {clause_of(both[0])}."
    assert len(sentences_of([*both, note("undefined_left_out", "caution", "t", samples=2)])) == 2


def test_a_note_is_plain_data() -> None:
    given = note("judged_mean", "caution", "s", tested=True, settings=("labels",))
    data = {"kind": "judged_mean", "severity": "caution", "scorer": "s", "tested": True, "settings": ["labels"]}
    assert given.to_dict() == to_jsonable(given) == data
    assert repr(given) == "note('judged_mean', 'caution', scorer='s', tested=True, settings=('labels',))"
    assert "scorer" not in note("not_ranked").to_dict()
    assert (given["tested"], given["absent"], "tested" in given, "absent" in given) == (True, None, True, False)
    assert Note.of(data) == given
    with pytest.raises(TypeError):
        note("metric_unknown", "caution", kind="no-such")  # type: ignore[call-arg]  # it would hide the kind
    with pytest.raises(TypeError):
        list(given)  # type: ignore[call-overload]


def test_a_note_of_a_newer_version_is_its_kind_with_its_values() -> None:
    assert sentence_of(note("kind_of_a_newer_version", samples=2)) == "Kind of a newer version (samples: 2)."


def test_a_note_is_read_back_from_its_json() -> None:
    stored = note("not_in_english", "warning", "s", samples=2, share=0.5, names=("a", "b"), weighted=True, of=None)
    assert Note.of(to_jsonable(stored)) == stored
    with pytest.raises(DataError) as raised:
        Note.of({"samples": 2})
    assert (raised.value.kind, raised.value.field) == ("missing", "kind")
