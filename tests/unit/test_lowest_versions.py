"""``tox -e floors,floors-core`` installs and tests the lowest versions that ``setup.cfg`` allows."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Tools without tests, and libraries that need a C library.
NOT_TESTED = {"PyICU", "gssapi", "mypy", "ruff", "tox"}


def required_versions() -> dict[str, dict[str, str]]:
    """Return group -> name -> lowest version."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    groups = {"install_requires": settings["options"]["install_requires"], **settings["options.extras_require"]}
    return {group: dict(re.findall(r"^([\w-]+) >= ([\d.]+)$", text, re.MULTILINE)) for group, text in groups.items()}


def pinned_versions(name: str) -> dict[str, str]:
    lines = (ROOT / "tests" / name).read_text().splitlines()
    return dict(re.findall(r"^([\w-]+)==([\d.]+)$", "\n".join(lines), re.MULTILINE))


def release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_lowest_core_versions_match_setup():
    assert pinned_versions("floors-core.txt") == required_versions()["install_requires"]


def test_lowest_versions_with_extras_match_setup():
    highest: dict[str, str] = {}
    for packages in required_versions().values():
        for name, version in packages.items():
            highest[name] = max(highest.get(name, version), version, key=release)
    assert pinned_versions("floors.txt") == {
        name: version for name, version in highest.items() if name not in NOT_TESTED
    }


def test_requirements_have_no_upper_bound():
    """``docs/releasing.md`` has the reason. A requirement may exclude a single broken version."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    needs = settings["options"]["install_requires"]
    assert not re.search(r"<|~=|==", needs), needs
