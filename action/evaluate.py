"""What the GitHub Action runs: `evalstone run`, a gate and a comparison, and one comment on the pull request.

Its inputs come as environment variables. It uses only the standard library, and evalstone by its command line. The exit
code is that of the gate, or of the run where the gate passes (docs/ci.md).
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, cast

LONGEST_COMMENT = 65_000
"""Characters; GitHub takes 65,536."""
SHORT_COMMENT = 10_000
"""Characters of a comment after GitHub refused the long one."""
LONGEST_SUMMARY = 1024 * 1024
"""Bytes of a step's summary; GitHub drops a longer one as a whole."""
ROOM_FOR_ENDS = 400
"""Room for the ends of what is open where a report is cut."""
MOST_PAGES = 50
ATTEMPTS = 4
LONGEST_WAIT = 60
"""Seconds before a call is made again; where GitHub asks for more, it isn't."""
SET_HERE = {
    "--out": "the input results", "-o": "the input results", "--judge": "the input judge", "-j": "the input judge",
    "--scorer": "the input scorers", "-s": "the input scorers", "--markdown": "the output report",
}  # fmt: skip
"""Options of `evalstone run` that are inputs or outputs of the action."""
CHECKS = ("min", "max", "pass-rate", "max-regression", "max-difference", "require")
OF_BASELINE = ("max-regression", "max-difference")
SETTINGS = ("alpha", "missing")
USAGE = 2
UNFINISHED = {3: "incomplete", 5: "scores_failed"}
"""The verdicts of exit codes that no check gives."""
INCONCLUSIVE = {"report": 4, "fail": 1, "pass": 0}


def main() -> int:
    results, title, inconclusive = given("results"), given("name"), given("inconclusive")
    if not results.isprintable() or not results:  # each line of the outputs sets one
        fail("results must be a folder")
    if given("baseline") and Path(given("baseline")).resolve() == Path(results).resolve():
        fail("baseline must be another folder than results, which the run overwrites")
    if has_baseline() and not Path(given("baseline"), "summary.json").is_file():
        fail(f"baseline must be a results folder; {given('baseline')} has no summary.json")
    if inconclusive not in INCONCLUSIVE:
        fail(f"inconclusive must be {', '.join(INCONCLUSIVE)}, not {inconclusive!r}")
    if not re.fullmatch(r"[\w .-]+", title):
        fail(f"name must consist of letters, digits, spaces, dots and hyphens, not {title!r}")
    comments = given("comment") == "true"
    if given("allow-mismatch") not in ("", "true", "false"):
        fail(f"allow-mismatch must be true or false, not {given('allow-mismatch')!r}")
    if not comments and given("comment") != "false":
        fail(f"comment must be true or false, not {given('comment')!r}")
    if lines("max-change") and not any(map(lines, OF_BASELINE)):
        fail("max-change must be with max-regression or max-difference: it is for the difference from a baseline")
    if not given("data"):
        fail("data must be a file with samples, or a TOML file that describes the run")

    try:
        Path(results, "summary.json").unlink(missing_ok=True)  # of an earlier run on the same machine
    except OSError as error:
        fail(f"results must be a folder: {error}")
    scorers = [word for scorer in lines("scorers") for word in ("--scorer", scorer)]
    judge = ["--judge", given("judge")] if given("judge") else []
    try:
        arguments = shlex.split(given("arguments"))
    except ValueError as error:
        fail(f"arguments must be quoted as in a shell: {error}")
    check_arguments(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "run.md")
        run_code, _ = evalstone(
            "run", *scorers, *judge, "--out", results, "--markdown", str(file), *arguments, "--", given("data")
        )
        of_run = text_of(file)
    if run_code not in (0, 1, 3, 4, 5) or not Path(results, "summary.json").is_file():
        stopped("run", run_code or USAGE)

    verdict, gate_code, parts = checked(results, inconclusive)
    if verdict in ("pass", "none"):
        verdict = UNFINISHED.get(run_code, verdict)
    said = ""
    if run_code == 1:  # a threshold among the arguments of the run, or in its file
        verdict, gate_code = "fail", 1
        said = "**A threshold of the run is not met.**"
    if run_code == 4:
        said = "**The samples don't decide the thresholds of the run.**"
        run_code = INCONCLUSIVE[inconclusive]
        verdict = "fail" if verdict == "fail" else "inconclusive"
    comparison = compared(results)
    if comparison and not said:  # the run's own checks, if it has some, are no news
        of_run = f"<details><summary>Run</summary>\n\n{of_run}\n</details>" if of_run else ""
    parts = [said, *parts, comparison, of_run]
    text = f"## {title}\n\n" + "\n\n".join(filter(None, parts)) + "\n"
    report = Path(results, "report.md")
    report.write_text(text, encoding="utf-8")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append(summary, cut(text, LONGEST_SUMMARY, in_bytes=True, rest=f"{report} has all of it"))
    if output := os.environ.get("GITHUB_OUTPUT"):
        append(output, f"verdict={verdict}\nreport={report}\nresults={results}\n")
    if comments:
        comment(title, text)
    return gate_code or run_code


