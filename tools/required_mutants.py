"""Faults that the tests have to notice, each as the text that is replaced. `make mutants` checks that all die.

They are the kind of fault that looks right on the page: a term left out of a sum, a text that isn't escaped, an order
turned around, a test at the wrong level. Each text stands once in its file; tests/test_required_mutants.py checks that.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPORT = "src/evalstone/report"
VIEW = "src/evalstone/view"
VIEWS = "src/evalstone/results/views"
TEMPLATES = f"{REPORT}/templates"


@dataclass(frozen=True)
class Mutant:
    """One fault: a text of a file, and what takes its place."""

    title: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    """The tests that have to notice it."""
    line: int = 0
    changed: str = ""
    """The whole file with the fault; "" where it follows from `before` and `after`."""

    def applied(self, source: str) -> str:
        """The file with the fault.

        Raises:
            SystemExit: The text doesn't stand in the file once.
        """
        if source.count(self.before) != 1:
            raise SystemExit(
                f"{self.title}: {self.before!r} stands {source.count(self.before)} times in {self.path}; "
                "bring tools/required_mutants.py in step with the code"
            )
        return source.replace(self.before, self.after)

    def located(self, root: Path) -> Mutant:
        """The mutant with the number of its line."""
        if self.changed:
            return self
        source = (root / self.path).read_text(encoding="utf-8")
        self.applied(source)
        return dataclasses.replace(self, line=source[: source.index(self.before)].count("\n") + 1)


# Numbers, class names, and markup that is escaped already: nothing that judged text can be in.
_NOT_JUDGED = {
    "policy",
    "style",
    "script",
    "drawn",
    "tag",
    "count",
    "tick",
    "edge",
    "tall",
    "wide",
    "chart.kind",
    "chart.tone",
    "part.kind",
    "tone",
    "outcome.tone",
    "view.verdict.tone",
    "bin.n",
    "cell.tone",
    "y",
}


def unescaped() -> Iterator[Mutant]:
    """Every text of every HTML template without its escaping."""
    root = Path(__file__).resolve().parent.parent
    for file in sorted((root / TEMPLATES).glob("*")):
        source = file.read_text(encoding="utf-8")
        for number, found in enumerate(re.finditer(r"\{\{ ([a-z_.]+) \}\}", source)):
            if found[1] in _NOT_JUDGED:
                continue
            changed = f"{source[: found.start()]}{{{{ {found[1]}|safe }}}}{source[found.end() :]}"
            line = source[: found.start()].count("\n") + 1
            before = source.splitlines(keepends=True)[line - 1]
            after = changed.splitlines(keepends=True)[line - 1]
            title = f"unescaped in {file.name}, line {line}: {found[1]} ({number})"
            path = str(file.relative_to(root))
            tests = ("tests/report/test_html.py",)
            if file.name in ("charts.html", "reliability.svg"):
                tests = (*tests, "tests/results/views/test_calibration.py")
            yield Mutant(title, path, before, after, tests, line, changed)


REQUIRED: tuple[Mutant, ...] = (
    # ---- Money and retries ----
    Mutant(
        "a budget forgets what calls in flight have reserved",
        "src/evalstone/run/budget.py",
        "return self.spent + self.reserved + amount <= self.limit",
        "return self.spent + amount <= self.limit",
        ("tests/run/test_session.py",),
    ),
    Mutant(
        "a budget refuses the call that just fits",
        "src/evalstone/run/budget.py",
        "return self.spent + self.reserved + amount <= self.limit",
        "return self.spent + self.reserved + amount < self.limit",
        ("tests/run/test_session.py",),
    ),
    Mutant(
        "processes that share a limit bunch their requests",
        "src/evalstone/models/shared_limits.py",
        "minute, requests, of_tokens = MINUTE + SLACK,",
        "minute, requests, of_tokens = MINUTE,",
        ("tests/models/test_shared_limits.py",),
    ),
    Mutant(
        "processes that share a limit hold more slots than there are",
        "src/evalstone/models/shared_limits.py",
        "slots = min(wanted, max(0, ceiling - others.slots))",
        "slots = min(wanted, ceiling)",
        ("tests/models/test_shared_limits.py",),
    ),
    Mutant(
        "retries wait a fixed 0.01 s",
        "src/evalstone/models/limits.py",
        "seconds = min(FIRST_WAIT * 2 ** min(self.attempts, 10), LONGEST_WAIT) * random.uniform(0.5, 1.0)",
        "seconds = 0.01",
        ("tests/models/test_limiter.py",),
    ),
    Mutant(
        "retries don't wait as long as the provider asks",
        "src/evalstone/models/limits.py",
        "seconds = max(seconds, error.retry_after * random.uniform(1.0, 1.1))",
        "pass",
        ("tests/models/test_limiter.py",),
    ),
    Mutant(
        "retries are not rationed",
        "src/evalstone/models/limits.py",
        "self._retries.take(1)",
        "pass",
        ("tests/models/test_retries.py",),
    ),
    Mutant(
        "redirects are followed",
        "src/evalstone/models/endpoint.py",
        "allow_redirects=False",
        "allow_redirects=True",
        ("tests/models/test_replies.py",),
    ),
    Mutant(
        "a reply has no limit",
        "src/evalstone/models/replies.py",
        "return self.size <= limit",
        "return True",
        ("tests/models/test_replies.py",),
    ),
    Mutant(
        "a compressed bomb is decompressed at once",
        "src/evalstone/models/replies.py",
        "decompress(data, limit + 1 - self.size)",
        "decompress(data)",
        ("tests/models/test_replies.py",),
    ),
    Mutant(
        "judges with other keys share a connection",
        "src/evalstone/models/endpoint.py",
        "key = (Endpoint, base_url, tuple(sorted(sent.items())), *settings)",
        "key = (Endpoint, base_url, *settings)",
        ("tests/judges/test_model.py",),
    ),
    Mutant(
        "a batch that no server took a connection for may have been delivered",
        "src/evalstone/models/endpoint.py",
        ", rejected=not_sent)",
        ")",
        ("tests/models/test_batch.py",),
    ),
    Mutant(
        "an answer from a batch forgets what earlier attempts cost",
        "src/evalstone/run/batch/session.py",
        "cost=total_cost([known.cost, reply.cost])",
        "cost=reply.cost",
        ("tests/run/test_batches.py",),
    ),
    Mutant(
        "a call that was answered as its scorer's task is canceled is not counted",
        "src/evalstone/run/session.py",
        "                call.others -= 1\n        if own:",
        "                call.others -= 1\n            else:\n                self._own.discard(call)\n        if own:",
        ("tests/run/test_session.py",),
    ),
    Mutant(
        "on_sample is called before all records of the sample are stored",
        "src/evalstone/run/runner.py",
        "if self.notifier.on_sample is None or self.collected.open_in(place):",
        "if self.notifier.on_sample is None:",
        ("tests/run/test_notifier.py",),
    ),
    Mutant(
        "a failed score is left out of what is required",
        "src/evalstone/results/gate.py",
        'undefined = {*columns.rows_of(rows, "undefined")}',
        "undefined = {place for place, value in enumerate(columns.values(rows)) if value is None}",
        ("tests/results/test_gate_without_a_test.py",),
    ),
    Mutant(
        "the record that a ledger did not take is lost",
        "src/evalstone/run/runner.py",
        "                    self._add(each.place, each.record, each.line)  # it has been paid for\n",
        "                    pass\n",
        ("tests/run/test_session.py",),
    ),
    Mutant(
        "a ledger that is gone at the end of a run is not noticed",
        "src/evalstone/ledger/store.py",
        "        self.database.check_files(last=True)\n",
        "",
        ("tests/ledger/test_lost_file.py",),
    ),
    Mutant(
        "a stop lets a sample's next question be paid for",
        "src/evalstone/run/calls.py",
        "if (stop := call.stop) is not None and stop.requested:",
        "if False:",
        ("tests/run/test_session.py",),
    ),
    Mutant(
        "an unforeseen error looks like a missed threshold",
        "src/evalstone/cli/__init__.py",
        "        sys.exit(3)",
        "        sys.exit(1)",
        ("tests/cli/test_process.py",),
    ),
    # ---- Secrets ----
    Mutant(
        "a password is shown where its option is in capitals",
        "src/evalstone/_core/redaction.py",
        '(?:pat|otp)$",\n    re.IGNORECASE,',
        '(?:pat|otp)$",\n    0,',
        ("tests/ledger/test_store.py",),
    ),
    Mutant(
        "a key that an endpoint sends back is cut before it is looked for",
        "src/evalstone/models/endpoint.py",
        "content = received(await read_error(response, self.host))",
        "content = await read_error(response, self.host)",
        ("tests/cli/test_secrets.py",),
    ),
    Mutant(
        "an error quotes a setting with its key",
        "src/evalstone/errors.py",
        "super().__init__(masked(PYTHON.written(self.parts)))",
        "super().__init__(PYTHON.written(self.parts))",
        ("tests/_core/test_redaction.py",),
    ),
    Mutant(
        "the password of a URL is not looked for elsewhere",
        "src/evalstone/_core/redaction.py",
        'found += [match[2], match[2].partition("@")[0]]',
        "pass",
        ("tests/_core/test_redaction.py",),
    ),
    # ---- Pages ----
    Mutant(
        "HTML isn't escaped", f"{REPORT}/html.py", "autoescape=True", "autoescape=False", ("tests/report/test_html.py",)
    ),
    Mutant(
        "invisible characters stay in HTML",
        f"{REPORT}/html.py",
        "finalize=_finalized,",
        "",
        ("tests/report/test_html.py",),
    ),
    Mutant(
        "pages may load anything",
        f"{REPORT}/html.py",
        "default-src 'none'",
        "default-src *",
        ("tests/report/test_html.py",),
    ),
    *unescaped(),
    Mutant(
        "scripts read judged text as HTML",
        f"{REPORT}/assets/claims.js",
        "marked.append(part);",
        "marked.innerHTML = part;",
        ("tests/report/test_html.py",),
    ),
    Mutant(
        "scripts read judged text as HTML by another way",
        f"{REPORT}/assets/claims.js",
        "marked.append(part);",
        "marked.append(document.createRange().createContextualFragment(part));",
        ("tests/report/test_pages_in_a_browser.py",),
    ),
    Mutant(
        "the list of samples is sorted backwards",
        f"{REPORT}/assets/list.js",
        "values.get(a) - values.get(b)",
        "values.get(b) - values.get(a)",
        ("tests/report/test_pages_in_a_browser.py",),
    ),
    Mutant(
        "samples without a score come first",
        f"{REPORT}/assets/list.js",
        "?? Infinity",
        "?? -Infinity",
        ("tests/report/test_pages_in_a_browser.py",),
    ),
    Mutant(
        "served pages answer to any name",
        f"{VIEW}/security.py",
        "return name in self.hosts or",
        "return True or",
        ("tests/view/test_security.py",),
    ),
    Mutant(
        "served pages answer to other sites",
        f"{VIEW}/security.py",
        'if sites - {"none", "same-origin"} and not follows:',
        "if False:",
        ("tests/view/test_security.py",),
    ),
    Mutant(
        "served pages need no token",
        f"{VIEW}/security.py",
        "if self.token and not",
        "if False and not",
        ("tests/view/test_security.py",),
    ),
    Mutant(
        "served pages may load anything",
        f"{VIEW}/security.py",
        "default-src 'none'",
        "default-src *",
        ("tests/view/test_security.py",),
    ),
    Mutant(
        "a ledger that is only read can be written",
        "src/evalstone/ledger/sqlite.py",
        "PRAGMA query_only=ON",
        "PRAGMA query_only=OFF",
        ("tests/ledger/test_read_only.py",),
    ),
    Mutant(
        "a list begins with samples without a score",
        f"{VIEW}/indexing/index.py",
        "(without, with_value) if back else (with_value, without)",
        "(with_value, without) if back else (without, with_value)",
        ("tests/view/test_index.py",),
    ),
    # ---- What reports show ----
    Mutant(
        "the worst samples are the best",
        f"{VIEWS}/ranking.py",
        "smallest_places(means[places], most)",
        "smallest_places(-means[places], most)",
        ("tests/results/views/test_run.py",),
    ),
    Mutant(
        "where lower is better, the worst samples are the best",
        "src/evalstone/results/summary.py",
        "return 1 - fraction if self.lower_is_better else fraction",
        "return fraction",
        ("tests/results/views/test_run.py",),
    ),
    Mutant(
        "a page of very many samples holds the best",
        f"{VIEWS}/ranking.py",
        "smallest_places(np.where(np.isnan(means), -1.0, means), most)",
        "smallest_places(-np.where(np.isnan(means), -1.0, means), most)",
        ("tests/report/test_html.py",),
    ),
    Mutant(
        "a sample's headline is the reason of its best score",
        f"{VIEWS}/samples.py",
        "at = min(scored)[1] if scored else 0",
        "at = max(scored)[1] if scored else 0",
        ("tests/results/views/test_run.py",),
    ),
    Mutant(
        "JUnit attributes aren't sanitized",
        f"{VIEWS}/junit.py",
        "return _quoted(safe(text, LONGEST_ATTRIBUTE))",
        "return _quoted(text)",
        ("tests/results/views/test_junit.py",),
    ),
    Mutant(
        "JUnit texts aren't sanitized",
        f"{VIEWS}/junit.py",
        "escape(visible(case.message))",
        "escape(case.message)",
        ("tests/results/views/test_junit.py",),
    ),
    Mutant(
        "JUnit messages aren't sanitized",
        f"{VIEWS}/junit.py",
        "_quoted(safe(case.message, LONGEST_MESSAGE))",
        "_quoted(case.message)",
        ("tests/results/views/test_junit.py",),
    ),
    # ---- Charts ----
    Mutant(
        "the axis of an interval ends at 1 on every scale",
        f"{TEMPLATES}/charts.html",
        "{{ axis(0, chart.scale, height - 14,",
        "{{ axis(0, 1, height - 14,",
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "the better end of an axis is the worse one",
        f"{TEMPLATES}/charts.html",
        '"low" if chart.lower_is_better else "high"',
        '"high" if chart.lower_is_better else "low"',
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "an axis is mirrored",
        f"{TEMPLATES}/charts.html",
        "{% macro at(value, scale) %}{{ number(edge + (width - 2 * edge) * value / scale) }}",
        "{% macro at(value, scale) %}{{ number(width - edge - (width - 2 * edge) * value / scale) }}",
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "scores are drawn as if every scale ended at 1",
        f"{TEMPLATES}/charts.html",
        "{% macro at(value, scale) %}{{ number(edge + (width - 2 * edge) * value / scale) }}",
        "{% macro at(value, scale) %}{{ number(edge + (width - 2 * edge) * value) }}",
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "a difference is drawn on the wrong side of zero",
        f"{TEMPLATES}/charts.html",
        "number(width / 2 + (width / 2 - edge) *",
        "number(width / 2 - (width / 2 - edge) *",
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "the axis of a difference is mirrored",
        f"{TEMPLATES}/charts.html",
        "{{ axis(-chart.reach, chart.reach, height - 14) }}",
        "{{ axis(chart.reach, -chart.reach, height - 14) }}",
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "a histogram is mirrored",
        f"{TEMPLATES}/charts.html",
        'x="{{ number(edge + loop.index0 * bin + 0.7) }}"',
        'x="{{ number(width - edge - loop.index * bin + 0.7) }}"',
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "the bars of a histogram don't stand on its axis",
        f"{TEMPLATES}/charts.html",
        'y="{{ number(base - tall) }}"',
        'y="4.0"',
        ("tests/report/test_charts.py",),
    ),
    Mutant(
        "a reliability diagram is upside down",
        f"{TEMPLATES}/charts.html",
        "{{ number(size - margin - (size - 2 * margin) * share) }}",
        "{{ number(margin + (size - 2 * margin) * share) }}",
        ("tests/results/views/test_calibration.py",),
    ),
    # ---- Statistics ----
    Mutant(
        "what a sample didn't show counts for nothing",
        "src/evalstone/stats/bounded_mean.py",
        "min(1.0, max(seen, with_unseen), self._tail(m, low))",
        "min(1.0, seen, self._tail(m, low))",
        ("tests/stats/test_bounded_mean.py",),
    ),
    Mutant(
        "limits take no account of what a sample didn't show",
        "src/evalstone/stats/bounded_mean.py",
        "limit = min(seen, low + (largest - low) * math.exp((math.log(alpha) - highest) / self.units))",
        "limit = seen",
        ("tests/stats/test_bounded_mean.py",),
    ),
    Mutant(
        "clusters of unequal size weigh the same",
        "src/evalstone/stats/weighted_mean.py",
        "            weights = unequal(weights)\n        if weights is None:",
        "            weights = None\n        if weights is None:",
        ("tests/stats/test_weighted_mean.py",),
    ),
    Mutant(
        "unseen samples weigh as little as the lightest one",
        "src/evalstone/stats/weighted_mean.py",
        "heaviest = max(self.heaviest, *(weight for _, weight, _ in self.points))",
        "heaviest = min(weight for _, weight, _ in self.points)",
        ("tests/stats/test_weighted_mean.py",),
    ),
    Mutant(
        "unseen samples of a rate weigh no more than its own",
        "src/evalstone/stats/weighted_mean.py",
        "heaviest = max(self.heaviest, *(weight for _, weight, _ in self.points))",
        "heaviest = max(weight for _, weight, _ in self.points)",
        ("tests/stats/test_weighted_agreement.py",),
    ),
    Mutant(
        "labels that were drawn by strata count equally",
        "src/evalstone/results/labels.py",
        "return [self.sizes[self.of[name]] / drawn[self.of[name]] for name in names]",
        "return [1.0 for name in names]",
        ("tests/judge_quality/test_calibrate.py",),
    ),
    Mutant(
        "a gate ignores weights",
        "src/evalstone/results/gate.py",
        "scores.labels, scores.unequal_weights",
        "scores.labels, None",
        ("tests/results/test_weights.py",),
    ),
    Mutant(
        "runs are compared though their weights differ",
        "src/evalstone/results/scores.py",
        '        if one != other:\n            raise ConfigError(\n                f"sample {name!r:.80} has a weight',
        '        if False:\n            raise ConfigError(\n                f"sample {name!r:.80} has a weight',
        ("tests/results/test_weights.py",),
    ),
    Mutant(
        "McNemar's test is the exact one",
        "src/evalstone/stats/paired_tests.py",
        "binomial_cdf(k, n, 0.5) + binomial_cdf(k - 1, n, 0.5)",
        "2 * binomial_cdf(k, n, 0.5)",
        ("tests/stats/test_paired_tests.py",),
    ),
    Mutant(
        "a missing score counts as the worst for a fail, too",
        "src/evalstone/stats/gates.py",
        "(self.lowest if side == 1 else self.highest).p_value(threshold, side)",
        "self.lowest.p_value(threshold, side)",
        ("tests/stats/test_gates.py",),
    ),
    Mutant(
        "Holm's method without its steps down",
        "src/evalstone/stats/multiple_testing.py",
        "scaled = ((m - rank) * p_values[place] for rank, place in enumerate(order))",
        "scaled = (m * p_values[place] for rank, place in enumerate(order))",
        ("tests/stats/test_multiple_testing.py",),
    ),
    Mutant(
        "Holm's method doesn't keep the order of p-values",
        "src/evalstone/stats/multiple_testing.py",
        "itertools.accumulate(scaled, max)",
        "itertools.accumulate(scaled, lambda _, p: p)",
        ("tests/stats/test_multiple_testing.py",),
    ),
    Mutant(
        "the limits of a gate are Bonferroni's",
        "src/evalstone/stats/gates.py",
        "alphas[place] = alpha / (m - min(rank, rejected))",
        "alphas[place] = alpha / m",
        ("tests/stats/test_gates.py",),
    ),
    Mutant(
        "drift is tested at half its level",
        "src/evalstone/stats/drift.py",
        "if p_value <= 1 - interval.confidence:",
        "if p_value <= (1 - interval.confidence) / 2:",
        ("tests/stats/test_drift.py",),
    ),
    Mutant(
        "drift is tested at twice its level",
        "src/evalstone/stats/drift.py",
        "if p_value <= 1 - interval.confidence:",
        "if p_value <= 2 * (1 - interval.confidence):",
        ("tests/stats/test_drift.py",),
    ),
    Mutant(
        "the drift of runs ignores the confidence",
        "src/evalstone/results/drift.py",
        "            confidence=confidence,\n",
        "",
        ("tests/results/test_drift.py",),
    ),
    Mutant(
        "the drift of runs ignores the tolerance",
        "src/evalstone/results/drift.py",
        "tolerance=None if tolerance is None else tolerance * pair.info.scale",
        "tolerance=None",
        ("tests/results/test_drift.py",),
    ),
    # ---- Verdicts ----
    Mutant(
        "compare's verdict is at twice alpha",
        "src/evalstone/results/compare.py",
        "if self.adjusted_p_value > 1 - self.confidence",
        "if self.adjusted_p_value > 2 * (1 - self.confidence)",
        ("tests/results/test_compare.py",),
    ),
    Mutant(
        "compare's verdict is at half of alpha",
        "src/evalstone/results/compare.py",
        "if self.adjusted_p_value > 1 - self.confidence",
        "if self.adjusted_p_value > (1 - self.confidence) / 2",
        ("tests/results/test_compare.py",),
    ),
    Mutant(
        "compare's verdict isn't corrected",
        "src/evalstone/results/compare.py",
        "if self.adjusted_p_value > 1 - self.confidence",
        "if self.result.p_value > 1 - self.confidence",
        ("tests/results/test_compare.py",),
    ),
    Mutant(
        "where lower is better, a rise is called better",
        "src/evalstone/results/compare.py",
        "return -self.difference.estimate if self.info.lower_is_better else self.difference.estimate",
        "return self.difference.estimate",
        ("tests/results/test_compare.py",),
    ),
    Mutant(
        "a gate doesn't pass at exactly alpha",
        "src/evalstone/stats/gates.py",
        '"pass" if p[0] <= alpha else',
        '"pass" if p[0] < alpha else',
        ("tests/stats/test_gates.py",),
    ),
    Mutant(
        "a gate doesn't fail at exactly alpha",
        "src/evalstone/stats/gates.py",
        '"fail" if p[1] <= alpha else',
        '"fail" if p[1] < alpha else',
        ("tests/stats/test_gates.py",),
    ),
    Mutant(
        "a regression takes the samples of a group for independent",
        "src/evalstone/results/gate.py",
        "            pair.groups,\n            pair.weights,\n            stopped=",
        "            None,\n            pair.weights,\n            stopped=",
        ("tests/results/test_gate.py",),
    ),
    Mutant(
        "a gate leaves out missing scores",
        "src/evalstone/results/missing_scores.py",
        '"worst": (),',
        '"worst": KINDS[1:],',
        ("tests/results/test_gate.py",),
    ),
    Mutant(
        "a gate keeps no part of alpha for later looks",
        "src/evalstone/stats/gates.py",
        "4 * alpha / 5 if look == 1",
        "alpha if look == 1",
        ("tests/results/test_looks.py",),
    ),
    Mutant(
        "a gate takes a run that its own gate stopped for one of a fixed size",
        "src/evalstone/results/gate.py",
        "info.scale, groups, weights, stopped, human, strata)",
        "info.scale, groups, weights, False, human, strata)",
        ("tests/results/test_gate.py",),
    ),
    Mutant(
        "a stopped run that is read again shows an interval for a fixed number of samples",
        "src/evalstone/results/run.py",
        "else with_sequences(summary, columns_of(scorers, records), drawn),",
        "else summary,",
        ("tests/run/test_sequential.py",),
    ),
    Mutant(
        "a run that its own gate stopped is compared as one of a fixed size",
        "src/evalstone/results/paired_scores.py",
        "stopped=order is not None,",
        "stopped=False,",
        ("tests/run/test_baseline.py",),
    ),
    Mutant(
        "a comparison of a stopped run takes its samples in the order of the dataset",
        "src/evalstone/results/paired_scores.py",
        "drawn = sorted((order[name], x, y)",
        "drawn = list((order[name], x, y)",
        ("tests/run/test_baseline.py",),
    ),
    Mutant(
        "a gate that watches a run takes a missing score for no difference from the baseline",
        "src/evalstone/run/baseline.py",
        "possible_difference(before, after, scale=self._scale, reach=self.reach)",
        "possible_difference(before or 0.0, after or 0.0, scale=self._scale, reach=self.reach)",
        ("tests/run/test_baseline.py",),
    ),
    Mutant(
        "a baseline that its own gate stopped is as good as any",
        "src/evalstone/run/baseline.py",
        "if run.drawn is not None:",
        "if False:",
        ("tests/run/test_baseline.py",),
    ),
    Mutant(
        "a sequential comparison calls a difference within the margin better",
        "src/evalstone/stats/sequential.py",
        "if self._margin is not None and -self._margin <= low and high <= self._margin:",
        "if False:",
        ("tests/stats/test_sequential_comparison.py",),
    ),
    Mutant(
        "a score at a threshold doesn't reach it",
        "src/evalstone/types/records.py",
        "return missing <= TOLERANCE * scale",
        "return missing < -TOLERANCE * scale",
        ("tests/stats/test_thresholds.py",),
    ),
    Mutant(
        "a score that misses a threshold by rounding doesn't reach it",
        "src/evalstone/types/records.py",
        "return missing <= TOLERANCE * scale",
        "return missing <= 0",
        ("tests/stats/test_thresholds.py",),
    ),
    Mutant(
        "a pass rate counts high scores where lower is better",
        "src/evalstone/results/gate.py",
        "threshold=threshold, scale=info.scale, lower_is_better=lower)",
        "threshold=threshold, scale=info.scale)",
        ("tests/results/test_gate.py",),
    ),
    Mutant(
        "a bound of the wrong direction is accepted",
        "src/evalstone/results/gate_criteria.py",
        "if DIRECTIONS.get(criterion, info.lower_is_better) is not info.lower_is_better:",
        "if False:",
        ("tests/results/test_gate.py",),
    ),
    Mutant(
        "a threshold at the end of the scale is refused",
        "src/evalstone/results/gate_criteria.py",
        "if not 0 <= threshold <= scale:",
        "if not 0 < threshold < scale:",
        ("tests/cli/test_run.py::test_a_mean_at_the_upper_threshold_meets_it",),
    ),
    # ---- Bad judges ----
    Mutant(
        "a flawed calibration replaces one without a flaw",
        "src/evalstone/results/saved_calibrations.py",
        "return stored if stored.flaw is None else None",
        "return None",
        ("tests/results/test_saved_calibrations.py",),
    ),
    Mutant(
        "the latest calibration is used, flawed or not",
        "src/evalstone/results/saved_calibrations.py",
        "key=lambda one: (one.unusable is not None, one.flaw is not None)",
        "key=lambda one: 0",
        ("tests/results/test_saved_calibrations.py",),
    ),
    Mutant(
        "the bad answers that a judge caught are the good ones where lower is better",
        f"{VIEWS}/calibration.py",
        "if calibration.lower_is_better:\n        bad,",
        "if not calibration.lower_is_better:\n        bad,",
        ("tests/results/views/test_run.py",),
    ),
    Mutant(
        "a run that its judge gave no answer ends with exit code 0",
        "src/evalstone/results/endings.py",
        "if any(line.no_answer for line in judged) and not any(line.n_score for line in judged):",
        "if False:",
        ("tests/cli/test_judge.py::test_a_judge_that_reaches_no_verdict_ends_a_run_with_exit_code_3",),
    ),
    Mutant(
        "a gate decides checks of a run that was broken off",
        "src/evalstone/results/gate.py",
        "decisions = [_undecided(decision, run, baseline) for decision in decisions]",
        "decisions = list(decisions)",
        ("tests/results/test_gate.py",),
    ),
    Mutant(
        "a run whose samples can't be written keeps those of another run",
        "src/evalstone/results/files.py",
        "if not isinstance(run.samples, StoredSamples) or run.samples.path.resolve() != (path / SAMPLES).resolve():",
        "if False:",
        ("tests/results/test_files.py",),
    ),
    # ---- Replies written for the case ----
    Mutant(
        "a placeholder is a text",
        "src/evalstone/_core/parsing.py",
        "and placeholder.fullmatch(text) and text not in words():",
        "and False:",
        ("tests/questions/test_echo.py",),
    ),
    Mutant(
        "a worked example may be copied",
        "src/evalstone/_core/parsing.py",
        "if is_copied(text):",
        "if False:",
        ("tests/questions/test_echo.py",),
    ),
    Mutant(
        "a supported claim needs no passage",
        "src/evalstone/questions/reply.py",
        "elif not values[field.name]:",
        "elif False:",
        ("tests/questions/test_grounded.py",),
    ),
    Mutant(
        "invented claims are claims of the text",
        "src/evalstone/questions/markers.py",
        "if foreign else",
        "if False else",
        ("tests/questions/test_grounded.py",),
    ),
    Mutant(
        "quoted parts need not be in the text",
        "src/evalstone/questions/reply.py",
        "if values[field.name] or not _evidence(field):",
        "if False:",
        ("tests/questions/test_grounded.py",),
    ),
    Mutant(
        "an ungrounded item is dropped before a correction",
        "src/evalstone/judges/model.py",
        "drop = last or isinstance(failure, UngroundedItems)",
        "drop = True",
        ("tests/judges/test_corrections.py",),
    ),
    Mutant(
        "half of a list may be dropped",
        "src/evalstone/questions/ungrounded.py",
        "<= max(1, total // 10)",
        "<= max(1, total // 2)",
        ("tests/questions/test_ungrounded.py",),
    ),
    Mutant(
        "a list that did not end counts",
        "src/evalstone/questions/reply.py",
        "if len(items) >= MOST_ITEMS:",
        "if False:",
        ("tests/questions/test_grounded.py",),
    ),
    # ---- Pages ----
    Mutant(
        "texts on pages aren't escaped",
        f"{REPORT}/html.py",
        "autoescape=True",
        "autoescape=False",
        ("tests/view/test_compare.py", "tests/view/test_label.py"),
    ),
    Mutant(
        "a sample that evalstone wrote is read by what its texts look like",
        "src/evalstone/datasets/rows.py",
        "if isinstance(row, SampleRow) and",
        "if False and",
        ("tests/datasets/test_stored.py",),
    ),
    Mutant(
        "texts beside each other in a list with commas are read as two passages",
        "src/evalstone/_core/printed.py",
        "if blanks and (commas or not _are_of_numpy(items)):",
        "if False:",
        ("tests/_core/test_literals.py",),
    ),
    Mutant(
        "a printed document is read although its text isn't escaped",
        "src/evalstone/_core/printed.py",
        r"""page_content=(?:'([^'\\]*+)'""",
        r"""page_content=(?:'([^']*+)'""",
        ("tests/_core/test_literals.py",),
    ),
    Mutant(
        "a sheet's merged cells are read as blank",
        "src/evalstone/datasets/sheets.py",
        "if bottom + 1 > header:",
        "if False:",
        ("tests/datasets/test_dataset_sheets.py",),
    ),
    Mutant(
        "a check passes data with an ID twice",
        "src/evalstone/run/data_check.py",
        "for later, first in used:",
        "for later, first in ():",
        ("tests/run/test_data_check.py",),
    ),
    Mutant(
        "an edited dataset overwrites a file that evalstone didn't write",
        f"{VIEW}/drafts.py",
        "if not line.startswith(_BEGINNING):",
        "if False:",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "an edited dataset is written through a link",
        f"{VIEW}/drafts.py",
        'if path.is_symlink() or not path.is_file():\n                return ""\n            state',
        'if not path.is_file():\n                return ""\n            state',
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "an edited dataset overwrites what another program wrote meanwhile",
        f"{VIEW}/drafts.py",
        "if self.hash_of(file) != replaces or not self.is_ours(file):",
        "if False:",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "an edited dataset overwrites what another program wrote while it was saved",
        f"{VIEW}/drafts.py",
        '(f"{line}\\n" for line in sample_lines(samples))\n            self.check_unchanged(file, replaces)',
        '(f"{line}\\n" for line in sample_lines(samples))',
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "the edits of a dataset are written where a link leads",
        f"{VIEW}/drafts.py",
        "if path.is_symlink() or not path.is_file():\n                raise",
        "if False:\n                raise",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "an edit overwrites one that was made elsewhere",
        f"{VIEW}/pages/edit.py",
        'if form.fields.get("seen", "") != row_hash(row):',
        "if False:",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "edits are saved that the page didn't show",
        f"{VIEW}/pages/edit.py",
        'if form.fields.get("state", "") != editing.draft.state or',
        "if",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "an empty text of a sample is gone once its form was sent",
        f"{VIEW}/sample_form.py",
        'return "" if sent.get(each.empty) else None',
        "return None",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "a sample that is added replaces another one of its ID",
        f"{VIEW}/editing.py",
        "return storable(id) in self.draft.changes or storable(id) in self.editing.places.ids",
        "return False",
        ("tests/view/test_edit.py",),
    ),
    Mutant(
        "a form needs no token",
        f"{VIEW}/forms.py",
        "if not hmac.compare_digest(form.fields.get(TOKEN",
        "if False and not hmac.compare_digest(form.fields.get(TOKEN",
        ("tests/view/test_forms.py",),
    ),
    Mutant(
        "a form of another site's page is taken",
        f"{VIEW}/security.py",
        'if any(origin.partition("://")[2] != hosts[0] for origin in origins):',
        "if False:",
        ("tests/view/test_security.py", "tests/view/test_forms.py"),
    ),
    Mutant(
        "a form without an origin is taken",
        f"{VIEW}/security.py",
        "if sends and not origins:",
        "if False:",
        ("tests/view/test_forms.py",),
    ),
    Mutant(
        "the page for labeling shows the judge's score",
        f"{VIEW}/pages/label.py",
        'why=choice.why if choice else ""',
        'why=f"{choice.why} {sheet.values[sheet.places[choice.key]]}" if choice else ""',
        ("tests/view/test_label.py",),
    ),
    Mutant(
        "the page for labeling shows metadata that may say what the label is",
        f"{VIEW}/pages/label.py",
        "sample = unlabeled(sample, sheet)",
        "pass",
        ("tests/view/test_label.py",),
    ),
    Mutant(
        "a label forgets with which probability its sample was chosen",
        "src/evalstone/judge_quality/labeling.py",
        "probability=choice.probability,",
        "probability=None,",
        ("tests/view/test_label.py",),
    ),
    Mutant(
        "a sample that was opened by hand counts as chosen at random",
        "src/evalstone/judge_quality/labeling.py",
        "choice = choice if choice is not None and choice.key == key else",
        "choice = replace(choice, key=key) if choice is not None else",
        ("tests/view/test_label.py",),
    ),
    Mutant(
        "what people wrote into a failure mode is code in its scorer's file",
        "src/evalstone/judge_quality/failure_modes.py",
        "    {question!r},\n",
        '    "{question}",\n',
        ("tests/view/test_modes.py",),
    ),
    Mutant(
        "prune deletes runs with labels",
        "src/evalstone/ledger/maintenance.py",
        "SELECT run FROM labels UNION SELECT run FROM mode_labels UNION SELECT run FROM pins",
        "SELECT run FROM pins",
        ("tests/ledger/test_labels.py",),
    ),
    Mutant(
        "a comparison lists what is fixed as regressed",
        f"{VIEW}/indexing/comparison_tables.py",
        'return "low < 0" if everything',
        'return "high > 0" if everything',
        ("tests/view/test_compare.py",),
    ),
    Mutant(
        "a comparison lists what is fixed in one scorer as regressed",
        f"{VIEW}/indexing/comparison_tables.py",
        '_any(f"d{of}_{s} < 0"',
        '_any(f"d{of}_{s} > 0"',
        ("tests/view/test_compare.py",),
    ),
    Mutant(
        "a comparison counts what is fixed as regressed",
        f"{VIEW}/indexing/comparison_build.py",
        '"regressed": getattr(line.result, "losses", 0)',
        '"regressed": getattr(line.result, "wins", 0)',
        ("tests/view/test_compare.py",),
    ),
    Mutant(
        "a comparison takes more for better where lower is better",
        f"{VIEW}/indexing/comparison_build.py",
        "unit = (-1 if lines[number].info.lower_is_better else 1) /",
        "unit = 1 /",
        ("tests/view/test_compare.py",),
    ),
    Mutant(
        "a comparison of runs that have changed is shown",
        f"{VIEW}/indexing/comparisons.py",
        "if found.stamp != stamp and not recent:",
        "if False:",
        ("tests/view/test_runs.py",),
    ),
    Mutant(
        "a difference of runs that have changed is shown",
        f"{VIEW}/indexing/comparisons.py",
        "if known is not None and known[0] == stamp:",
        "if known is not None:",
        ("tests/view/test_runs.py",),
    ),
    Mutant(
        "a missing score is shown as 0",
        f"{VIEW}/pages/marks.py",
        "if value is None or outcome != SCORED:",
        "value = value or 0.0\n    if False:",
        ("tests/view/test_pages.py", "tests/view/test_compare.py"),
    ),
    Mutant(
        "a score that a run lacks is 0 in the data of a comparison",
        f"{VIEW}/pages/compare_samples.py",
        '{"outcome": kind, "value": value}',
        '{"outcome": kind, "value": value or 0.0}',
        ("tests/view/test_compare.py",),
    ),
    Mutant(
        "a sample of a run in progress is counted again with each of its records",
        f"{VIEW}/indexing/build.py",
        "self.totals.subtract(counts)",
        "pass",
        ("tests/view/test_growing.py",),
    ),
    Mutant(
        "a failure that was scored again stays a failure while the run goes on",
        f"{VIEW}/indexing/growing.py",
        " or failed != self._failed:",
        ":",
        ("tests/view/test_growing.py",),
    ),
    Mutant(
        "live scores of earlier hours are counted twice",
        f"{VIEW}/live_figures.py",
        "with_more(self.tallies[self._settled.number :])\n        return covered",
        "with_more(self.tallies)\n        return covered",
        ("tests/view/test_live.py",),
    ),
    Mutant(
        "a form starts a file that isn't in the list",
        f"{VIEW}/experiment_files.py",
        "if file.path == path),",
        "if path.endswith(file.path)),",
        ("tests/view/test_experiments.py",),
    ),
    Mutant(
        "a link to a file elsewhere is listed as an experiment",
        f"{VIEW}/experiment_files.py",
        " and not file.is_symlink()",
        "",
        ("tests/view/test_experiments.py",),
    ),
    Mutant(
        "pages beyond loopback start experiments",
        f"{VIEW}/experiments.py",
        "if refusal := self.shelf.refusal or self._refusal:",
        "if refusal := self.shelf.refusal:",
        ("tests/view/test_experiments.py",),
    ),
    Mutant(
        "an experiment is started that may not be",
        f"{VIEW}/experiments.py",
        "if found.refusal:",
        "if False:",
        ("tests/view/test_experiments.py",),
    ),
    Mutant(
        "a batch in files ends before each request has a result",
        "src/evalstone/models/batch/files.py",
        "if len(results) >= requests else",
        "if results else",
        ("tests/run/test_batch_files.py",),
    ),
    Mutant(
        "results of other requests are taken for those of a batch",
        "src/evalstone/models/batch/files.py",
        "if own.fullmatch(result.custom_id):",
        "if result.custom_id:",
        ("tests/run/test_batch_files.py",),
    ),
    Mutant(
        "a file of results is read whatever its size",
        "src/evalstone/models/batch/files.py",
        "if (size := sum(file.size for file in files)) > most:",
        "if (size := sum(file.size for file in files)) > most and not files:",
        ("tests/run/test_batch_files.py",),
    ),
    Mutant(
        "a batch in files is ended by results alone",
        "src/evalstone/models/batch/files.py",
        "if files and not file else",
        "if files else",
        ("tests/run/test_batch_files.py",),
    ),
    Mutant(
        "a run polls the batches of another kind",
        "src/evalstone/run/batch/runner.py",
        "if row.api != self.api.kind or row.remote is None:",
        "if row.remote is None:",
        ("tests/run/test_batch_files.py",),
    ),
    Mutant(
        "the action ignores a largest change without a check that it is for",
        "action/evaluate.py",
        'if lines("max-change") and not any(map(lines, OF_BASELINE)):',
        "if False:",
        ("tests/test_action.py",),
    ),
    Mutant(
        "the action decides without results",
        "action/evaluate.py",
        ' or not Path(results, "summary.json").is_file():',
        ":",
        ("tests/test_action.py",),
    ),
    Mutant(
        "a regression without a baseline passes in the action",
        "action/evaluate.py",
        'if verdict in ("pass", "none"):\n            verdict, code',
        'if verdict in ("pass",):\n            verdict, code',
        ("tests/test_action.py",),
    ),
    Mutant(
        "a score in Python is paid for again",
        "src/evalstone/api.py",
        "= DEFAULT_LEDGER,\n    keep_reasoning: bool = False,\n    **fields",
        "= None,\n    keep_reasoning: bool = False,\n    **fields",
        ("tests/cli/test_from_ledger.py",),
    ),
    Mutant(
        "what the code of one plug-in raises hides all others",
        "src/evalstone/scorers/registry.py",
        "return built(named, functools.partial(_scorer_of, value, parameters, named), {})",
        "return _scorer_of(value, parameters, named)",
        ("tests/_core/test_plugins.py",),
    ),
    Mutant(
        "the parameters of a class stand for its documentation",
        "src/evalstone/_core/values.py",
        "    cls.__doc__ = documented  #",
        "    #",
        ("tests/_core/test_values.py",),
    ),
    Mutant(
        "a block that lacks records is merged",
        "src/evalstone/scale/runs.py",
        "    records.check_samples([block.samples for block in plan.blocks])\n",
        "",
        ("tests/scale/test_runs.py",),
    ),
    Mutant(
        "judge calls of another attempt at a block are read with its records",
        "src/evalstone/results/record_blocks.py",
        'for name in ("plan", "block", "attempt"))',
        'for name in ("plan", "block"))',
        ("tests/scale/test_runs.py",),
    ),
    Mutant(
        "a block that another process wrote is paid for again",
        "src/evalstone/scale/runs.py",
        "    if records_file.found() is not None:  # another process scored it, maybe",
        "    if False:  # another process scored it, maybe",
        ("tests/scale/test_runs.py",),
    ),
    Mutant(
        "a claim counts as supported as in a verifier model's worst window",
        "src/evalstone/judges/onnx.py",
        'supported = max(each["supported"] for each in windows)',
        'supported = min(each["supported"] for each in windows)',
        ("tests/judges/test_onnx.py",),
    ),
    Mutant(
        "a claim of a token classifier counts as supported as its best token",
        "src/evalstone/judges/verifier.py",
        'shares["supported"] < lowest[place]["supported"]',
        'shares["supported"] > lowest[place]["supported"]',
        ("tests/judges/test_onnx.py",),
    ),
    Mutant(
        "windows inside a passage don't overlap, so that evidence is cut in two",
        "src/evalstone/judges/verifier.py",
        "step = max(1, space - space // OVERLAP)",
        "step = max(1, space)",
        ("tests/judges/test_onnx.py",),
    ),
    Mutant(
        "the weights of a verifier model that are in another file are not in its identity",
        "src/evalstone/judges/verifier.py",
        "for path in (self.model, *self.external, self.tokenizer)]",
        "for path in (self.model, self.tokenizer)]",
        ("tests/judges/test_onnx.py",),
    ),
    Mutant(
        "a claim is supported although there are no passages",
        "src/evalstone/judges/onnx.py",
        'nothing: Mapping[Outcome, float] = {"supported": 0.0, "contradicted": 0.0, "not_mentioned": 1.0}',
        'nothing: Mapping[Outcome, float] = {"supported": 1.0, "contradicted": 0.0, "not_mentioned": 0.0}',
        ("tests/judges/test_onnx.py",),
    ),
    Mutant(
        "the action runs a module of the repository",
        "action/evaluate.py",
        '[sys.executable, "-P", "-m"',
        '[sys.executable, "-m"',
        ("tests/test_action.py",),
    ),
    Mutant(
        "what the action prints can end what keeps it from being a command",
        "action/evaluate.py",
        "secrets.token_hex(16)",
        '"0" * 32',
        ("tests/test_action.py",),
    ),
    Mutant(
        "an input of the action goes to another",
        "action/action.yml",
        "INPUT_MIN: ${{ inputs.min }}",
        "INPUT_MIN: ${{ inputs.max }}",
        ("tests/test_action.py",),
    ),
    Mutant(
        "a list of no scorers in a file checks nothing and passes",
        "src/evalstone/cli/config_file.py",
        "if settings[name] in ({}, []):",
        "if settings[name] in ({},):",
        ("tests/cli/test_config_file.py",),
    ),
    Mutant(
        "own code that an option names is looked for beside the file",
        "src/evalstone/cli/config_file.py",
        "                in_file.discard(name)\n",
        "",
        ("tests/cli/test_config_file.py",),
    ),
    Mutant(
        "the cost of parts is known though that of one isn't",
        "src/evalstone/results/summary.py",
        "if self.cost is None or other.cost is None:",
        "if self.cost is None and other.cost is None:",
        ("tests/results/test_summary.py",),
    ),
    Mutant(
        "the repetitions of a question to a composite judge count once",
        "src/evalstone/results/summary.py",
        "_stable_hash(call.judge, call.fingerprint, str(call.repeat_index))",
        "_stable_hash(call.judge, call.fingerprint)",
        ("tests/results/test_summary.py",),
    ),
    Mutant(
        "parameters of a function are ignored",
        "src/evalstone/scorers/registry.py",
        '    if parameters:\n        raise ConfigError(f"{named} takes no parameters',
        '    if False:\n        raise ConfigError(f"{named} takes no parameters',
        ("tests/scorers/custom/test_own_in_runs.py",),
    ),
    Mutant(
        "an own judge's answer of another type is taken",
        "src/evalstone/judges/base.py",
        "if is_own_code(type(judge)) and (problem",
        "if not is_own_code(type(judge)) and (problem",
        ("tests/test_own_classes.py",),
    ),
    Mutant(
        "a required field of an own judge is the property that it takes the place of",
        "src/evalstone/_core/values.py",
        "    for each in required:\n        setattr(cls, each, field())  # else",
        "    for each in ():\n        setattr(cls, each, field())  # else",
        ("tests/test_own_classes.py",),
    ),
    Mutant(
        "each repetition of a scorer is held against criteria of its own",
        "src/evalstone/scorers/wrappers.py",
        "self._number if question.repeatable else 0",
        "self._number",
        ("tests/scorers/test_generated_rubric.py",),
    ),
    Mutant(
        "criteria are written for a sample that has a rubric",
        "src/evalstone/scorers/custom/rubric.py",
        "written = not criteria and self.generate and bool(input)",
        "written = self.generate and bool(input)",
        ("tests/scorers/test_generated_rubric.py",),
    ),
    Mutant(
        "a criterion that is listed twice counts twice",
        "src/evalstone/scorers/custom/rubric.py",
        "    if twice := first_repeated([criterion.description for criterion in criteria]):",
        "    if twice := first_repeated([]):",
        ("tests/scorers/test_generated_rubric.py",),
    ),
    # ---- Imports ----
    Mutant(
        "a score below the scale is imported",
        "src/evalstone/compat/imports/building.py",
        "    if not 0 <= value <= scale:",
        "    if not value <= scale:",
        ("tests/compat/imports/test_importing.py",),
    ),
    Mutant(
        "a printed number that failures explain is a warning",
        "src/evalstone/compat/imports/checking.py",
        "    if counted and _same(printed, _number(",
        "    if not counted and _same(printed, _number(",
        ("tests/compat/imports/test_importing.py",),
    ),
    Mutant(
        "cases are imported in the order of the file",
        "src/evalstone/compat/imports/building.py",
        "order = sorted(range(len(system.trials)), key=system.orders.__getitem__)",
        "order = [*range(len(system.trials))]",
        ("tests/compat/imports/test_importing.py",),
    ),
    Mutant(
        "a grader without a verdict has scored",
        "src/evalstone/compat/imports/promptfoo.py",
        '.get("graderError"):',
        '.get("graderFailed"):',
        ("tests/compat/imports/test_promptfoo.py",),
    ),
    Mutant(
        "every row with an error has failed",
        "src/evalstone/compat/imports/promptfoo.py",
        "    if reason == ERROR or (reason is None and",
        "    if reason in (1, ERROR) or (reason is None and",
        ("tests/compat/imports/test_promptfoo.py",),
    ),
    Mutant(
        "weights of assertions are left out",
        "src/evalstone/compat/imports/promptfoo.py",
        "value = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)",
        "value = sum(values) / len(values)",
        ("tests/compat/imports/test_promptfoo.py",),
    ),
    Mutant(
        "a key that is twice in an object is read",
        "src/evalstone/compat/imports/documents.py",
        "            if key in seen:",
        "            if not key:",
        ("tests/compat/imports/test_importing.py",),
    ),
)
