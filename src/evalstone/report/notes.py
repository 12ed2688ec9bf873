"""Notes as sentences: the one table from the kind of a note to what it says.

Each row is a clause without its capital and period. A note names settings as users of the front end write them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from evalstone._core.display import (
    by_text,
    count,
    digits_for,
    effective_count,
    ended,
    excerpt,
    joined,
    limits,
    listed,
    named,
    number,
    part_of,
    percent,
    safe,
    sentence,
    signed,
)
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting
from evalstone._core.redaction import MARK
from evalstone.types.notes import Note

Row: TypeAlias = Callable[[Note, FrontEnd], str]

LONG = 1000
LONGEST_JUDGE = 200
WITHOUT_IDS: Mapping[str, str] = {
    "no_ids": "these samples have no IDs",
    "traces": "these samples are from traces, each with an ID of its own",
}
"""Why samples are not paired by their IDs."""


def clause_of(note: Note, front_end: FrontEnd = PYTHON) -> str:
    """What a note says, without its scorer and runs, and without a capital and a period. Of a kind that a newer version
    has written into a file, it is the name of the kind, with the values."""
    if (said := NOTES.get(note.kind)) is not None:
        return said(note, front_end)
    values = ", ".join(f"{name}: {value}" for name, value in note.values)
    return safe(note.kind.replace("_", " ") + (f" ({values})" if values else ""), LONG)


def sentence_of(note: Note, front_end: FrontEnd = PYTHON) -> str:
    """A note as a sentence, after the runs or the scorer that it is about. A scorer's name is not capitalized."""
    return sentences_of([note], front_end)[0]


def sentences_of(notes: Iterable[Note], front_end: FrontEnd = PYTHON) -> list[str]:
    """Notes as sentences. What is said of several scorers is said once, after all of them."""
    scorers_of: dict[tuple[str, str], dict[str, None]] = {}
    for note in notes:
        said = joined(note["runs"] or ()), clause_of(note, front_end)
        scorers_of.setdefault(said, {})[note.scorer] = None
    sentences: list[str] = []
    for (runs, text), scorers in scorers_of.items():
        if any(scorers):
            sentences.append(ended(f"{', '.join(scorers)}: {text}"))
        else:
            sentences.append(sentence(f"{runs}: {text}" if runs else text))
    return sentences


def by_scorer(
    notes: Iterable[Note], scorers: int, front_end: FrontEnd = PYTHON, every: str = "all scorers"
) -> list[str]:
    """The distinct clauses of notes on scorers, each after the titles of its scorers; of all scorers, `every`."""
    return by_text(((note.scorer, clause_of(note, front_end)) for note in notes), scorers, every)


def _without_score(note: Note) -> str:
    of = " of the baseline" if note["of"] == "baseline" else ""
    return f"{count(note['without_score'], note['noun'])}{of} without a score"


_PRINTED: Mapping[str, str] = {
    "rows": "number of results",
    "scores": "number of scores",
    "failed": "number of failures",
    "sum": "sum of scores",
    "mean": "mean",
    "standard error": "standard error",
    "deviation": "standard deviation",
    "variance": "variance",
}
"""What of a metric another tool has printed."""


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _printed_with_failed(note: Note, _: FrontEnd) -> str:
    results, is_one = count(note["failed"], "result"), note["failed"] == 1
    if note["what"] == "failed":
        return f"{note['tool']} counts {results} that failed as {'a score' if is_one else 'scores'}"
    return f"the {_PRINTED[note['what']]} of {note['tool']} includes {results} that failed"


def _other_scale(note: Note) -> float:
    """A scale that scores up to `highest` may have instead of the one that was assumed."""
    highest = math.ceil(note["highest"])
    return highest if highest < note["scale"] else 2 * note["scale"]


def _printed_differs(note: Note, _: FrontEnd) -> str:
    what, ours = _PRINTED[note["what"]], note["ours"]
    here = "there is none" if ours is None else f"it is {ours:.15g}"
    return f"{note['tool']} printed a {what} of {note['printed']:.15g}, and here {here}"


_WORST = "as the worst in tests for a pass and as the best in tests for a fail"


def _missing_count(note: Note, front_end: FrontEnd) -> str:
    which, option = ("those for which it is undefined", "failed") if note["undefined"] else ("them", "ignore")
    verb = "counts" if note["counted"] == 1 else "count"
    leaves = f"leaves {f'out {which}' if note['undefined'] else f'{which} out'}"
    leaving = front_end.written([Hint.of("; ", Setting("missing", option), f" {leaves}")])
    return f"{_without_score(note)} {verb} {_WORST}{leaving}"


def _missing_partly(note: Note, front_end: FrontEnd) -> str:
    verb = "counts" if note["counted"] == 1 else "count"
    counted = f"{note['counted']:,} {verb} {_WORST}, and " if note["counted"] else ""
    left_out = f"{note['undefined']:,} for which it is undefined left out"
    counting = front_end.written([Hint.of("; ", Setting("missing", "worst"), " counts them as well")])
    return f"of {_without_score(note)}, {counted}{left_out}{counting}"


def _judged(note: Note, front_end: FrontEnd, what: str, they: str) -> str:
    settings = " and ".join(filter(None, (front_end.term(name, ...) for name in note["settings"])))
    return what + (f"; {settings} {they}" if settings else "")