def check_arguments(arguments: list[str]) -> None:
    """Refuse options that are inputs of the action: with `--out`, it would look for the results elsewhere."""
    for argument in arguments:
        short = re.sub("^-[hqv]+(?=[a-z])", "-", argument)[:2]  # those without a value may stand together: -qo FOLDER
        option = argument.partition("=")[0] if argument.startswith("--") else short
        if option in SET_HERE:
            fail(f"arguments must not have {option}: use {SET_HERE[option]}")
        if argument == "--":
            fail("arguments must be options, without --; the samples are the input data")


def checked(results: str, inconclusive: str) -> tuple[str, int, list[str]]:
    """The verdict of the gate, its exit code, and its report. A regression without a baseline is inconclusive."""
    checks = {name: lines(name) for name in CHECKS}
    baseline = has_baseline()
    unmeasured = [] if baseline else [name for name in OF_BASELINE if checks.pop(name)]
    options = [word for name, values in checks.items() for value in values for word in (f"--{name}", value)]
    verdict, code, parts = "none", 0, list[str]()
    if options:
        against = ["--baseline", given("baseline")] if any(checks.get(name) for name in OF_BASELINE) else []
        against += [word for value in lines("max-change") if against for word in ("--max-change", value)]
        against += ["--allow-mismatch"] if against and given("allow-mismatch") == "true" else []
        file = Path(results, "gate.md")
        file.unlink(missing_ok=True)
        # Each run of a workflow is about another state of the system: the first look at it.
        settings = [word for name in SETTINGS if given(name) for word in (f"--{name}", given(name))]
        settings += ["--look", "1", "--inconclusive", inconclusive, "--markdown", str(file), "--json"]
        code, output = evalstone("gate", *options, *against, *settings, "--", results, quiet=True)
        if not file.is_file() or not output:
            stopped("gate", code or USAGE)
        verdict = cast(str, json.loads(output)["verdict"])
        verdict = UNFINISHED.get(code, verdict)
        parts.append(file.read_text("utf-8"))
        file.unlink()
    if unmeasured:
        where = f" {given('baseline')}" if given("baseline") else ""
        problem = f"There is no baseline{where}, so {' and '.join(unmeasured)} can't be decided"
        warn(f"{problem}." if where else f"{problem}. Set the input baseline.")
        parts.append(f"**{problem}.**")
        if verdict in ("pass", "none"):
            verdict, code = "inconclusive", INCONCLUSIVE[inconclusive]
    return verdict, code, parts


def stopped(command: str, code: int) -> NoReturn:
    """End with the exit code of a command that failed, and say so in place of a verdict on earlier answers."""
    title = given("name")
    text = f"## {title}\n\n**There is no verdict: `evalstone {command}` failed. The job's log says why.**\n"
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append(summary, text)
    if given("comment") == "true":
        comment(title, text)
    sys.exit(code)


