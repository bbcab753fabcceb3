"""The client metadata of the handshake. The cases come from the MongoDB Handshake specification."""

from __future__ import annotations

import os
import platform
from typing import Any

import bson
import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gmongo._version import __version__
from gmongo.cmap.metadata import client_metadata
from gmongo.driver_info import DriverInfo
from tests.support.cases import with_cases

ENVIRONMENT_VARIABLES = [
    "AWS_EXECUTION_ENV", "AWS_LAMBDA_RUNTIME_API", "AWS_REGION", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "FUNCTIONS_WORKER_RUNTIME", "K_SERVICE", "FUNCTION_NAME", "FUNCTION_MEMORY_MB",
    "FUNCTION_TIMEOUT_SEC", "FUNCTION_REGION", "VERCEL", "VERCEL_REGION", "KUBERNETES_SERVICE_HOST",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)


@with_cases
def test_environment_variables_select_cloud_service(
    environment_variables: dict[str, str], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment_variables.items():
        monkeypatch.setenv(name, value)
    environment = client_metadata(None).get("env", {})
    environment.pop("container", None)
    assert (environment or None) == expected


@with_cases
def test_container_runtime_and_orchestrator_are_reported(
    docker: bool, kubernetes: bool, container_metadata: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: path == "/.dockerenv" and docker)
    if kubernetes:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "1")
    assert client_metadata(None).get("env", {}).get("container") == container_metadata
    if container_metadata is None:
        assert "env" not in client_metadata(None)


def test_metadata_names_application_driver_platform_and_os() -> None:
    document = client_metadata("shop")
    assert document["application"] == {"name": "shop"}
    assert document["driver"] == {"name": "gmongo", "version": __version__}
    assert document["platform"] == (
        f"{platform.python_implementation()} {platform.python_version()} (gevent {gevent.__version__})"
    )
    assert document["os"] == {
        "type": platform.system(),
        "name": platform.system(),
        "architecture": platform.machine(),
        "version": platform.release(),
    }
    assert "application" not in client_metadata(None) and "application" not in client_metadata("")


def test_oversized_metadata_drops_fields_in_specified_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver first drops the fields of `env` except `env.name`, then the fields of `os` except
    `os.type`.

    Finally, the driver drops `env`, and truncates `platform`.
    """
    monkeypatch.setenv("VERCEL", "1")
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    stages = []
    for surplus in range(1, 512):
        monkeypatch.setenv("VERCEL_REGION", "r" * 40)
        document = client_metadata(None, (DriverInfo("w", "1", "p" * surplus),))
        stage = (document.get("env"), len(document["os"]), document["platform"].endswith("|" + "p" * surplus))
        if stage not in stages:
            stages.append(stage)
        assert len(bson.encode(document)) <= 512
        if not stage[2]:  # the driver truncates `platform` only as far as necessary
            assert len(bson.encode(document)) == 512
    name_field = {"name": "vercel"}
    assert stages == [
        ({**name_field, "region": "r" * 40}, 4, True),
        (name_field, 4, True),
        (name_field, 1, True),
        (None, 1, True),
        (None, 1, False),
    ]


def test_oversized_metadata_drops_last_added_library_first() -> None:
    libraries = tuple(DriverInfo(f"D{number}", f"1.{number}") for number in range(300))
    document = client_metadata(None, libraries)
    names, versions = document["driver"]["name"].split("|"), document["driver"]["version"].split("|")
    assert 400 < len(bson.encode(document)) <= 512
    assert len(names) > 20
    assert (names[0], versions[0]) == ("gmongo", __version__)
    assert names[1:] == [library.name for library in libraries[: len(names) - 1]]
    assert versions[1:] == [library.version for library in libraries[: len(names) - 1]]


_names = st.text(st.characters(exclude_characters="|", exclude_categories=("Cs",)), max_size=600)
_libraries = st.builds(DriverInfo, _names, st.none() | _names, st.none() | _names)


@given(app_name=st.none() | st.text(max_size=30), libraries=st.lists(_libraries, max_size=8))
def test_metadata_has_at_most_512_bytes_and_names_driver(app_name: str | None, libraries: list[DriverInfo]) -> None:
    metadata = client_metadata(app_name, tuple(libraries))
    assert len(bson.encode(metadata)) <= 512
    assert {field: text.partition("|")[0] for field, text in metadata["driver"].items()} == {
        "name": "gmongo",
        "version": __version__,
    }


def test_version_of_library_has_position_of_library_name() -> None:
    driver = client_metadata(None, (DriverInfo("A"), DriverInfo("B", "2"), DriverInfo("C")))["driver"]
    assert driver["name"] == "gmongo|A|B|C"
    assert driver["version"].split("|")[1:] == ["", "2"]


@pytest.mark.parametrize("length", range(300, 304))
def test_truncated_platform_ends_at_character_boundary(length: int) -> None:
    document = client_metadata("a" * 100, (DriverInfo("A", None, "\u2603" * length),))
    assert 510 <= len(bson.encode(document)) <= 512
    assert document["platform"].endswith("\u2603")


@pytest.mark.parametrize("field", ["name", "version", "platform"])
def test_driver_info_with_invalid_field_raises(field: str) -> None:
    with pytest.raises(TypeError, match=rf"^DriverInfo {field} must be a string or None, not 5$"):
        DriverInfo(**{"name": None, field: 5})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=rf"^DriverInfo {field} must not contain '\|', was 'a\|b'$"):
        DriverInfo(**{"name": None, field: "a|b"})


def test_long_library_name_and_version_are_truncated_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    document = client_metadata(None, (DriverInfo("n" * 600, "v" * 600),))
    assert len(bson.encode(document)) == 512 and "env" not in document and document["platform"] == ""
    driver = document["driver"]
    assert driver["name"] == "gmongo" and driver["version"].startswith(f"{__version__}|vvv")
