"""A plugin: no first try runs on local variables, but every one is an `Attempt`.

    python -m pytest -p tests.support.every_try_is_special tests/spec

Whatever passes without it has to pass with it, too: the two ways of a first try differ in cost only.
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo.execution.executor import Executor


def force(patch: pytest.MonkeyPatch) -> None:
    """Have executors that are made from now on run every try as an `Attempt`."""
    make = Executor.__init__

    def make_special(self: Executor, *arguments: Any) -> None:
        make(self, *arguments)
        self._all_are_special = True

    patch.setattr(Executor, "__init__", make_special)


def pytest_configure(config: pytest.Config) -> None:
    patch = pytest.MonkeyPatch()
    force(patch)
    config.add_cleanup(patch.undo)
