from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from gmongo.errors import ConfigurationError
from gmongo.read_concern import DEFAULT_READ_CONCERN, ReadConcern
from gmongo.read_preferences import (
    Nearest,
    Primary,
    PrimaryPreferred,
    ReadPreference,
    Secondary,
    SecondaryPreferred,
    make_read_preference,
    read_pref_mode_from_name,
)
from gmongo.write_concern import DEFAULT_WRITE_CONCERN, WriteConcern

MODES = [
    (Primary, 0, "Primary", "primary"),
    (PrimaryPreferred, 1, "PrimaryPreferred", "primaryPreferred"),
    (Secondary, 2, "Secondary", "secondary"),
    (SecondaryPreferred, 3, "SecondaryPreferred", "secondaryPreferred"),
    (Nearest, 4, "Nearest", "nearest"),
]
EAST = [{"dc": "east", "rack": "1"}, {}]


@pytest.mark.parametrize(("cls", "mode", "name", "wire_name"), MODES)
def test_plain_read_preference(cls: Any, mode: int, name: str, wire_name: str) -> None:
    preference = cls()
    assert (preference.mode, preference.name, preference.mongos_mode) == (mode, name, wire_name)
    assert preference.document == {"mode": wire_name}
    assert preference.tag_sets == [{}]
    assert preference.max_staleness == -1
    assert preference.hedge is None
    assert preference.min_wire_version == 0
    assert make_read_preference(read_pref_mode_from_name(wire_name), None) == preference


def test_namespace_has_the_five_modes() -> None:
    namespace = (
        ReadPreference.PRIMARY,
        ReadPreference.PRIMARY_PREFERRED,
        ReadPreference.SECONDARY,
        ReadPreference.SECONDARY_PREFERRED,
        ReadPreference.NEAREST,
    )
    assert namespace == tuple(cls() for cls, *_ in MODES)


def test_tags_and_staleness_are_in_the_document() -> None:
    preference = Secondary(EAST, 120)
    assert preference.document == {"mode": "secondary", "tags": EAST, "maxStalenessSeconds": 120}
    assert preference.min_wire_version == 5
    assert repr(preference) == f"Secondary(tag_sets={EAST!r}, max_staleness=120, hedge=None)"


def test_the_empty_tag_set_alone_is_not_sent() -> None:
    assert Nearest([{}]).document == {"mode": "nearest"}
    assert Nearest([{}]) == Nearest()


def test_hedge_is_sent_with_a_warning_that_points_here() -> None:
    with pytest.warns(DeprecationWarning, match="hedged reads") as caught:
        preference = Nearest(hedge={"enabled": True})
    assert preference.document == {"mode": "nearest", "hedge": {"enabled": True}}
    assert caught[0].filename == __file__


def test_equality_compares_every_part() -> None:
    assert Secondary(EAST) == Secondary(EAST)
    assert Secondary(EAST) != Secondary()
    assert Secondary() != Nearest()
    assert Secondary(max_staleness=90) != Secondary(max_staleness=91)
    assert Secondary() != "secondary"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Secondary())


def test_changing_what_was_returned_changes_nothing() -> None:
    preference = Secondary(EAST)
    preference.document["mode"] = "primary"
    preference.tag_sets.clear()  # type: ignore[attr-defined]
    assert preference.document == {"mode": "secondary", "tags": EAST}


@pytest.mark.parametrize("value", [Primary(), Secondary(EAST, 120), WriteConcern(2, 5), ReadConcern("local")])
def test_values_survive_pickle_and_copy(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("east",), TypeError, "list of tag sets, not 'east'"),
        (({},), TypeError, "list of tag sets"),
        (([],), ValueError, "at least one tag set"),
        ((["dc:east"],), TypeError, "'dc:east'"),
        ((None, 0), ValueError, "not 0"),
        ((None, -2), ValueError, "not -2"),
        ((None, 90.5), TypeError, "90.5"),
        ((None, -1, "on"), TypeError, "'on'"),
    ],
)
def test_bad_parameters_are_named(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Secondary(*arguments)


def test_primary_takes_neither_tags_nor_staleness() -> None:
    assert make_read_preference(0, [{}]) == Primary()
    with pytest.raises(ConfigurationError, match="tags"):
        make_read_preference(0, EAST)
    with pytest.raises(ConfigurationError, match="max_staleness"):
        make_read_preference(0, None, 90)


def test_unknown_modes() -> None:
    with pytest.raises(IndexError, match="9"):
        make_read_preference(9, None)
    with pytest.raises(ValueError, match="'any'"):
        read_pref_mode_from_name("any")


def test_read_concern() -> None:
    assert DEFAULT_READ_CONCERN.document == {}
    assert ReadConcern("majority").document == {"level": "majority"}
    assert (ReadConcern().ok_for_legacy, ReadConcern("majority").ok_for_legacy) == (True, False)
    assert ReadConcern("local") == ReadConcern("local") != ReadConcern()
    assert repr(ReadConcern("local")) == "ReadConcern('local')"
    with pytest.raises(TypeError, match="5"):
        ReadConcern(5)  # type: ignore[arg-type]


def test_write_concern() -> None:
    assert DEFAULT_WRITE_CONCERN.is_server_default
    concern = WriteConcern("majority", 500, j=False)
    assert concern.document == {"w": "majority", "wtimeout": 500, "j": False}
    assert concern.acknowledged
    assert not concern.is_server_default
    assert not WriteConcern(0).acknowledged
    assert WriteConcern(1) == WriteConcern(w=1) != WriteConcern()
    assert repr(WriteConcern(1)) == "WriteConcern(w=1)"


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"w": -1}, ValueError, "w must be at least 0"),
        ({"w": 1.5}, TypeError, "w must be an integer or a string"),
        ({"wtimeout": -1}, ValueError, "wtimeout"),
        ({"wtimeout": "5"}, TypeError, "wtimeout"),
        ({"j": 1}, TypeError, "j must be True or False"),
        ({"fsync": "yes"}, TypeError, "fsync"),
        ({"w": 0, "j": True}, ConfigurationError, "w=0"),
        ({"j": True, "fsync": True}, ConfigurationError, "fsync"),
    ],
)
def test_bad_write_concerns(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        WriteConcern(**parameters)
