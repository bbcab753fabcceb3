"""Tiers of tests.

The default tier contains the fast tests, and the long tier contains the slow tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import pytest


def tiers_of(config: pytest.Config, path: Path) -> set[str]:
    """Return the tiers that pytest runs in the file `path`: by default, the tier of ``--tier``.

    If the command line names the file or ``--tier`` is ``all``, return both tiers.
    """
    tier = config.getoption("--tier")
    paths = {(config.invocation_params.dir / each.split("::")[0]).resolve() for each in config.args if ".py" in each}
    return {"default", "long"} if tier == "all" or path in paths else {tier}


def default_tier(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return the items of the default tier. The long tier contains all other items.

    Of the cases of a test with the marker ``one_in(n)``, a hash selects one in n, and at least one.
    """
    cases_by_test: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("long") is None:
            cases_by_test[item.nodeid.partition("[")[0]].append(item)
    return {item for cases in cases_by_test.values() for item in _sample(cases)}


def _sample(cases: list[pytest.Item]) -> list[pytest.Item]:
    one_in = cases[0].get_closest_marker("one_in")
    if one_in is None:
        return cases
    count = -(-len(cases) // one_in.args[0])  # rounded up
    return sorted(cases, key=lambda case: crc32(case.nodeid.encode()))[:count]
