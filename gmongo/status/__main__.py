"""``python -m gmongo.status DIRECTORY``: show the states of an application's processes in a terminal."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gmongo.errors import ConfigurationError
from gmongo.status.workers import worker_states


def main(arguments: list[str] | None = None) -> int:
    """Show the states that processes publish in a directory, once or every second.

    :param arguments: the command line arguments; None uses the arguments of the process.
    """
    parser = argparse.ArgumentParser(
        prog="python -m gmongo.status",
        description="Show the problems, servers, pools, operations and events of all processes that publish their "
        "states in a directory. Keys select a page, sort and scroll.",
    )
    parser.add_argument("directory", type=Path, help="the directory of the published states (gmongo.status.publish)")
    parser.add_argument("--once", action="store_true", help="show the states once; the default without a terminal")
    options = parser.parse_args(arguments)
    try:
        from rich.console import Console

        from gmongo.status.screen import watch
        from gmongo.status.terminal import overview
    except ImportError:
        print("python -m gmongo.status needs the package rich (pip install gmongo[status])", file=sys.stderr)
        return 1
    if not options.directory.is_dir():
        print(f"the directory {options.directory} does not exist", file=sys.stderr)
        return 1
    console = Console()
    try:
        if options.once or not console.is_terminal:
            console.print(overview(worker_states(options.directory), console.width))
        else:
            watch(console, lambda: worker_states(options.directory))
    except KeyboardInterrupt:
        pass
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
