"""Selection of the tiers of tests."""

from __future__ import annotations

from pathlib import Path

import pytest


def tiers_of(config: pytest.Config, path: Path) -> set[str]:
    """Return the tier of ``--tier``, or both tiers if the command line names the file."""
    tier = config.getoption("--tier")
    named = {(config.invocation_params.dir / each.split("::")[0]).resolve() for each in config.args if ".py" in each}
    return {"default", "long"} if tier == "all" or path in named else {tier}
