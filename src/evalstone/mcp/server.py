"""The server of the Model Context Protocol: five tools over what a desk answers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from evalstone._core.file_format import installed_version
from evalstone._core.front_ends import COMMAND_LINE
from evalstone.errors import EvalstoneError, MissingDependency
from evalstone.mcp.desk import MOST_RUNS, MOST_SAMPLES, UNTRUSTED, Desk

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTRUCTIONS = (
    "Saved evaluations of language models, RAG pipelines and agents. Report a mean with its interval and its counts "
    "n_score, n_skipped and n_failed: a skipped or failed sample is not a 0. Whether one run is better than another is "
    f"the verdict of compare_runs, not the difference of two means. {UNTRUSTED}"
)
_Run = Annotated[str, Field(description="The ID or name of a run, its folder as list_runs shows it, or last.")]
_Scorer = Annotated[str, Field(description="The name of a scorer, such as faithfulness or contains.")]


def server(desk: Desk) -> MCPServer[Any]:
    """The server of a desk. Raises MissingDependency without the library `mcp`."""
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an extra
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415
        from mcp_types import ToolAnnotations  # noqa: PLC0415
    except ImportError:
        raise MissingDependency("mcp", "mcp") from None

    made: MCPServer[Any] = MCPServer(
        "evalstone", version=installed_version(), instructions=INSTRUCTIONS, log_level="WARNING"
    )
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    scoring = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)

    @contextmanager
    def explained() -> Generator[None]:
        """Errors of evalstone as errors of a tool, which the agent reads."""
        try:
            yield
        except EvalstoneError as error:
            raise ToolError(error.text(COMMAND_LINE)) from error

    @made.tool(annotations=reading)
    def list_runs(
        tag: Annotated[str, Field(description="Only runs with this tag.")] = "",
        limit: Annotated[int, Field(description="The latest N runs.", ge=1, le=MOST_RUNS)] = 20,
    ) -> dict[str, Any]:
        """List saved runs, latest first: dataset, judge, and the mean of each scorer with its interval and counts."""
        with explained():
            return desk.runs(tag, limit)

    @made.tool(annotations=reading)
    def show_run(run: _Run) -> dict[str, Any]:
        """Show a run: means with intervals, outcomes, notes on what to doubt, cost, and how it ended."""
        with explained():
            return desk.run(run)

    @made.tool(annotations=reading)
    def worst_samples(
        run: _Run,
        scorer: Annotated[str, Field(description="Rank by this scorer of the run instead of by all.")] = "",
        top: Annotated[int, Field(description="How many samples.", ge=1, le=MOST_SAMPLES)] = 5,
    ) -> dict[str, Any]:
        """Show the samples with the lowest scores of a run, worst first: their texts, scores, reasons and evidence."""
        with explained():
            return desk.worst(run, scorer, top)

    @made.tool(annotations=reading)
    def compare_runs(baseline: _Run, run: _Run) -> dict[str, Any]:
        """Compare a run with a baseline over the same samples. `verdict` of each scorer is better, worse, equivalent
        or inconclusive. Runs of other samples, scorers or judges are refused."""
        with explained():
            return desk.compare(baseline, run)

    @made.tool(annotations=scoring)
    async def score_text(
        scorer: _Scorer,
        output: Annotated[str, Field(description="The answer to score.")],
        input: Annotated[str | None, Field(description="The question.")] = None,
        context: Annotated[list[str] | None, Field(description="The passages behind the answer.")] = None,
        reference: Annotated[str | None, Field(description="The correct answer.")] = None,
        parameters: Annotated[
            dict[str, Any] | None, Field(description='Parameters of the scorer, such as {"expected": "Paris"}.')
        ] = None,
    ) -> dict[str, Any]:
        """Score one answer with one scorer. A skipped score is undefined for this sample: `reason` says why."""
        fields = {"input": input, "output": output, "context": context, "reference": reference}
        with explained():
            return await desk.score(scorer, fields, parameters or {})

    return made
