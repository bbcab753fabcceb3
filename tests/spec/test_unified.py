"""The official tests in the unified test format, on simulated deployments.

Every case runs on every topology that its requirements allow: in the default tier on one of them, which its name
chooses, and in the long tier on the others; of the suites whose cases take tens of milliseconds, half run so. What
does not pass is in ``tests/spec/unified/skips.py``.
``python -m tests.spec.unified.report`` prints a table of the suites.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from copy import deepcopy
from functools import lru_cache
from typing import Any
from zlib import crc32

import pytest

from gmongo.testing.virtual_time import VirtualTime
from tests.spec.specifications import HOW_TO_GET_THEM, File
from tests.spec.unified.deployments import Deployments
from tests.spec.unified.patience import LEFT_UNANSWERED, leave_unanswered
from tests.spec.unified.requirements import Setting, settings
from tests.spec.unified.runner import Run
from tests.spec.unified.schema import check
from tests.spec.unified.skips import BY_THE_TEST, REQUIREMENT, RULES, Rule, Use, rule_for, words_of
from tests.spec.unified.suites import CLIENT_OPTIONS, read, valid_pass
from tests.support.tiers import tiers_of

# What waits, waits in virtual time: there are limits of 75 ms for what takes 50, which a busy machine would not keep,
# and seconds of waiting. Encryption talks to servers that are not simulated.
_WAITS = frozenset({"timeoutMS", "connectTimeoutMS", "heartbeatFrequencyMS", "blockTimeMS"})
_WAITS |= frozenset({"wait()", "waitForEvent()"})
_COSTLY = ("client-side-encryption/", "client-side-operations-timeout/")
_REAL_TIME = frozenset({"autoEncryptOpts", "clientEncryption"})


@pytest.fixture(scope="module")
def deployments() -> Iterator[Deployments]:
    started = Deployments()
    yield started
    started.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "setting" in metafunc.fixturenames:
        tiers = tiers_of(metafunc.config, metafunc.definition.path)
        metafunc.parametrize(("file", "index", "setting"), all_cases(tiers))


def all_cases(tiers: Set[str]) -> list[Any]:
    found = [parameter for file in valid_pass() for parameter in cases_of(file, tiers)]
    return found or [pytest.param(None, 0, None, marks=pytest.mark.skip(reason=HOW_TO_GET_THEM))]


def cases_of(file: File, tiers: Set[str]) -> Iterator[Any]:
    document = file.document
    entities = words_of(document.get("createEntities"))
    for index, case in enumerate(document["tests"]):
        name = f"{file.id}: {case['description']}"
        possible = settings(document.get("runOnRequirements"), case.get("runOnRequirements"))
        if not possible:
            yield skipped(file, index, name, f"{REQUIREMENT}: no simulated deployment satisfies the requirements")
        elif "skipReason" in case:
            yield skipped(file, index, name, f"{BY_THE_TEST}: {case['skipReason']}")
        else:
            share = 2 if file.id.startswith(_COSTLY) else 1
            soon = dict(enumerate(possible)).get(crc32(name.encode()) % (share * len(possible)))
            chosen = [setting for setting in possible if ("default" if setting is soon else "long") in tiers]
            words = entities | words_of(case) if chosen else entities
            for setting in chosen:
                rule = rule_for(Use(file.path.stem, case["description"], setting.topology, words))
                marks = [] if setting is soon else [pytest.mark.long]
                if rule is not None:
                    marks.append(_mark(rule))
                yield pytest.param(file, index, setting, id=f"{name} [{setting.topology}]", marks=marks)


def _mark(rule: Rule) -> Any:
    if rule.holds is None:
        return pytest.mark.xfail(reason=rule.text, strict=True)
    return pytest.mark.skip(reason=rule.text)


def skipped(file: File, index: int, name: str, reason: str) -> Any:
    return pytest.param(file, index, None, id=name, marks=pytest.mark.skip(reason=reason))


@lru_cache(maxsize=1)
def content(file: File) -> dict[str, Any]:
    """What a file holds, if it is in the format."""
    check(file.document)
    return read(file)


@lru_cache(maxsize=1)
def waits(file: File) -> bool:
    """Whether the cases of a file wait, and may do so in virtual time."""
    words = words_of(file.document)
    return bool(words & _WAITS) and not words & _REAL_TIME


def test_unified(file: File, index: int, setting: Setting, deployments: Deployments) -> None:
    whole = content(file)
    document = deepcopy({**whole, "tests": whole["tests"][index : index + 1]})
    (case,) = document["tests"]
    if file.path.stem in LEFT_UNANSWERED:
        leave_unanswered(document)
    if not waits(file):
        Run(deployments.get(setting), document, case, CLIENT_OPTIONS).run()
        return
    with VirtualTime():
        limited = Deployments()
        try:
            Run(limited.get(setting), document, case, CLIENT_OPTIONS).run()
        finally:
            limited.close()


def test_every_rule_of_the_skip_table_applies_to_a_case() -> None:
    marks = [mark for parameter in all_cases({"default", "long"}) for mark in parameter.marks]
    given = {mark.kwargs["reason"] for mark in marks if mark.name != "long"}
    if HOW_TO_GET_THEM in given:
        pytest.skip(HOW_TO_GET_THEM)
    assert [rule for rule in RULES if rule.text not in given] == []