def compared(results: str) -> str:
    """The comparison with the baseline; "" without one, or with one that doesn't fit."""
    if not has_baseline():
        return ""
    file = Path(results, "part.md")
    file.unlink(missing_ok=True)
    code, _ = evalstone("compare", "--markdown", str(file), "--", given("baseline"), results, quiet=True)
    if code:
        warn("The run can't be compared with the baseline; the log says why.")
    text = text_of(file)
    file.unlink(missing_ok=True)
    return text


def text_of(file: Path) -> str:
    """The text of a file; "" if it wasn't written."""
    return file.read_text("utf-8") if file.is_file() else ""


def has_baseline() -> bool:
    """Whether the baseline is there, as `evalstone ci` sees it: an empty folder is none yet."""
    path = Path(given("baseline"))
    return bool(given("baseline")) and path.exists() and not (path.is_dir() and not any(path.iterdir()))


def install() -> int:
    """Install evalstone: the version that was asked for, or the one that this action is part of."""
    version = given("version")
    if version and not re.fullmatch(r"[\w.+!-]+", version):
        fail(f"version must be a version of evalstone, such as 0.1.0, not {version!r}")
    what = f"evalstone=={version}" if version else str(Path(__file__).resolve().parent.parent)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--", what]
    return subprocess.run(command, check=False).returncode


def evalstone(*arguments: str, quiet: bool = False) -> tuple[int, str]:
    """Run a command of evalstone; its exit code and what it printed, which also goes to the log unless it is for us.

    Judged text in the log must not be read as a command of the workflow. The system that it calls has no use for the
    token to comment with.
    """
    environment = {name: value for name, value in os.environ.items() if name != "INPUT_TOKEN"}
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        command = [sys.executable, "-P", "-m", "evalstone", *arguments]  # not a file of the current folder
        said: list[str] = []
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, encoding="utf-8", errors="backslashreplace", env=environment
        ) as process:
            for line in process.stdout or ():
                said.append(line)
                if not quiet:
                    print(line, end="", flush=True)
    finally:
        print(f"\n::{token}::", flush=True)
    return process.returncode, "".join(said)


# ---- The comment ----


def comment(title: str, text: str) -> None:
    """Write the report as the comment of this name on the pull request, in place of what it was before."""
    number, repository = pull_request(), os.environ.get("GITHUB_REPOSITORY", "")
    if number is None:
        return
    marker = f"<!-- evalstone: {title} -->"
    body = f"{marker}\n{text}"
    longest = LONGEST_COMMENT
    try:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                write_comment(f"/repos/{repository}/issues", number, marker, shortened(body, longest))
                return
            except urllib.error.HTTPError as error:
                too_long = error.code == 422 and len(body) > SHORT_COMMENT and longest != SHORT_COMMENT
                if too_long and attempt < ATTEMPTS:
                    longest = SHORT_COMMENT  # what GitHub counts may be more than our characters
                elif attempt == ATTEMPTS or (seconds := pause(error, attempt)) is None:
                    warn(f"The report could not be posted as a comment ({refusal(error)}). It is in the job's summary.")
                    return
                else:
                    time.sleep(seconds)
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
        warn(f"The report could not be posted as a comment ({type(error).__name__}: {error}).")


def write_comment(issues: str, number: int, marker: str, body: str) -> None:
    """Write a comment in place of the one with the marker, which an attempt that seemed to fail may have made."""
    known = next((one for one in all_of(f"{issues}/{number}/comments") if is_ours(one, marker)), None)
    if known is None:
        call("POST", f"{issues}/{number}/comments", {"body": body})
    else:
        call("PATCH", f"{issues}/comments/{int(known['id'])}", {"body": body})


