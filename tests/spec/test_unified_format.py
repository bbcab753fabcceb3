"""Tests of the runner for the unified test format: the runner rejects invalid files, and detects
failing cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gmongo.testing.virtual_time import VirtualTime
from tests.spec.specifications import HOW_TO_GET_TESTS, SpecFile, specifications_folder
from tests.spec.unified.deployments import Deployments
from tests.spec.unified.matching import Matcher, Mismatch
from tests.spec.unified.requirements import Setting, settings
from tests.spec.unified.runner import Run
from tests.spec.unified.schema import FormatError, check
from tests.spec.unified.suites import failing_files, invalid_files, read_file
from tests.support.cases import with_cases

SINGLE = Setting("single")


@pytest.fixture(scope="module")
def deployments() -> Iterator[Deployments]:
    started = Deployments()
    yield started
    started.close()


def is_rejected(file: SpecFile) -> bool:
    try:
        check(file.document)
    except FormatError:
        return True
    return False


@pytest.mark.skipif(specifications_folder() is None, reason=HOW_TO_GET_TESTS)
def test_invalid_file_raises_format_error() -> None:
    assert [file.id for file in invalid_files() if not is_rejected(file)] == []


def failing_cases() -> list[Any]:
    failing = [
        pytest.param(file, index, id=f"{file.id}: {case['description']}", marks=_marks(file))
        for file in failing_files()
        for index, case in enumerate(file.document["tests"])
    ]
    return failing or [pytest.param(None, 0, marks=pytest.mark.skip(reason=HOW_TO_GET_TESTS))]


def _marks(file: SpecFile) -> list[Any]:
    if any(settings(file.document.get("runOnRequirements"))):
        return []
    return [pytest.mark.skip(reason="requirement: no simulated deployment satisfies the requirements")]


@pytest.mark.parametrize(("file", "index"), failing_cases())
def test_case_in_folder_valid_fail_fails(file: SpecFile, index: int, deployments: Deployments) -> None:
    document = read_file(file)
    # The runner does not check KMS credentials. If credentials are missing, pymongocrypt raises
    # ValueError.
    with pytest.raises((FormatError, AssertionError, ValueError)):
        check(file.document)
        Run(deployments.get(SINGLE), document, document["tests"][index], {}).run()


# Tests with cases that are not in the official files


def matcher() -> Matcher:
    return Matcher({"seven": 7}.__getitem__, {"session0": {"id": b"1"}}.__getitem__)


@with_cases
def test_matching_value_passes(expected: Any, actual: Any) -> None:
    matcher().check(expected, actual)


@with_cases
def test_value_that_does_not_match_raises_mismatch(expected: Any, actual: Any) -> None:
    with pytest.raises(Mismatch):
        matcher().check(expected, actual)


@pytest.mark.parametrize("expected", [{"a": {"$$unknown": 1}}, {"a": {"$$matchesHexBytes": "1"}}])
def test_unknown_operator_or_operand_raises_format_error(expected: Any) -> None:
    with pytest.raises(FormatError):
        matcher().check(expected, {"a": b"1"})


def document_and_case(*operations: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a file that defines a client, a database and a collection, and return a
    case for the file.
    """
    entities: list[dict[str, Any]] = [
        {"client": {"id": "client0", "observeEvents": ["commandStartedEvent"]}},
        {"database": {"id": "database0", "client": "client0", "databaseName": "own"}},
        {"collection": {"id": "collection0", "database": "database0", "collectionName": "own"}},
    ]
    return {"createEntities": entities}, {"operations": list(operations), **fields}


PING = {"name": "runCommand", "object": "database0", "arguments": {"commandName": "ping", "command": {"ping": 1}}}


def create_entities_operation(*entities: dict[str, Any]) -> dict[str, Any]:
    """Return the operation ``createEntities`` of the unified test format."""
    return {"name": "createEntities", "object": "testRunner", "arguments": {"entities": list(entities)}}


@with_cases
def test_unmet_expectation_fails_case(operations: list[Any], fields: dict[str, Any], deployments: Deployments) -> None:
    document, case = document_and_case(*operations, **fields)
    with pytest.raises((FormatError, AssertionError)):
        Run(deployments.get(SINGLE), document, case, {}).run()


@pytest.mark.parametrize("waits_for_thread", [True, False])
def test_error_in_thread_fails_case(
    waits_for_thread: bool, deployments: Deployments, virtual_time: VirtualTime
) -> None:
    wait_operation = {"name": "waitForThread", "object": "testRunner", "arguments": {"thread": "thread0"}}
    document, case = document_and_case(
        create_entities_operation({"thread": {"id": "thread0"}}),
        {
            "name": "runOnThread",
            "object": "testRunner",
            "arguments": {"thread": "thread0", "operation": {**PING, "expectResult": {"ok": 2}}},
        },
        wait_operation if waits_for_thread else {"name": "wait", "object": "testRunner", "arguments": {"ms": 50}},
    )
    with pytest.raises(Mismatch, match="ok must be 2"):
        Run(deployments.get(SINGLE), document, case, {}).run()
