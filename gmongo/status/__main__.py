"""``python -m gmongo.status DIRECTORY``: the states of an application's processes, in a terminal."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gmongo.errors import ConfigurationError
from gmongo.status.workers import worker_states


def main(arguments: list[str] | None = None) -> int:
    """Show the states of the processes that serve theirs in a directory, again each second, or once.

    :param arguments: of the command line; None takes those of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m gmongo.status",
        description="Show the states of the processes that serve theirs in a directory, again each second, or once: "
        "what is wrong, servers, pools, operations, events. Keys choose, sort and scroll.",
    )
    parser.add_argument("directory", type=Path, help="where the processes serve their states (gmongo.status.publish)")
    parser.add_argument(
        "--once", action="store_true", help="show them once, and end; so it does if the output is no terminal"
    )
    chosen = parser.parse_args(arguments)
    try:
        from rich.console import Console

        from gmongo.status.screen import watch
        from gmongo.status.terminal import Tables
    except ImportError:
        print("python -m gmongo.status needs the package rich (pip install gmongo[status])", file=sys.stderr)
        return 1
    if not chosen.directory.is_dir():
        print(f"there is no directory {chosen.directory}", file=sys.stderr)
        return 1
    console = Console()
    try:
        if chosen.once or not console.is_terminal:
            console.print(Tables(worker_states(chosen.directory)))
        else:
            watch(console, lambda: worker_states(chosen.directory))
        return 0
    except KeyboardInterrupt:
        return 0
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
