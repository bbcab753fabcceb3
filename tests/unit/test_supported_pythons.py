"""All files that list the supported Python versions list the same versions."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def read_project_file(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def supported_versions() -> list[str]:
    """Return the versions in the classifiers of the package."""
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", read_project_file("setup.cfg"))


def test_tox_runs_all_supported_python_versions() -> None:
    (list_of,) = re.findall(r"^env_list = py\{([\d,]+)\}", read_project_file("tox.ini"), re.MULTILINE)
    assert [f"3.{minor[1:]}" for minor in list_of.split(",")] == supported_versions()


def test_continuous_integration_runs_all_supported_python_versions() -> None:
    (list_of,) = re.findall(r"python: \[(.*)\]", read_project_file(".github/workflows/ci.yml"))
    assert re.findall(r'"(.*?)"', list_of) == supported_versions()


def test_lowest_python_version_is_required_version_and_target_of_tools() -> None:
    lowest, settings = supported_versions()[0], configparser.ConfigParser()
    settings.read_string(read_project_file("setup.cfg"))
    assert settings["options"]["python_requires"] == f">={lowest}"
    assert settings["mypy"]["python_version"] == lowest
    assert f'target-version = "py{lowest.replace(".", "")}"' in read_project_file("pyproject.toml")


def test_tox_environments_of_continuous_integration_exist() -> None:
    named = {
        name
        for line in re.findall(r"tox -e ([\w.,-]+)", read_project_file(".github/workflows/ci.yml"))
        for name in line.split(",")
    }
    defined = {"py"}
    for name in re.findall(r"^\[testenv:([^\]]+)\]", read_project_file("tox.ini"), re.MULTILINE):
        before, _, choices = name.rstrip("}").partition("{")
        defined |= {before + choice for choice in choices.split(",")}
    assert named <= defined
