"""`evalstone mcp`: a server for agents."""

from __future__ import annotations

from typing import Annotated

from evalstone._core.display import quoted
from evalstone.cli import options
from evalstone.cli.completion import FOLDER
from evalstone.cli.options import Values, argument, option
from evalstone.cli.output import to_stderr
from evalstone.results.endings import ExitCode


def mcp(
    folders: Annotated[
        Values, argument("FOLDER", "Results folders, or folders that contain some.", complete=FOLDER)
    ] = None,
    ledger: options.Ledger = None,
    judge: options.Judge = None,
    base_url: options.BaseUrl = None,
    budget: Annotated[
        float | None, option("--budget USD", "Judge", "What all scores together may cost at most.", min=0)
    ] = None,
) -> int:
    """Serve runs and scores to agents, over the Model Context Protocol.

    Reads requests from standard input, as clients of the protocol send them, until it ends. Agents can list and show
    the runs of the ledger and of the folders, their worst samples and comparisons, and score one text. They reach no
    other file. Nothing is written but the judge's answers, to the ledger.
    """
    from evalstone._core.files import is_folder
    from evalstone.cli.values import judge_spec
    from evalstone.errors import ConfigError
    from evalstone.judges.parse import parse_judge
    from evalstone.ledger.base import DEFAULT_LEDGER, existing, is_there
    from evalstone.mcp.desk import Desk
    from evalstone.mcp.server import server
    from evalstone.view.shelf import Shelf

    for name in folders or ():
        if not is_folder(name):
            raise ConfigError(f"there is no folder {quoted(name)}")
    url = DEFAULT_LEDGER if ledger is None else ledger
    if ledger is not None or not folders:
        existing(url)
    shelf = Shelf(url if is_there(url) else None, folders or (), read_only=True)
    asked = parse_judge(judge_spec("lexical" if judge is None else judge, base_url))
    asked.check()
    made = server(Desk(shelf, asked, budget))
    to_stderr(f"Serving {', '.join(shelf.places)} over standard input and output.")
    made.run("stdio")
    return ExitCode.OK
