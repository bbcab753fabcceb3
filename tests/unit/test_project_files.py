"""Rules for project files.

All lists of supported Python versions in project files are equal. The version files of
``tox -e floors,floors-core`` pin the lowest versions that ``setup.cfg`` allows.
"""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Packages that ``tox -e floors`` does not install: unused tools, and packages that need system
# libraries.
PACKAGES_NOT_TESTED = {"gssapi", "mypy", "ruff", "tox"}


def read_project_file(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def setup_settings() -> configparser.ConfigParser:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_string(read_project_file("setup.cfg"))
    return settings


def supported_versions() -> list[str]:
    """Return the Python versions in the classifiers of the package."""
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", read_project_file("setup.cfg"))


def test_tox_runs_all_supported_python_versions() -> None:
    (versions,) = re.findall(r"^env_list = py\{([\d,]+)\}", read_project_file("tox.ini"), re.MULTILINE)
    assert [f"3.{minor[1:]}" for minor in versions.split(",")] == supported_versions()


def test_continuous_integration_runs_all_supported_python_versions() -> None:
    (versions,) = re.findall(r"python: \[(.*)\]", read_project_file(".github/workflows/ci.yml"))
    assert re.findall(r'"(.*?)"', versions) == supported_versions()


def test_lowest_python_version_is_required_version_and_target_of_tools() -> None:
    lowest, settings = supported_versions()[0], setup_settings()
    assert settings["options"]["python_requires"] == f">={lowest}"
    assert settings["mypy"]["python_version"] == lowest
    assert f'target-version = "py{lowest.replace(".", "")}"' in read_project_file("pyproject.toml")


def test_tox_environments_of_continuous_integration_exist() -> None:
    used_environments = {
        name
        for line in re.findall(r"tox -e ([\w.,-]+)", read_project_file(".github/workflows/ci.yml"))
        for name in line.split(",")
    }
    defined_environments = {"py"}
    for name in re.findall(r"^\[testenv:([^\]]+)\]", read_project_file("tox.ini"), re.MULTILINE):
        prefix, _, choices = name.rstrip("}").partition("{")
        defined_environments |= {prefix + choice for choice in choices.split(",")}
    assert used_environments <= defined_environments


def required_versions() -> dict[str, dict[str, str]]:
    """Return the lowest permitted versions in ``setup.cfg``: requirement group -> required package ->
    version.
    """
    settings = setup_settings()
    groups = {
        "install_requires": settings["options"]["install_requires"],
        **settings["options.extras_require"],
    }
    return {group: dict(re.findall(r"^([\w-]+) >= ([\d.]+)$", text, re.MULTILINE)) for group, text in groups.items()}


def pinned_versions(name: str) -> dict[str, str]:
    lines = read_project_file(f"tests/{name}").splitlines()
    return dict(re.findall(r"^([\w-]+)==([\d.]+)$", "\n".join(lines), re.MULTILINE))


def version_tuple(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_lowest_core_versions_match_setup() -> None:
    assert pinned_versions("floors-core.txt") == required_versions()["install_requires"]


def test_lowest_versions_with_extras_match_setup() -> None:
    highest: dict[str, str] = {}
    for packages in required_versions().values():
        for name, version in packages.items():
            highest[name] = max(highest.get(name, version), version, key=version_tuple)
    assert pinned_versions("floors.txt") == {
        name: version for name, version in highest.items() if name not in PACKAGES_NOT_TESTED
    }


def test_requirements_have_no_upper_bound() -> None:
    """Check that no package in ``install_requires`` has an upper bound (see ``docs/releasing.md``).
    ``!=`` may exclude a broken version.
    """
    requirements = setup_settings()["options"]["install_requires"]
    assert not re.search(r"<|~=|==", requirements), requirements