def pause(error: urllib.error.HTTPError, attempt: int) -> float | None:
    """The seconds after which GitHub may answer; None if it won't, or not soon."""
    after = error.headers.get("Retry-After", "")
    if error.code != 429 and error.code < 500 and not (error.code == 403 and after):
        return None
    seconds = float(after) if after.isdecimal() else 2.0 ** (attempt - 1)
    return seconds if seconds <= LONGEST_WAIT else None


def refusal(error: urllib.error.HTTPError) -> str:
    """What GitHub says, and what it may mean."""
    try:
        said = str(cast("dict[str, Any]", json.loads(error.read()))["message"])
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        said = ""
    hint = ""
    if error.code in (401, 403, 404) and "locked" not in said and "rate limit" not in said:
        hint = "the token may not write: a fork, or the permission pull-requests: write is missing"
    return "; ".join(filter(None, (f"HTTP {error.code}", said[:200], hint)))


def shortened(body: str, longest: int) -> str:
    """A comment that GitHub takes."""
    return cut(body, longest, rest="the summary of the job has all of it")


def cut(text: str, longest: int, *, rest: str, in_bytes: bool = False) -> str:
    """The first lines of a report: within a line, judged text could lose the end of what encloses it."""
    if len(text.encode() if in_bytes else text) <= longest:
        return text
    notice = f"\n\nThe report was cut; {rest}.\n"
    room = longest - len(notice) - ROOM_FOR_ENDS
    start = text.encode()[:room].decode("utf-8", "ignore") if in_bytes else text[:room]
    kept = start.rpartition("\n")[0]
    lines = kept.splitlines()
    open_parts = sum(line.startswith("<details>") - (line == "</details>") for line in lines)
    return kept + "\n\n</details>" * open_parts + notice


def is_ours(one: dict[str, Any], marker: str) -> bool:
    """Whether a comment is the one to update: people may write the marker, too."""
    user = cast("dict[str, Any]", one.get("user") or {})
    if not str(one.get("body") or "").startswith(marker):
        return False
    return user.get("type") == "Bot" or bool(user.get("login") and user["login"] == owner_of_token())


@functools.cache
def owner_of_token() -> str:
    """Whose personal token it is; a workflow's own token belongs to a bot, and may not ask."""
    try:
        return str(cast("dict[str, Any]", call("GET", "/user"))["login"])
    except urllib.error.HTTPError:
        return ""


def pull_request() -> int | None:
    """The number of the pull request that the workflow runs for, if it does."""
    try:
        event = json.loads(Path(os.environ.get("GITHUB_EVENT_PATH", "")).read_text("utf-8"))
        return int(event["pull_request"]["number"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def all_of(path: str) -> Iterator[dict[str, Any]]:
    """All comments, page by page."""
    for page in range(1, MOST_PAGES + 1):
        found = cast("list[dict[str, Any]]", call("GET", f"{path}?per_page=100&page={page}"))
        yield from found
        if len(found) < 100:
            return


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the token elsewhere."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


def call(method: str, path: str, data: dict[str, str] | None = None) -> object:
    """A call of GitHub's REST API, as JSON. Raises HTTPError, OSError and ValueError."""
    api = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {given('token')}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(api + path, body, headers, method=method)
    with urllib.request.build_opener(NoRedirect).open(request, timeout=30) as response:
        return json.loads(response.read())


# ---- Inputs and outputs ----


def given(name: str) -> str:
    """An input of the action."""
    return os.environ.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip()


def lines(name: str) -> list[str]:
    """The lines of an input that aren't empty."""
    return [line.strip() for line in given(name).splitlines() if line.strip()]


def append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)


def warn(text: str) -> None:
    print(f"::warning::{escaped(text)}", flush=True)


def fail(text: str) -> NoReturn:
    print(f"::error::{escaped(text)}", flush=True)
    sys.exit(USAGE)


def escaped(text: str) -> str:
    """Text as a command of the workflow takes it, on one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    sys.exit(install() if sys.argv[1:] == ["install"] else main())