def _other_samples(note: Note, _: FrontEnd) -> str:
    places = zip(("the first run", "the second"), note["only"], note["examples"], strict=True)
    sides = [
        f"{only} only in {place}" + (f" (such as {excerpt(example)})" if example else "")
        for place, only, example in places
    ]
    without_ids = ", by what was asked, because they have no IDs" if note["by_question"] else ""
    return f"the samples differ: {', '.join(sides)}{without_ids}"


def _other_expectations(note: Note, _: FrontEnd) -> str:
    *kinds, last = "expected trajectory", "reference of a turn", *(f"metadata.{name}" for name in note["fields"])
    return f"{note['different']} of {count(note['samples'], 'sample')} with a different {', '.join(kinds)} or {last}"


def _written_in_one_run(note: Note, _: FrontEnd) -> str:
    names = joined([f"metadata.{name}" for name in note["fields"]])
    first, second = note["written"]
    return (
        f"the judge wrote {names} of {first:,} of {count(note['samples'], 'sample')} in the first run and of "
        f"{second:,} in the second; the others have it in the data, or none at all"
    )


def _slices_too_small(note: Note, _: FrontEnd) -> str:
    fewer = f"{count(note['slices'], 'slice')} of {note['field']} with fewer than {note['least']} samples or groups"
    return f"{fewer} {'is' if note['slices'] == 1 else 'are'} left out, being too small to be tested"


def _paired_in_order(note: Note, _: FrontEnd) -> str:
    return (
        f"{count(note['samples'], 'sample')} asked the same as another one and {_be(note['samples'])} paired by "
        f"{'its' if note['samples'] == 1 else 'their'} order, which must be the same in both runs"
    )


def _outputs(note: Note) -> str:
    outputs = note["outputs"]
    if outputs is None:
        return "outputs begin"
    return "an output begins" if outputs == 1 else f"{outputs:,} outputs begin"


def short_judge(judge: str) -> str:
    """A judge's identity. A very long one is shortened in the middle."""
    if len(judge) <= LONGEST_JUDGE:
        return judge
    return f"{judge[: LONGEST_JUDGE // 2]}…{judge[-LONGEST_JUDGE // 2 :]}"


def _losses(note: Note, _: FrontEnd) -> str:
    side = "above" if note["lower_is_better"] else "below"
    lacking = "lacks the passage" if note["retrieval"] == 1 else "lack the passage"
    parts = [
        f"{note['retrieval']:,} {lacking} ({note['passages']} below {note['lacking_limit']:g}): retrieval",
        f"{note['generation']:,} had it: generation",
    ]
    if note["unknown"]:
        parts.append(f"{note['unknown']:,} without {note['passages']}: unknown")
    text = f"of {count(note['low'], 'answer')} with {note['answer']} {side} {note['low_limit']:g}, {'; '.join(parts)}"
    if note["unscored"]:
        text += f". Not counted: {note['unscored']:,} of {count(note['answers'], 'answer')} without {note['answer']}"
    return text


def _scores_missing(note: Note, _: FrontEnd) -> str:
    low, high = (number(bound, digits_for(note["scale"])) for bound in note["bounds"])
    has, them = ("has", "it") if note["missing"] == 1 else ("have", "them")
    return (
        f"{note['missing']:,} of {count(note['of'], note['noun'])} {has} no score; with {them}, the mean would be "
        f"between {low} and {high}"
    )


def _whole(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f}%"


def _pairs(note: Note, chance: str = "; 50% is chance") -> str:
    mean, low, high = map(_whole, note["auroc"])
    return f"it rates a good answer better than a bad one in {mean} of pairs (95% CI {low} to {high}{chance})"


def _judge_errors(note: Note) -> str:
    seen = " labeled" if note["weighted"] else ""

    def share(kind: str) -> str:
        mean, low, high, wrong, of = note[kind]
        return f"{_whole(mean)} of {kind} answers (95% CI {_whole(low)} to {_whole(high)}; {wrong} of {of}{seen})"

    return f"misses {share('bad')} and flags {share('good')}"


def _uninformative_alignment(note: Note, _: FrontEnd) -> str:
    of = "balanced accuracy" if note["objective"] == "accuracy" else "AUROC"
    return (
        f"the aligned judge is no use: it shows {_gain(note)} only because it comes closer to the more frequent "
        f"label. It isn't {_shown_to_tell(of, note['measured'] or (0.0, 0.0, 0.0))}"
    )


def _shown_to_tell(of: str, measured: Sequence[float]) -> str:
    """The end of a sentence on a judge that isn't shown to tell yes from no."""
    estimate, low, high = measured
    return f"shown to tell yes from no: its {of} is {number(estimate)} (95% CI {limits(low, high)}; 0.5 is chance)"


def _gain(note: Note) -> str:
    of = "accuracy" if note["objective"] == "accuracy" else "Brier score"
    estimate, low, high = note["gain"]
    return f"a gain in {of} of {signed(estimate)} (95% CI {limits(low, high, sign=True)})"


_USABLE: Mapping[str, str] = {
    "yes": "usable for single samples and to rank systems",
    "no": "usable to rank systems, not for single samples",
    "undecided": "usable to rank systems; whether for single samples, these labels don't tell",
}


def _labels_to_decide(note: Note, _: FrontEnd) -> str:
    share, least = _whole(note["auroc"]), _whole(note["least"])
    if note["more"] is None:
        return f"{share} is so close to {least} that even many times as many labels may not tell"
    return f"about {count(note['more'], 'more label')} like these would tell, if the share stays at {share}"


