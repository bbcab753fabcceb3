"""Tiers of tests.

The default tier contains the fast tests, and the long tier contains the slow tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def tiers_of(config: pytest.Config, path: Path) -> set[str]:
    """Return the tiers that pytest runs in the file `path`: by default, the tier of ``--tier``.

    If the command line names the file or ``--tier`` is ``all``, return both tiers.
    """
    tier = config.getoption("--tier")
    paths = {(config.invocation_params.dir / each.split("::")[0]).resolve() for each in config.args if ".py" in each}
    return {"default", "long"} if tier == "all" or path in paths else {tier}
