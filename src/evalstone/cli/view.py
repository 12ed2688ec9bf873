"""`evalstone view`: pages over saved runs in a browser."""

from __future__ import annotations

import gc
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from evalstone._core.display import quoted
from evalstone._core.environment import expanded
from evalstone._core.front_ends import Setting
from evalstone.cli import completion, options
from evalstone.cli.options import Value, Values, argument, option
from evalstone.cli.output import to_stderr
from evalstone.cli.values import own_scorers
from evalstone.errors import ConfigError, MissingDependency, invalid
from evalstone.results.endings import ExitCode

HOST, PORT = "127.0.0.1", 7700
NOT_HERE = "Experiments are started and stopped from pages on loopback only."
NOT_ON_WINDOWS = "Experiments aren't started from pages on Windows."
WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened to


def view(
    runs: Annotated[
        Values,
        argument(
            "RUN",
            "Results folders, or folders that contain some; TOML files of experiments; or the ID or name of a run in "
            "the ledger, to open.",
            complete=completion.runs,
        ),
    ] = None,
    ledger: options.Ledger = None,
    scorer: Annotated[
        Values,
        option(
            "--scorer ADDRESS",
            "Running",
            "Show the prompts of this scorer of your own too, such as `my_scorers.py:Polite`. Its code is run.",
        ),
    ] = None,
    read_only: Annotated[
        bool,
        option(
            "--read-only",
            "Running",
            "Only show: labels, failure modes, baselines and datasets can't be changed, and no experiment can be "
            "started.",
        ),
    ] = False,
    datasets: Annotated[
        Value,
        option(
            "--datasets FOLDER",
            "Running",
            "The folder that edited datasets are saved in. No other file is written.",
            default="datasets can't be edited",
            complete=completion.FOLDER,
        ),
    ] = None,
    host: Annotated[
        str, option("--host HOST", "Running", "The address to listen to. Another one than loopback needs a token.")
    ] = HOST,
    port: Annotated[
        int | None,
        option("--port PORT", "Running", "The port.", default=f"{PORT}, or a free one", min=0, max=65535),
    ] = None,
    token: Annotated[
        Value,
        option(
            "--token TEXT",
            "Running",
            "What the address must contain once; $NAME is an environment variable.",
            default="a new one, beyond loopback",
        ),
    ] = None,
) -> int:
    """Look at runs in a browser.

    Serves pages on this machine until it is stopped with Ctrl-C: the runs by dataset, the report of each, all of its
    samples, and each sample with what is behind its scores. Labels, failure modes and baselines are kept in the ledger,
    and edited datasets in the folder that you name. Experiments of the current folder can be started. Nothing is
    fetched.
    """
    from evalstone._core.files import is_folder
    from evalstone.cli.experiment import experiment_in
    from evalstone.ledger.base import existing, is_there
    from evalstone.ledger.store import Ledger
    from evalstone.view.addresses import experiment_address, run_address
    from evalstone.view.app import application
    from evalstone.view.experiment_files import ExperimentFiles
    from evalstone.view.experiments import Experiments
    from evalstone.view.security import LOOPBACK
    from evalstone.view.shelf import Shelf

    try:
        import uvicorn
    except ImportError:
        raise MissingDependency("uvicorn", "view") from None
    folders = [name for name in runs or () if is_folder(name)]
    files = [name for name in runs or () if name.endswith(".toml") and Path(name).is_file()]
    names = [name for name in runs or () if name not in (*folders, *files)]
    url = ledger or _ledger_of(files)
    if files and not is_there(url) and not read_only:
        Ledger(url).close()
    if ledger is not None or names or files or datasets or not folders or is_there(url):
        existing(url)
        shelf = Shelf(url, folders, read_only=read_only, datasets=datasets or "")
    else:
        shelf = Shelf(None, folders)
    path = "/"
    if names:
        from evalstone.run.saved import find_row

        with Ledger(url, read_only=True) as opened:
            row = find_row(opened, names[0])
        if row is None:
            raise ConfigError(
                f"there is no results folder {quoted(names[0])}, and no run of that ID or name in the ledger"
            )
        path = run_address(row.id)
    elif len(files) == 1 and (said := experiment_in(Path(files[0]))) is not None:
        path = experiment_address(said.name)
    elif len(in_folders := Shelf(None, folders).cards()) == 1 and in_folders[0].metadata is not None:
        path = run_address(in_folders[0].id)
    shelf.cards()  # a ledger that can't be read is an error now, and not on each page
    if token is not None and not (token.strip() and token.isprintable()):
        raise ConfigError(invalid(Setting("token"), "text", token))
    is_loopback = host in LOOPBACK or _is_loopback(host)
    password = expanded(token, "--token") if token is not None else "" if is_loopback else secrets.token_urlsafe(16)
    refusal = NOT_ON_WINDOWS if os.name == "nt" else "" if is_loopback else NOT_HERE
    experiments = Experiments(shelf, ExperimentFiles(Path(), files, experiment_in), refusal)
    app = application(
        shelf,
        () if host in WILDCARDS else (host.lower(),),
        any_address=host in WILDCARDS,
        token=password,
        own=own_scorers(scorer),
        experiments=experiments,
    )
    listener = _listening(host, port)
    bound = listener.getsockname()[1]
    shown = "localhost" if host in (*LOOPBACK, *WILDCARDS) else f"[{host}]" if ":" in host else host
    printed = token if token is not None and token != password else quote(password, safe="")
    query = f"?token={printed}" if password else ""
    to_stderr(f"Open http://{shown}:{bound}{path}{query}  (Ctrl-C stops)")
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    gc.freeze()  # garbage is not looked for in what was imported: that takes as long as a page
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass
    finally:
        listener.close()
    sys.stderr.flush()
    return ExitCode.OK


def _ledger_of(files: Sequence[str]) -> str:
    """The ledger that an experiment in one of these files names, or the usual one."""
    from evalstone.cli.experiment import experiment_in
    from evalstone.ledger.base import DEFAULT_LEDGER

    said = [found for file in files if (found := experiment_in(Path(file))) is not None]
    return next((found.ledger for found in said if found.ledger is not None), DEFAULT_LEDGER)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int | None) -> socket.socket:
    """A socket that listens. Without a port, that is the usual one, or a free one if it is taken."""
    for number in (PORT, 0) if port is None else (port,):
        try:
            family, _, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
            listener = socket.socket(family)
        except OSError as error:
            raise ConfigError(f"can't listen to {host}: {error.strerror}") from None
        try:
            # On Windows, SO_REUSEADDR would let two programs listen to one port.
            option: int = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            listener.setsockopt(socket.SOL_SOCKET, option, 1)
            listener.bind(address)
            listener.listen()
        except OSError as error:
            listener.close()
            if port is None and number == PORT:
                continue
            raise ConfigError(f"can't listen to port {number} of {host}: {error.strerror}") from None
        return listener
    raise AssertionError  # the loop returns or raises
