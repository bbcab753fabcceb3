from __future__ import annotations

import pickle

import pytest

from gmongo._topology_type import TOPOLOGY_TYPE
from gmongo.driver_info import DriverInfo
from gmongo.server_api import ServerApi, ServerApiVersion
from gmongo.server_type import SERVER_TYPE


def test_flags_left_out_stay_none():
    api = ServerApi(ServerApiVersion.V1)
    assert (api.version, api.strict, api.deprecation_errors) == ("1", None, None)


def test_flags_that_were_given_are_kept():
    api = ServerApi("1", strict=False, deprecation_errors=True)
    assert (api.strict, api.deprecation_errors) == (False, True)
    assert repr(api) == "ServerApi('1', strict=False, deprecation_errors=True)"


@pytest.mark.parametrize("version", ["2", 1, None, ""])
def test_unknown_versions_are_refused(version):
    with pytest.raises(ValueError, match=f"must be one of 1, was {version!r}"):
        ServerApi(version)


@pytest.mark.parametrize("option", ["strict", "deprecation_errors"])
def test_flags_must_be_flags(option):
    with pytest.raises(TypeError, match=f"{option} must be True, False or None, not 1"):
        ServerApi("1", **{option: 1})


@pytest.mark.parametrize("name", ["version", "strict", "deprecation_errors"])
def test_server_api_cannot_be_changed(name):
    with pytest.raises(AttributeError):
        setattr(ServerApi("1"), name, None)


def test_driver_info():
    info = DriverInfo("Motor", platform="Tornado")
    assert info == ("Motor", None, "Tornado")
    assert (info.name, info.version, info.platform) == ("Motor", None, "Tornado")
    assert DriverInfo(None) == (None, None, None)
    with pytest.raises(TypeError, match="name"):
        DriverInfo()  # type: ignore[call-arg]
    assert pickle.loads(pickle.dumps(info)) == info


@pytest.mark.parametrize("field", ["name", "version", "platform"])
def test_driver_info_is_checked(field):
    with pytest.raises(TypeError, match=f"{field} must be a string or None, not 5"):
        DriverInfo(**{"name": "x"} | {field: 5})
    with pytest.raises(ValueError, match=rf"{field} must not contain '\|', was 'a\|b'"):
        DriverInfo(**{"name": "x"} | {field: "a|b"})


def test_server_types():
    kinds = SERVER_TYPE._asdict()
    assert " ".join(kinds) == ("Unknown Mongos RSPrimary RSSecondary RSArbiter RSOther RSGhost Standalone LoadBalancer")
    assert list(kinds.values()) == list(range(9))
    assert SERVER_TYPE.name_of(SERVER_TYPE.RSGhost) == "RSGhost"


def test_topology_types():
    kinds = TOPOLOGY_TYPE._asdict()
    assert " ".join(kinds) == ("Single ReplicaSetNoPrimary ReplicaSetWithPrimary Sharded Unknown LoadBalanced")
    assert list(kinds.values()) == list(range(6))
    assert TOPOLOGY_TYPE.name_of(TOPOLOGY_TYPE.Sharded) == "Sharded"
