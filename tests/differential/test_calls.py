"""Calls of public operations have the same outcome in gmongo and PyMongo, except for intended
differences. The calls have valid and invalid options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pymongo_version import fails_before_pymongo

from .call_runner import Call, CallRunner, read_calls
from .differences import check_outcomes
from .servers import EXTERNAL_SERVERS, only_on

_CALLS = [call for path in sorted((Path(__file__).parent / "calls").glob("*.txt")) for call in read_calls(path)]


# Names of files whose calls nx-27017 supports. nx-27017 supports neither change streams nor fail
# points nor transactions. After some errors, nx-27017 keeps a dropped collection. nx-27017 wrongly
# replies to unacknowledged writes.
_NX_FILE_NAMES = frozenset({"writes", "bulks", "reads", "administration", "bad_inputs"})


def _parametrized(calls: list[Call]) -> Any:
    return pytest.mark.parametrize("call", [pytest.param(call, id=call.name, marks=_marks(call)) for call in calls])


def _marks(call: Call) -> list[pytest.MarkDecorator]:
    # Calls with large documents take seconds.
    marks = [pytest.mark.long] if "15 << 20" in call.source else []
    return [*marks, fails_before_pymongo(call.since)] if call.since else marks


@pytest.mark.one_in(16)
@_parametrized(_CALLS)
@only_on("simulation", *EXTERNAL_SERVERS)
def test_call_has_outcome_of_pymongo(runner: CallRunner, call: Call) -> None:
    check_outcomes(call.source, *runner.compare(call.source))


@pytest.mark.one_in(12)
@_parametrized([call for call in _CALLS if call.name.partition(":")[0] in _NX_FILE_NAMES])
@only_on("nx-27017")
def test_call_has_outcome_of_pymongo_on_embedded_database(runner: CallRunner, call: Call) -> None:
    check_outcomes(call.source, *runner.compare(call.source))
