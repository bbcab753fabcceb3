"""Test suites of libraries: tests that pass with PyMongo must pass with gmongo, except exemptions."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.cases import rows


@dataclass(frozen=True)
class Suite:
    """The tests of one library, and the command and server that the tests need.

    :ivar distribution: Name of the library's distribution.
    :ivar tests: Arguments of the runner that select the tests.
    :ivar min_passed: Minimum number of tests that must pass with PyMongo. This minimum detects a
    comparison that runs no tests.
    :ivar exemptions: Tests that pass with PyMongo but fail with gmongo: the name of the test -> the
        reason.
    :ivar port: Port of the server to which the tests connect.
    :ivar in_distribution: True if the source distribution contains the tests.
    :ivar folder: Working directory of the tests, relative to the source folder.
    :ivar runner: Module that runs the tests, and its arguments. If empty, pytest runs the tests.
    :ivar deployment: Command line options of the simulated deployment. The suites use no `mongod`
        6.0, because Django's backend needs MongoDB 7.0, and `mongod` creates collections slowly.
    """

    distribution: str
    tests: Sequence[str]
    min_passed: int
    exemptions: dict[str, str] = field(default_factory=dict)
    port: int = 27017
    in_distribution: bool = True
    folder: str = ""
    runner: Sequence[str] = ()
    deployment: Sequence[str] = ("--standalone",)

    @property
    def checkout_variable(self) -> str:
        """Name of the environment variable that contains the path of a checkout of the library."""
        return f"GMONGO_CHECKOUT_{re.sub('[^A-Z]+', '_', self.distribution.upper())}"

    @property
    def checkout(self) -> str | None:
        return os.environ.get(self.checkout_variable)


# The suite of mongomock excludes tests that expect generated IDs to be greater than explicit IDs. If
# the source distribution of a library contains no tests that use a server, a script tests the
# library.
SUITES = tuple(Suite(**row) for row in rows(__file__, "suites"))
# File in the folder `scripts` -> required distributions. A library has a script if its own tests
# are not in the source distribution, use no server, or mostly fail with PyMongo.
SCRIPTS: dict[str, list[str]] = {row["name"]: row["requires"] for row in rows(__file__, "scripts")}
