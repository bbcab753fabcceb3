"""Tiers of tests. The default tier is fast, and the long tier contains the other tests."""

from __future__ import annotations

from pathlib import Path

import pytest


def tiers_of(config: pytest.Config, path: Path) -> set[str]:
    """Return the tiers whose tests of the file `path` run: the tier of ``--tier``.

    If the command line names the file, both tiers run.
    """
    tier = config.getoption("--tier")
    named = {(config.invocation_params.dir / each.split("::")[0]).resolve() for each in config.args if ".py" in each}
    return {"default", "long"} if tier == "all" or path in named else {tier}