def _more_labels(note: Note, _: FrontEnd) -> str:
    drawn = f" (about {note['drawn']:,} if drawn like these)" if note["drawn"] > note["more"] else ""
    labels = f"about {count(note['more'], 'more label')}"
    if not note["of"]:
        return f"{labels} like these would tell, if both shares stay"
    labels += f" of {note['of']} answers{drawn}"
    if note["decides"]:
        return f"{labels} would tell, if the share stays at {_whole(note['share'])}"
    return f"{labels} would narrow the {_whole(note['share'])} to about {_whole(note['low'])} to {_whole(note['high'])}"


def _judge_unknown(note: Note, _: FrontEnd) -> str:
    if note["why"] == "unscored":
        return f"nothing can be said: {note['missing']} of {count(note['labels'], 'labeled sample')} have no score"
    if note["why"] == "strata":
        return (
            f"nothing can be said of the run yet: {part_of(note['samples'], note['of'], 'sample')} in strata of scores "
            "without labels"
        )
    good, bad, least = note["good"], note["bad"], note["least"]
    if note["why"] == "few" or not good + bad:
        return f"nothing can be said yet: {good} good and {bad} bad answers are labeled, and {least} of each are needed"
    kind, other = ("good", "bad") if good else ("bad", "good")
    return f"nothing can be said yet: all {good + bad} labeled answers are {kind}; label at least {least} {other} ones"


def _better_threshold(note: Note, _: FrontEnd) -> str:
    missed, flagged = map(_whole, note["expected"])
    return (
        f"a threshold of {note['threshold']:.4g} is better: on new samples, expect it to miss {missed} of bad answers "
        f"and to flag {flagged} of good ones"
    )


def _by_chance(note: Note) -> str:
    mean, low, high = note["auroc"]
    return f"its judge is not shown to be better than chance (AUROC {number(mean)}, 95% CI {limits(low, high)})"


def _no_better_than_one_answer(note: Note, _: FrontEnd) -> str:
    accuracy, low, high = note["accuracy"]
    shown = "" if accuracy <= note["rate"] else " shown to be"
    return (
        f"the accuracy at {note['threshold']:.4g} (default), {number(accuracy)} (95% CI {limits(low, high)}), is "
        f"not{shown} above the no-information rate, {number(note['rate'])}"
    )


def _not_at_random(note: Note) -> str:
    ways = {"by the judge's score": note["by_score"], "by hand": note["by_hand"], "for another run": note["shared"]}
    known = {way: number for way, number in ways.items() if number}
    how = [f"{way} ({number:,})" for way, number in known.items()] if len(known) > 1 else [*known]
    chosen = " or ".join(filter(None, (", ".join(how[:-1]), how[-1])))
    labels = part_of(sum(known.values()), note["of"], "label")
    if len(known) > 1 or not note["by_score"]:
        way_out = "choose samples to label at random"
    else:
        way_out = "a file of labels with the columns stratum, stratum_size and run_size lets them be weighted"
    return f"{labels} of samples chosen {chosen}: they are unlike the others, which biases the figures; {way_out}"


def _effects(note: Note) -> str:
    few = note["perturbations"]
    return f"an effect of {listed(few)}" if len(few) < note["of"] else "any effect"


def _estimated(note: Note, name: str) -> str:
    """An estimate with its limits."""
    mean, low, high = (number(each, 2) for each in note[name])
    return f"{mean} ({100 * note['confidence']:g}% CI {low} to {high})"


_USES_AS = {"samples": "which is usable for single samples", "systems": "which is usable to rank systems"}


def _best_judge(note: Note, _: FrontEnd) -> str:
    said = f"use {note['judge']}, {_USES_AS[note['use']]}"
    worse, unknown = note["worse"], note["unknown"]
    if worse:
        said += f": it is more accurate than {joined(worse)}, which {'costs' if len(worse) == 1 else 'cost'} less"
    if unknown:
        verbs = ("costs", "lacks") if len(unknown) == 1 else ("cost", "lack")
        said += (
            f"; the labels don't tell whether {joined(unknown)}, which {verbs[0]} less, {verbs[1]} less than "
            f"{note['margin']:g} of its accuracy"
        )
    return said


def _cheaper_judge(note: Note, _: FrontEnd) -> str:
    mean, low, high = note["difference"]
    return (
        f"use {note['judge']}: it costs ${note['cost']:.4g} for 1,000 samples instead of ${note['best_cost']:.4g}, and "
        f"is at most {number(high)} less accurate than {note['best']} (difference {number(mean)}, 95% CI "
        f"{limits(low, high, sign=True)})"
    )


_KEEPING = Hint.of(" (", Setting("keep_reasoning"), ")")
_BY_MODEL = Hint.of(
    "; ", Setting("slice_by", "model"), " shows whether it agrees with people there as well as elsewhere"
)


def _importing_with(scorer: str, scale: float) -> Hint:
    return Hint.of(f"; if it is another, such as {scale:g}, import with ", Setting("scales", {scorer: scale}))


_UNDETECTABLE: Mapping[str, str] = {
    "unpaired": "the samples are not paired",
    "stopped": "a gate stopped one of the runs",
    "weighted": "the samples have weights",
    "missing": "scores are missing, and could hide any",
    "single": "there is a single pair or cluster",
    "scale": "so few samples would miss even the largest that the scale allows",
}
"""Why an inconclusive comparison has none."""


