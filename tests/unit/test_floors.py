"""The lowest versions that ``setup.cfg`` allows are those that ``tox -e floors,floors-core`` installs and tests."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Tools that do not run in the tests, and libraries that need others in C.
NOT_TESTED = {"PyICU", "gssapi", "mypy", "ruff", "tox"}


def declared() -> dict[str, dict[str, str]]:
    """What asks for packages -> name -> lowest version."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    groups = {"install_requires": settings["options"]["install_requires"], **settings["options.extras_require"]}
    return {group: dict(re.findall(r"^([\w-]+) >= ([\d.]+)$", text, re.MULTILINE)) for group, text in groups.items()}


def pinned(name: str) -> dict[str, str]:
    lines = (ROOT / "tests" / name).read_text().splitlines()
    return dict(re.findall(r"^([\w-]+)==([\d.]+)$", "\n".join(lines), re.MULTILINE))


def release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_core():
    assert pinned("floors-core.txt") == declared()["install_requires"]


def test_with_all_extras():
    highest: dict[str, str] = {}
    for packages in declared().values():
        for name, version in packages.items():
            highest[name] = max(highest.get(name, version), version, key=release)
    assert pinned("floors.txt") == {name: version for name, version in highest.items() if name not in NOT_TESTED}


def test_nothing_has_an_upper_bound():
    """As ``docs/releasing.md`` explains; a version that is broken may be left out by itself."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    needs = settings["options"]["install_requires"]
    assert not re.search(r"<|~=|==", needs), needs
