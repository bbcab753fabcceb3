"""Two values are equal only if their classes and their contents are equal.

A comparison with an object of another class calls ``__eq__`` of the other object.
"""

from __future__ import annotations

from typing import Any

import pytest

from gmongo import InsertOne, MongoClient
from gmongo.collation import Collation
from gmongo.options import Options
from gmongo.read_concern import ReadConcern
from gmongo.read_preferences import Nearest, Primary
from gmongo.sdam.server_description import ServerDescription
from gmongo.write_concern import WriteConcern

CLIENT: MongoClient[Any] = MongoClient("a", connect=False)
# In each pair, two unequal values of the same kind.
VALUES: list[tuple[Any, Any]] = [
    (CLIENT, MongoClient("b", connect=False)),
    (CLIENT.a, CLIENT.b),
    (CLIENT.a.c, CLIENT.a.d),
    (CLIENT.a.c, CLIENT.b.c),
    (Collation("fr"), Collation("de")),
    (InsertOne({"a": 1}), InsertOne({"a": 2})),
    (Nearest(), Primary()),
    (Nearest([{"a": "b"}]), Nearest([{"a": "c"}])),
    (Nearest(max_staleness=100), Nearest(max_staleness=101)),
    (Options({"w": 1}), Options({"w": 2})),
    (ReadConcern("local"), ReadConcern()),
    (ServerDescription(("a", 1)), ServerDescription(("b", 1))),
    (CLIENT.topology_description, MongoClient("b", connect=False).topology_description),
    (WriteConcern(w=1), WriteConcern(w=2)),
]


class EqualToEverything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(("one", "other"), VALUES, ids=lambda value: type(value).__name__)
def test_value_equals_only_equal_value_of_same_kind(one: Any, other: Any) -> None:
    assert one == one and one != other
    for foreign in (object(), None, "a", 5):
        assert one != foreign
    assert one == EqualToEverything()


def test_options_equal_mapping_with_same_items() -> None:
    options = Options({"maxPoolSize": 5, "W": 1})
    assert options == {"MAXPOOLSIZE": 5, "w": 1}
    assert options != {"w": 1}
    assert len(options) == 2
    del options["w"]
    assert options == {"maxpoolsize": 5} and len(options) == 1
    assert "w" not in options and 5 not in options
    assert [*options.copy().items()] == [("maxpoolsize", 5)] and options.copy() is not options