NOTES: Mapping[str, Row] = {
    # ---- Two runs ----
    "judges_differ": lambda note, _: f"the judges differ ({', '.join(note['judges'])})",
    "scorer_differs": lambda note, _: f"the scorer {note['name']} differs ({', '.join(note['signatures'])})",
    "reasoning_differs": lambda _, front_end: (
        f"only one of them scores the reasoning in front of outputs{front_end.written([_KEEPING])}"
    ),
    "versions_differ": lambda note, _: (
        f"the dataset versions differ ({', '.join(note['versions'])}) and the texts are not available"
    ),
    "cases_differ": lambda note, _: (
        f"{note['different']} of {count(note['samples'], 'sample')} with a different input, reference or instructions"
    ),
    "expectations_differ": _other_expectations,
    "samples_differ": _other_samples,
    "answers_differ": lambda note, _: (
        f"{note['different']} of {count(note['samples'], 'sample')} with a different output, context or conversation"
    ),
    "written_in_one_run": _written_in_one_run,
    "written_unpaired": lambda note, _: (
        f"{note['name']}: the judge wrote what answers of one run are held against, and the other run has it in the "
        "data; whether both are alike isn't checked, because samples aren't compared one by one"
    ),
    "written_during_run": lambda note, _: (
        f"{note['name']}: the judge writes what answers are held against during the run, so whether it is the "
        "baseline's is known only at the end; gate the finished run, or run on data that have it"
    ),
    "same_run": lambda _, __: "they are the same run",
    "not_compared": lambda note, _: f"no sample has a score of {listed(note['scorers'])} in both runs: not compared",
    "interval_uncorrected": lambda note, _: (
        f"the interval of {listed(note['scorers'])} excludes 0, but is not corrected: p is, for "
        f"{count(note['comparisons'], 'comparison')}, and decides"
    ),
    "nothing_detectable": lambda note, _: (
        f"no minimum detectable difference of {listed(note['scorers'])}: {_UNDETECTABLE[note['why']]}"
    ),
    "several_trials": lambda note, _: (
        f"they have {joined([str(each) for each in dict.fromkeys(note['trials'])])} trials of each sample; a sample's "
        "score is the mean of its trials"
    ),
    "other_run_stopped": lambda note, _: f"the {note['run']} run stopped early ({note['reason']})",
    "scorers_of_one_run": lambda note, _: f"only in one of the runs: {', '.join(note['scorers'])}",
    "stopped_by_gate": lambda note, _: (
        f"its gate stopped the {note['run']} run: the difference is biased away from the threshold; its test and "
        "limits bet on the scores in the order in which they were drawn, which is valid at any stopping time"
        if note["paired"]
        else f"its gate stopped the {note['run']} run: its mean is biased away from the threshold, and intervals "
        "under-cover"
    ),
    "could_be_paired": lambda note, front_end: (
        f"{count(note['samples'], 'sample')} in both runs: a paired comparison"
        + front_end.written([Hint.of(", without ", Setting("unpaired", True), ",")])
        + " usually has more power"
    ),
    "paired_by_question": lambda note, _: f"{WITHOUT_IDS[note['because']]}, so samples are paired by what was asked",
    "paired_in_order": _paired_in_order,
    "slices_too_small": _slices_too_small,
    "not_ranked": lambda _, __: "the runs are not ranked, because a gate stopped one of them",
    # ---- An imported run ----
    "imported": lambda note, _: f"the scores are those of {note['tool']}, imported from {note['file']}",
    "printed_equal": lambda note, _: (
        f"{count(note['numbers'], 'number')} that {note['tool']} printed {_be(note['numbers'])} the same here"
    ),
    "printed_with_failed": _printed_with_failed,
    "printed_differs": _printed_differs,
    "scale_assumed": lambda note, front_end: (
        f"{note['tool']} doesn't say which scores are possible; the highest is {note['highest']:g}, so the scale is "
        f"taken to be {note['scale']:g}" + front_end.written([_importing_with(note.scorer, _other_scale(note))])
    ),
    "metric_unknown": lambda note, _: (
        f"the metric {safe(note['metric'], LONG)} of {note['tool']} isn't known here (first in "
        f"{safe(note['place'], LONG)}); its scores are read as they are"
    ),
    "direction_unsure": lambda note, _: (
        f"{note['tool']} doesn't say whether low or high scores are good, and its verdicts don't show it for every "
        "score; high ones are taken to be good"
    ),
    "more_rows": lambda note, _: (
        f"the file is one page of {note['tool']} and says that more follow: the numbers cover only this page"
    ),
    "without_verdict": lambda note, _: (
        f"{note['tool']} leaves {count(note['scores'], 'score')} without a verdict out of its own numbers, so they "
        "aren't compared; the mean includes them"
    ),
    "eval_unfinished": lambda note, _: (
        f"the evaluation in {note['tool']} did not finish (status: {safe(note['status'], LONG)})"
        f"{': ' + safe(note['error'], LONG) if note['error'] else ''}; the numbers cover only the samples in its log"
    ),
    "entries_replaced": lambda note, _: (
        f"{count(note['entries'], 'entry', 'entries')} of the archive {_be(note['entries'])} there more than once; as "
        f"in {note['tool']}, the last one counts"
    ),
    "samples_limited": lambda note, _: (
        f"{count(note['samples'], 'answer')} ended at a limit in {note['tool']} ({safe(note['what'], LONG)})"
    ),
    "samples_unlogged": lambda note, _: (
        f"{note['tool']} logged no samples: each score is that of all trials of a sample, and no texts are known"
    ),
    "printed_by_case": lambda note, _: (
        f"{note['tool']} averages the trials of each sample before the samples; here all trials count alike, so the "
        "means differ where trials have no score"
    ),
    "metric_of_all": lambda note, _: (
        f"{note['tool']} calculates these over all samples at once, so that they have no scores here: "
        f"{safe(note['what'], LONG)}"
    ),
    "results_of_means": lambda note, _: (
        f"{count(note['files'], 'file')} of {note['tool']} with means only {_be(note['files'])} left out, since "
        f"samples are needed: {safe(note['what'], LONG)}"
    ),
    "parts_left_out": lambda note, _: (
        f"{count(note['parts'], 'part')} of the folder {_be(note['parts'])} left out: {safe(note['what'], LONG)}"
    ),
    "systems_left_out": lambda note, _: (
        f"{count(note['systems'], 'system')} without scores {_be(note['systems'])} left out: {safe(note['what'], LONG)}"
    ),
    "printed_uncompared": lambda note, _: (
        f"{note['tool']} printed numbers that aren't compared with those here: {safe(note['what'], LONG)}"
    ),
    "scored_without_answer": lambda note, _: (
        f"the system gave no answer in {count(note['rows'], 'row')} that {note['tool']} scored all the same; these "
        "scores count, as they do there"
    ),
    "cases_repeated": lambda note, _: (
        f"{count(note['cases'], 'case')} {_be(note['cases'])} in the file more than once, unlike most: the "
        f"{note['rows']:,} rows are samples, in a group for each case, and no trials"
    ),
    "trials_absent": lambda note, _: (
        f"some samples have fewer than {note['trials']:,} trials: {count(note['absent'], 'trial')} "
        f"{_be(note['absent'])} not in the file"
    ),
    # ---- A run ----
    "run_ended_early": lambda note, _: (
        f"the run ended early: {ended(safe(note['reason'], LONG))} The numbers cover only the samples that were scored"
    ),
    "results_failed": lambda note, _: (
        f"{count(note['results'], 'result')} failed. No mean includes them; the reasons are below"
    ),
    "of_target": lambda note, _: safe(note["text"], LONG),
    "outputs_replaced": lambda note, _: (
        "the target's answers replace the "
        + ("output" if note["samples"] == 1 else "outputs")
        + f" that the data have for {count(note['samples'], 'sample')}"
    ),
    "of_judge": lambda note, _: safe(note["text"], LONG),
    "not_in_english": lambda note, _: (
        f"not in English: at least {note['samples']:,} of {count(note['of'], 'sample')}; the lexical judge was only "
        "measured on English, and misses what other languages support: use a model"
    ),
    "same_family": lambda note, _: (
        f"the judge {note['judge']} and the model that answered {note['samples']:,} of {count(note['of'], 'sample')} "
        f"are of one family ({note['family']}): judges may favor answers like their own; compare it with people "
        "(evalstone calibrate), or with a judge of another family"
    ),
    "same_family_labeled": lambda note, front_end: (
        f"the model that answered {note['samples']:,} of {count(note['of'], 'labeled sample')} is of the judge's own "
        "family of models: judges may favor answers like their own" + front_end.written([_BY_MODEL])
    ),
    "setting_refused": lambda note, _: (
        f"the endpoint refused the setting {note['setting']}; {count(note['answers'], 'answer was', 'answers were')} "
        "given without it"
    ),
    "escalates_nearly_all": lambda note, front_end: (
        f"the judge {short_judge(note['judge'])} escalated {percent(note['share'])} of "
        f"{count(note['questions'], 'question')}, so its first judge saves next to nothing; lower "
        "the threshold, or let labels choose it"
        + (" (fit_cascade)" if front_end.style == "python" else " (evalstone calibrate --risk)")
    ),
    "reasoning_left_out": lambda note, front_end: (
        f"{_outputs(note)} with a model's reasoning, such as <think>…</think>; it is not scored"
        + front_end.written([Hint.of(" (", Setting("keep_reasoning", True), " scores it)")])
    ),
    "reasoning_kept": lambda note, _: (
        f"{_outputs(note)} with a model's reasoning, such as <think>…</think>; it is scored as a part of the answer"
    ),
    "items_dropped": lambda note, _: (
        f"the judges listed {count(note['times'], 'item')} not found in the judged text, even after a correction. "
        "The scores leave out what records.jsonl names as dropped"
    ),
    "citations_doubtful": lambda note, _: (
        f"in {count(note['times'], 'result')}, the judge cites a passage that has no word in common with a claim, "
        "although another passage has: see `citations` in the judge calls of the records. No verdict was changed"
    ),
    "secrets_repeated": lambda note, _: (
        f"the endpoint sent back a secret in {count(note['times'], 'response')}; it is shown and stored as {MARK}"
    ),
    "losses": _losses,
    "scores_missing": _scores_missing,
    "clustered": lambda note, _: (
        f"{'clustered samples' if note['trials'] == 1 else 'trials of a sample are not independent'}: cluster-robust "
        f"interval ({count(note['clusters'], 'cluster')})"
    ),
    "weighted": lambda note, _: (
        f"weighted mean: {count(note['samples'], 'sample')} of unequal weight say about as much as "
        f"{effective_count(note['effective'])} of equal weight"
    ),
    "no_usable_answer": lambda note, _: (
        f"no sample has a score; the judge gave no usable answer on {note['unanswered']:,} of "
        f"{count(note['samples'], 'sample')}"
    ),
    "equal_scores": lambda note, _: (
        f"all {note['scores']:,} scores of the judge are {number(note['value'], digits_for(note['scale']))}: these "
        "samples are equally good or bad, or it can't tell them apart"
    ),
    "equal_verdicts": lambda note, _: f"all {note['verdicts']:,} verdicts of the judge are {excerpt(note['verdict'])}",
    # ---- Statistics ----
    "no_values": lambda _, __: "no sample has a score",
    "single_unit": lambda note, _: f"a single {note['noun']}",
    "single_unit_run": lambda _, __: "one of the runs has a single sample or cluster",
    "small_sample": lambda note, _: f"small sample (n = {note['n']}): rare failures may be missing",
    "few_clusters": lambda note, _: f"only {note['clusters']} clusters: the interval is approximate",
    "heavy_units": lambda note, _: (
        f"{note['heaviest']} of {count(note['of'], note['noun'])} {'carries' if note['heaviest'] == 1 else 'carry'} "
        "half of the weight: no interval can allow for heavier ones that the data lack"
    ),
    "all_equal": lambda note, _: f"all {note['n']} values are equal, so there is no interval",
    "equal_clusters": lambda _, __: "all clusters have the same sum: clusters ignored",
    "few_changed": lambda note, _: (
        f"{'only ' if note['changed'] else ''}{note['changed'] or 'none'} of {note['pairs']} pairs changed: too few "
        "for a significant difference"
    ),
    "stopped_sequence": lambda _, __: (
        "the gate stopped the run, so the interval is a confidence sequence, which is valid at any stopping time; the "
        "mean is biased away from the threshold"
    ),
    "stopped_comparison": lambda _, __: (
        "a gate stopped one of the runs: p and the interval are two-sided and valid at any stopping time, so they may "
        "leave open what the gate decided"
    ),
    "variance_below_zero": lambda note, _: f"the variance of {joined(note['components'])} was estimated below 0",
    "few_pilot_changes": lambda note, _: (
        f"in the pilot, {percent(note['changed'])} of the samples changed, which can't add up to a difference of "
        f"{note['difference']:g}: the plan is the upper end of the range, with as many further changes as that needs"
    ),
    "constant_pilot": lambda _, __: "the pilot's values don't vary: plan for the upper end of the range",
    "small_pilot": lambda note, _: f"small pilot (n = {note['n']}): its standard deviation is uncertain",
    "missing_in_pilot": lambda note, _: (
        f"{note['missing']:,} of the pilot's {note['of']:,} samples {'lacks' if note['missing'] == 1 else 'lack'} a "
        "score: the plan expects as many of them, and that the comparison counts them as any score, which can hide a "
        f"difference of up to {note['hidden']:.2g} from any number of samples"
    ),
    # ---- Human labels ----
    "too_few_labels": lambda note, _: (
        f"only {count(note['labels'], 'label')}: too few for an estimate; label at least {note['least']} samples"
    ),
    "few_label_groups": lambda _, __: "labels in too few groups to correct the mean",
    "same_labels": lambda note, _: (
        f"all {count(note['labels'], 'label')} are {note['label']:g}: whether the judge agrees with people can't be "
        "told from labels of one kind; label more samples"
    ),
    "strata_merged": lambda note, _: f"strata with fewer than two labels were merged: {note['strata']}",
    "one_sided_labels": lambda _, __: "the labels need both passes and fails",
    "few_class_labels": lambda note, _: (
        f"only {count(note['labels'], 'label')} in one class: the interval is approximate"
    ),
    "judge_by_chance": lambda note, _: (
        "the judge is not significantly better than chance on the labeled samples, so its pass rate can't be "
        f"corrected: sensitivity + specificity is {_estimated(note, 'sum')}, and 1 at chance"
    ),
    "unlike_the_labels": lambda note, _: (
        f"the judge passed {_estimated(note, 'passed')} of the run, which no rate explains with its sensitivity of "
        f"{_estimated(note, 'sensitivity')} and specificity of {_estimated(note, 'specificity')}: the run's samples "
        "must be unlike the labeled ones"
    ),
    "labels_unscored": lambda note, _: f"left out: {count(note['labels'], 'labeled sample')} without a score",
    "labels_in_run": lambda note, front_end: (
        f"this run contains {count(note['labels'], 'labeled sample')}"
        + front_end.written([Hint.of(": ", Setting("labels", ...), " needs fewer assumptions")])
    ),
    "clusters_ignored": lambda _, __: "the samples are clustered, which these intervals don't account for",
    # ---- Calibrations ----
    "needs_both_labels": lambda _, __: "it needs labels of both kinds, yes and no",
    "not_above_chance": lambda note, _: _by_chance(note),
    "calibration_not_used": lambda note, _: f"audits and reports don't use this calibration: {_by_chance(note)}",
    "one_verdict": lambda note, _: f"all verdicts at {note['threshold']:.4g} (default) are {note['verdict']}",
    "most_labels_unscored": lambda _, __: "most labeled samples have no score",
    "annotators_split_everywhere": lambda _, __: (
        "annotators are evenly split on every sample: no verdict can be checked and no threshold was learned"
    ),
    "labels_all_alike": lambda note, _: (
        f"every label says {note['label']}: the other verdict can't be checked and no threshold was learned"
    ),
    "few_labels": lambda note, _: (
        f"few labels ({note['yes']} yes, {note['no']} no): rely on the intervals, not the estimates"
    ),
    "labels_not_at_random": lambda note, _: _not_at_random(note),
    "labels_weighted": lambda note, _: (
        "labels drawn by strata of scores: verdicts at the default threshold, mean differences, the no-information "
        f"rate and AUROC are estimates for {count(note['samples'], 'sample')}, with each label weighted by its "
        f"stratum; other figures and the counts describe the {count(note['labels'], 'labeled sample')}"
    ),
    "rows_without_label": lambda note, _: (
        f"{part_of(note['rows'], note['of'], 'row')} without a label (empty, null, NaN or a word such as n/a) and not "
        "judged"
    ),
    "labels_clustered": lambda note, _: (
        f"{count(note['labels'], 'label')} in {count(note['clusters'], 'cluster')} of samples with the same group or "
        "the same texts: intervals are those of clusters"
    ),
    "strata_without_labels": lambda note, _: (
        f"{part_of(note['samples'], note['of'], 'sample')} in strata of scores without labels: the figures say nothing "
        "about them"
    ),
    "no_discrimination": lambda _, __: "the judge scored every sample the same: no discrimination",
    "uninformative_accuracy": _no_better_than_one_answer,
    "ranks_opposite": lambda note, _: (
        f"scores rank opposite to the labels. Yes is what a full score of {note['name']} means, where "
        f"{'lower' if note['lower_is_better'] else 'higher'} is better: were labels that mean the opposite read as yes?"
    ),
    "alignment_better": lambda note, _: (
        f"the aligned judge is better: {_gain(note)} on {count(note['labels'], 'label')} that had no part in the choice"
    ),
    "alignment_uninformative": _uninformative_alignment,
    "alignment_not_shown": lambda note, _: (
        f"no gain is shown: {_gain(note)} on {count(note['labels'], 'label')} that had no part in the choice"
        + ("" if note["needed"] is None else f". About {count(note['needed'], 'label')} in all would show such a gain")
    ),
    "alignment_default": lambda note, _: (
        f"nothing that was tried is better than the judge as it is: choosing from these labels gives {_gain(note)} on "
        f"{count(note['labels'], 'label')} that had no part in the choice"
    ),
    "judge_tells_nothing_apart": lambda note, _: (
        f"as it is, this judge isn't {_shown_to_tell(note['of'], note['measured'])}"
    ),
    "alignment_ended_early": lambda note, _: (
        f"nothing was chosen, because it ended early: {safe(note['reason'], LONG)}"
    ),
    "few_examples": lambda note, _: (
        f"only {count(note['examples'], 'labeled sample')} can be shown as examples; more examples were not tried"
    ),
    "several_labels": lambda note, _: (
        f"{part_of(note['samples'], note['of'], 'sample')} judged with several labels, so that its own label doesn't "
        "say which of them is right; they are not shown as examples"
    ),
    "labels_of_strata": lambda _, __: (
        "the labels were drawn by strata of the scores; the gain is that on these labels, not on all samples of the run"
    ),
    "no_examples_read": lambda _, __: "this judge reads no worked examples, so none were tried",
    "examples_not_counted": lambda note, _: (
        f"{count(note['samples'], 'labeled sample')} not counted: the judge is shown them as examples"
    ),
    "labels_used_to_align": lambda note, _: (
        f"the judge was aligned with {note['samples']} of these {count(note['of'], 'label')}: the figures are "
        "optimistic; calibrate it on others"
    ),
    "corrected_by_aligned_labels": lambda note, _: (
        f"the judge was aligned with {note['samples']} of the {count(note['of'], 'label')} of this calibration, on "
        "which it errs less than on others, so the correction is too small; calibrate it on others"
    ),
    "labels_chose_threshold": lambda note, _: (
        f"these labels chose the cascade's threshold, {note['threshold']:.4g}: the figures are optimistic; calibrate "
        "the cascade that has it on others"
    ),
    "corrected_by_choosing_labels": lambda note, _: (
        f"the labels of this calibration chose the cascade's threshold, {note['threshold']:.4g}, so it may err less on "
        "them than on others, and the correction may be too small; calibrate the cascade that has it on others"
    ),
    "annotators_split": lambda note, _: (
        f"{count(note['samples'], 'sample')} with evenly split annotators left out of the verdicts"
    ),
    "labeled_without_score": lambda note, _: (
        f"{count(note['skipped'] + note['failed'], 'labeled sample')} without a score: {note['skipped']} skipped, "
        f"{note['failed']} failed"
    ),
    "calibration_ended_early": lambda note, _: f"the run ended early ({note['reason']}); the calibration was not saved",
    "best_judge": _best_judge,
    "cheaper_judge": _cheaper_judge,
    "no_judge_usable": lambda note, _: (
        f"none of these {note['judges']} judges is usable on these labels, not even to rank systems"
    ),
    "no_judge_told": lambda note, _: (
        f"the labels don't tell yet whether one of these {note['judges']} judges is usable; label more samples"
    ),
    "judge_usable": lambda note, _: (
        f"{_USABLE[note['single']]}: {_judge_errors(note)} at the threshold {note['threshold']:.4g}"
    ),
    "judge_not_usable": lambda note, _: (
        f"not usable, not even to rank systems: {_pairs(note)}, and that takes {_whole(note['least'])}"
    ),
    "judge_reversed": lambda note, _: f"not usable, or yes and no are swapped: {_pairs(note)}",
    "judge_undecided": lambda note, _: (
        f"{'not usable for single samples; ' if note['single'] == 'no' else ''}these labels don't tell whether it is "
        f"usable to rank systems: {_pairs(note)}, and that takes {_whole(note['least'])}"
    ),
    "judge_unknown": _judge_unknown,
    "judge_pairs": lambda note, _: _pairs(note),
    "judge_errors": lambda note, _: f"at the threshold {note['threshold']:.4g}, it {_judge_errors(note)}",
    "judge_labels_to_decide": _labels_to_decide,
    "judge_more_labels": _more_labels,
    "judge_better_threshold": _better_threshold,
    # ---- Audits ----
    "audit_ended_early": lambda note, _: f"the audit ended early: {ended(safe(note['reason'], LONG))}",
    "audit_failures": lambda note, _: f"{count(note['results'], 'result')} failed",
    "not_applicable": lambda note, _: f"not applicable to any sample: {listed(note['perturbations'])}",
    "follows_instructions": lambda _, __: "the judge follows instructions in the text that it judges",
    "affected_by": lambda note, _: f"affected by {note['why']} ({listed(note['perturbations'])})",
    "affected_by_instruction": lambda note, _: (
        "affected by an instruction to the judge, which it seems to treat as part of the text "
        f"({listed(note['perturbations'])})"
    ),
    "unaffected": lambda _, __: "no perturbation affected it by more than chance",
    "too_few_changed": lambda note, _: (
        f"too few samples to find {_effects(note)} (at least {note['needed']} changed samples are needed)"
    ),
    "lost_to_perturbations": lambda note, _: (
        f"{count(note['scores'], 'score')} lost to a perturbation: skipped or failed once perturbed"
    ),
    "one_verdict_unchanged": lambda note, _: f"all verdicts on unchanged samples are {note['verdict']}",
    "indistinguishable": lambda note, _: (
        f"all verdicts are {note['verdict']}: the judge is indistinguishable from one that always says "
        f"{note['verdict']}"
    ),
    # ---- Live scores ----
    "judged_by_another": lambda note, _: (
        f"the judge of {note['name']} was {joined(note['before'])} in the baseline, and is {joined(note['now'])} now"
    ),
    "reasoning_mixed": lambda note, front_end: (
        f"only some of the scores of {note['name']} are of outputs with the reasoning in front"
        + front_end.written([_KEEPING])
    ),
    "cycles_not_whole": lambda note, _: (
        f"the baseline covers {note['covers']}, which is no whole number of cycles of {note['cycle']}"
    ),
    "times_taken_as_alike": lambda _, front_end: (
        "the alarm takes scores to be alike at all times: if they vary with the hour or the weekday, watch whole days "
        "or weeks" + front_end.written([Hint.of(" (", Setting("cycle"), ")")])
    ),
    # ---- Gates ----
    "no_baseline": lambda note, _: f"there is no baseline {named(note['name'])}, so nothing is compared",
    "baseline_broken_off": lambda note, _: (
        f"the baseline was broken off ({note['reason']}), so that it shows no difference"
    ),
    "run_broken_off": lambda note, _: (
        f"the run was broken off ({note['reason']}), so which samples have a score depends on what happened; resume "
        "it, and check it again"
    ),
    "run_stopped_by_gate": lambda _, __: (
        "the run was stopped by its own gate, so the tests bet on the scores in the order in which they were drawn, "
        "which is valid at any stopping time"
    ),
    "run_stopped": lambda note, _: (
        f"the run stopped early ({note['reason']}); samples that it didn't reach are not tested"
    ),
    "unused_labels": lambda note, _: (
        f"the labels of {listed(note['scorers'])} are not used: no check of "
        f"{'it' if len(note['scorers']) == 1 else 'them'} was set"
    ),
    "unused_baseline": lambda _, front_end: (
        "the baseline is not used"
        + front_end.written(
            [Hint.of(": neither ", Setting("max_regression"), " nor ", Setting("max_difference"), " was set")]
        )
    ),
    "missing_left_out": lambda note, front_end: (
        f"{_without_score(note)} left out, as if the others stood for them"
        + front_end.written([Hint.of("; ", Setting("missing", "worst"), " counts them")])
    ),
    "missing_partly_counted": _missing_partly,
    "missing_counted": _missing_count,
    "undefined_left_out": lambda note, _: (
        f"what is required leaves out {count(note['samples'], 'sample')} for which the score is undefined"
    ),
    "undefined_in_both": lambda note, _: (
        f"the {note['check']} leaves out {note['samples']:,} of {count(note['of_both'], 'sample')}, where the score is "
        "undefined in both runs"
    ),
    "unpaired_left_out": lambda note, _: (
        f"the {note['check']} leaves out {count(note['samples'], 'sample')} that only one of the runs has"
    ),
    "larger_change": lambda note, front_end: (
        f"sample {note['sample']!r:.80} changes by {abs(note['after'] - note['before']):.4g}, from "
        f"{note['before']:.4g} to {note['after']:.4g}, but "
        + (front_end.term("max_change", note["change"]) or f"by at most {note['change']:g} was declared")
        + ": the check fails, whatever the estimate is"
    ),
    "largest_change": lambda note, _: (
        f"the difference is tested as if no sample's score can change by more than {note['change']:g}"
    ),
    "judged_mean": lambda note, front_end: _judged(
        note,
        front_end,
        f"the {'test' if note['tested'] else 'comparison'} is of the judge's mean, not of what people would say",
        "corrects that",
    ),
    "judged_difference": lambda note, front_end: _judged(
        note,
        front_end,
        "the difference from the baseline is the judge's, not what people would say",
        "correct it",
    ),
}
