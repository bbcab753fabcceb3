"""The metadata of the handshake stays within what servers accept, whatever libraries name themselves."""

from __future__ import annotations

import bson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmongo import MongoClient
from gmongo._version import __version__
from gmongo.cmap.metadata import client_metadata
from gmongo.driver_info import DriverInfo

_names = st.text(st.characters(exclude_characters="|", exclude_categories=("Cs",)), max_size=600)
_libraries = st.builds(DriverInfo, _names, st.none() | _names, st.none() | _names)


@given(app_name=st.none() | st.text(max_size=30), libraries=st.lists(_libraries, max_size=8))
def test_metadata_has_512_bytes_and_names_the_driver(app_name: str | None, libraries: list[DriverInfo]) -> None:
    metadata = client_metadata(app_name, tuple(libraries))
    assert len(bson.encode(metadata)) <= 512
    assert {field: text.partition("|")[0] for field, text in metadata["driver"].items()} == {
        "name": "gmongo",
        "version": __version__,
    }


def test_versions_stand_where_their_names_stand() -> None:
    driver = client_metadata(None, (DriverInfo("A"), DriverInfo("B", "2"), DriverInfo("C")))["driver"]
    assert driver["name"] == "gmongo|A|B|C"
    assert driver["version"].split("|")[1:] == ["", "2"]


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_field_is_none_at_all(empty: str | None) -> None:
    client: MongoClient = MongoClient(connect=False, driver=DriverInfo("A", empty))
    client.append_metadata(DriverInfo("A"))
    client.append_metadata(DriverInfo("A", ""))
    metadata = client._topology.settings.connection.metadata
    assert metadata["driver"]["name"] == "gmongo|A"


@pytest.mark.parametrize(("name", "version"), [(600, 600), (600, 10), (10, 600), (350, 900), (900, 350)])
def test_name_and_version_are_both_cut_if_they_have_to_be_the_longer_first(name: int, version: int) -> None:
    document = client_metadata("a" * 100, (DriverInfo("n" * name, "v" * version),))
    assert len(bson.encode(document)) == 512
    driver = document["driver"]
    if name < version:
        assert driver["version"].count("v") < version
        assert driver["name"] == f"gmongo|{'n' * name}" or driver["version"] == __version__
    elif name > version:
        assert driver["name"].count("n") < name
        assert driver["version"].endswith("|" + "v" * version) or driver["name"] == "gmongo"


@pytest.mark.parametrize("length", range(300, 304))
def test_a_text_may_be_cut_amid_a_character(length: int) -> None:
    document = client_metadata("a" * 100, (DriverInfo("A", None, "\u2603" * length),))
    assert 510 <= len(bson.encode(document)) <= 512
    assert document["platform"].endswith("\u2603")
