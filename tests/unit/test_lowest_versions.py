"""The version files of ``tox -e floors,floors-core`` pin the lowest versions that ``setup.cfg`` allows."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# ``tox -e floors`` installs neither tools that no test runs nor packages that need a system library.
NOT_TESTED = {"PyICU", "gssapi", "mypy", "ruff", "tox"}


def required_versions() -> dict[str, dict[str, str]]:
    """Return the lowest version of each required package, by the requirement group of ``setup.cfg``."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    groups = {"install_requires": settings["options"]["install_requires"], **settings["options.extras_require"]}
    return {group: dict(re.findall(r"^([\w-]+) >= ([\d.]+)$", text, re.MULTILINE)) for group, text in groups.items()}


def pinned_versions(name: str) -> dict[str, str]:
    lines = (ROOT / "tests" / name).read_text().splitlines()
    return dict(re.findall(r"^([\w-]+)==([\d.]+)$", "\n".join(lines), re.MULTILINE))


def version_tuple(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_lowest_core_versions_match_setup():
    assert pinned_versions("floors-core.txt") == required_versions()["install_requires"]


def test_lowest_versions_with_extras_match_setup():
    highest: dict[str, str] = {}
    for packages in required_versions().values():
        for name, version in packages.items():
            highest[name] = max(highest.get(name, version), version, key=version_tuple)
    assert pinned_versions("floors.txt") == {
        name: version for name, version in highest.items() if name not in NOT_TESTED
    }


def test_requirements_have_no_upper_bound():
    """Check that no requirement has an upper bound (see ``docs/releasing.md``). ``!=`` may exclude a broken version."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    needs = settings["options"]["install_requires"]
    assert not re.search(r"<|~=|==", needs), needs
