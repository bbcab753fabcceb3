"""Official tests in the unified test format on simulated deployments.

The default tier runs an eighth of the cases of fast suites, and a sixteenth of the cases of slow suites,
each on one topology. The long tier runs all other pairs of case and topology. In CI, most cases run on
`mongod`. ``tests/spec/unified/skips.py`` lists the cases that do not pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from copy import deepcopy
from functools import lru_cache
from typing import Any
from zlib import crc32

import pytest

from gmongo.testing.virtual_time import VirtualTime
from tests.spec.specifications import HOW_TO_GET_TESTS, SpecFile
from tests.spec.unified.blocked_commands import FILES_WITH_TIMEOUTS, lengthen_blocks
from tests.spec.unified.deployments import Deployments
from tests.spec.unified.requirements import Setting, settings
from tests.spec.unified.runner import Run
from tests.spec.unified.schema import check
from tests.spec.unified.skips import REQUIREMENT, RULES, SKIPPED_BY_TEST, CaseOnTopology, Rule, rule_for, words_of
from tests.spec.unified.suites import CLIENT_OPTIONS, passing_files, read_file
from tests.support.tiers import tiers_of

# The cases of files with waits or time limits run in virtual time. In real time, such cases may fail
# on a busy machine: an operation of 50 ms may have a timeout of 75 ms. Files with encryption need
# real time, because the key management server and mongocryptd are not part of the simulation.
_WAITING_WORDS = frozenset({"timeoutMS", "connectTimeoutMS", "heartbeatFrequencyMS", "blockTimeMS"})
_WAITING_WORDS |= frozenset({"wait()", "waitForEvent()"})
_SLOW_FOLDERS = ("client-side-encryption/", "client-side-operations-timeout/")
_REAL_TIME_WORDS = frozenset({"autoEncryptOpts", "clientEncryption"})


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
    parameters = [parameter for file in passing_files() for parameter in cases_of(file, tiers)]
    return parameters or [pytest.param(None, 0, None, marks=pytest.mark.skip(reason=HOW_TO_GET_TESTS))]


def cases_of(file: SpecFile, tiers: Set[str]) -> Iterator[Any]:
    document = file.document
    entity_words = words_of(document.get("createEntities"))
    for index, case in enumerate(document["tests"]):
        name = f"{file.id}: {case['description']}"
        possible = settings(document.get("runOnRequirements"), case.get("runOnRequirements"))
        if not possible:
            yield skipped_case(file, index, name, f"{REQUIREMENT}: no simulated deployment satisfies the requirements")
        elif "skipReason" in case:
            yield skipped_case(file, index, name, f"{SKIPPED_BY_TEST}: {case['skipReason']}")
        else:
            divisor = 16 if file.id.startswith(_SLOW_FOLDERS) else 8
            default_setting = dict(enumerate(possible)).get(crc32(name.encode()) % (divisor * len(possible)))
            chosen = [setting for setting in possible if ("default" if setting is default_setting else "long") in tiers]
            words = entity_words | words_of(case) if chosen else entity_words
            for setting in chosen:
                rule = rule_for(CaseOnTopology(file.path.stem, case["description"], setting.topology, words))
                marks = [] if setting is default_setting else [pytest.mark.long]
                if rule is not None:
                    marks.append(_mark_of_rule(rule))
                yield pytest.param(file, index, setting, id=f"{name} [{setting.topology}]", marks=marks)


def _mark_of_rule(rule: Rule) -> Any:
    if rule.skip_condition is None:
        return pytest.mark.xfail(reason=rule.text, strict=True)
    return pytest.mark.skip(reason=rule.text)


def skipped_case(file: SpecFile, index: int, name: str, reason: str) -> Any:
    return pytest.param(file, index, None, id=name, marks=pytest.mark.skip(reason=reason))


@lru_cache(maxsize=1)
def read_valid_content(file: SpecFile) -> dict[str, Any]:
    """Validate a file with the JSON schema of the unified test format, and return the content of the
    file.
    """
    check(file.document)
    return read_file(file)


@lru_cache(maxsize=1)
def needs_virtual_time(file: SpecFile) -> bool:
    """Return True if a file contains waits or time limits, but no encryption."""
    words = words_of(file.document)
    return bool(words & _WAITING_WORDS) and not words & _REAL_TIME_WORDS


def test_official_case_passes(file: SpecFile, index: int, setting: Setting, deployments: Deployments) -> None:
    content = read_valid_content(file)
    document = deepcopy({**content, "tests": content["tests"][index : index + 1]})
    (case,) = document["tests"]
    if file.path.stem in FILES_WITH_TIMEOUTS:
        lengthen_blocks(document)
    if not needs_virtual_time(file):
        Run(deployments.get(setting), document, case, CLIENT_OPTIONS).run()
        return
    with VirtualTime():
        virtual_deployments = Deployments()
        try:
            Run(virtual_deployments.get(setting), document, case, CLIENT_OPTIONS).run()
        finally:
            virtual_deployments.close()


def test_each_skip_rule_applies_to_an_official_case() -> None:
    marks = [mark for parameter in all_cases({"default", "long"}) for mark in parameter.marks]
    reasons = {mark.kwargs["reason"] for mark in marks if mark.name != "long"}
    if HOW_TO_GET_TESTS in reasons:
        pytest.skip(HOW_TO_GET_TESTS)
    assert [rule for rule in RULES if rule.text not in reasons] == []
