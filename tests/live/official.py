"""Run the official unified tests on the target deployment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from gmongo import MongoClient
from gmongo.errors import AutoReconnect, OperationFailure
from tests.live.report import Report, Skip
from tests.live.target import Target
from tests.spec.unified.deployments import IGNORED_ERROR_CODES, RunningDeployment
from tests.spec.unified.requirements import DeploymentProperties, Setting, unmet_requirements
from tests.spec.unified.runner import Run
from tests.spec.unified.schema import check
from tests.spec.unified.skips import SKIPPED_BY_TEST, CaseOnTopology, rule_for, words_of
from tests.spec.unified.suites import CLIENT_OPTIONS, passing_files, read_file

PART = "official unified tests"
MAX_ATTEMPTS = 5
# Pattern for cases that may fail on a busy machine, for two reasons. A short timeout may expire too
# early. The fail point `failBeforeCommit` closes the connection, but a busy server continues to
# insert documents. After the end of the fail point, the server also commits the inserted documents.
_SPEED_PATTERN = re.compile("blockTimeMS|imeoutMS|failBeforeCommit")
_TIME_KEY_PATTERN = re.compile(".*(?:imeMS|imeoutMS|FrequencyMS)|ms")
_WORDS_OF_CASES_WITH_SEVERAL_MEMBERS = ("replSetStepDown", "Topology lifecycle")


class ExistingDeployment(RunningDeployment):
    """The target deployment with the methods that the test runner calls."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.setting = Setting(target.topology, target.version)
        self._uri_of_one_mongos = target.uri_of_one_mongos()
        has_several_mongos = (target.topology == "sharded" and len(target.hosts) > 1) or target.has_several_services
        self._uri_of_several_mongos = target.uri if has_several_mongos else None
        # As on a simulated deployment, the internal client connects to only one mongos.
        self.internal_client: MongoClient[Any] = MongoClient(self._uri_of_one_mongos, **target.options)

    def uri(self, multiple: bool | None = None) -> str:
        """Return the URI of the deployment.

        :param multiple: Value of ``useMultipleMongoses`` in the definition of the client.
        :raises Skip: The case needs several mongos, and the deployment has only one mongos.
        """
        if multiple is not True or self.setting.topology not in ("sharded", "load-balanced"):
            return self._uri_of_one_mongos
        if self._uri_of_several_mongos is None:
            raise Skip("the case needs several mongos")
        return self._uri_of_several_mongos

    def election_id(self) -> Any:
        """Return the ID of the last election, or None if no primary of a replica set replies."""
        try:
            return self.internal_client.admin.command("hello").get("electionId")
        except AutoReconnect:
            return None

    def uri_of_one_server(self) -> str:
        """Return the URI of one writable server."""
        primary = self.internal_client.primary
        return self._target.uri_with_hosts("{}:{}".format(*primary) if primary else self._target.hosts[0])

    def configure_fail_point(self, address: str, command: Mapping[str, Any]) -> None:
        self._target.direct_client(address).admin.command(command)

    def disable_fail_points(self, names: set[str]) -> None:
        """Disable the fail points `names` on all servers."""
        if names:
            self._target.disable_fail_points(*names)

    def kill_sessions(self) -> None:
        """Kill all sessions of the deployment, and abort their transactions."""
        for client in self._mongos_clients():
            try:
                client.admin.command({"killAllSessions": []})
            except OperationFailure as error:
                if error.code not in IGNORED_ERROR_CODES:
                    raise

    def synchronize_mongos(self, document: Mapping[str, Any]) -> None:
        """Run `distinct` on each mongos, so that each mongos loads the metadata of collections.

        In a transaction, `distinct` fails on a mongos without the metadata of the collection.
        """
        if self.setting.topology == "sharded" and "distinct" in str(document["tests"]):
            for client in self._mongos_clients():
                for data in document.get("initialData", ()):
                    client[data["databaseName"]][data["collectionName"]].distinct("_id")

    def _mongos_clients(self) -> Iterable[MongoClient[Any]]:
        if self.setting.topology == "sharded":
            return [self._target.direct_client(host) for host in self._target.hosts]
        return [self.internal_client]

    def close(self) -> None:
        self.internal_client.close()


def run(target: Target, report: Report, name_part: str) -> None:
    """Run the official cases, and add their outcomes to the report.

    :param name_part: Run only the cases whose name contains this text.
    """
    deployment, properties = ExistingDeployment(target), target.properties()
    deployment.kill_sessions()
    try:
        for file in passing_files():
            for index, case in enumerate(file.document["tests"]):
                name = f"{file.id}: {case['description']}"
                if name_part in name:
                    with report.case(PART, name) as remarks:
                        _skip_by_requirements(file.path.stem, file.document, case, properties)
                        _skip_without_members(target, case)
                        check(file.document)
                        options = {**CLIENT_OPTIONS, **target.options}
                        _run_case(deployment, partial(read_file, file), index, options, remarks)
    finally:
        deployment.close()


def _run_case(
    deployment: ExistingDeployment,
    read_document: Callable[[], dict[str, Any]],
    index: int,
    options: dict[str, Any],
    remarks: list[str],
) -> None:
    """Run a case.

    Repeat a failed case if its outcome depends on the speed of the machine, or if an election took
    place. Each repetition doubles all times of the case. The times keep their ratios, so a fault of
    the driver fails each attempt.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        document = multiply_times(read_document(), 2 ** (attempt - 1))
        election_id = deployment.election_id()
        try:
            return Run(deployment, document, document["tests"][index], options).run()
        except Skip:
            raise
        except Exception as error:
            text = f"{document['tests'][index]} {document.get('createEntities')}"
            is_disturbed = deployment.election_id() != election_id and "replSetStepDown" not in text
            if not (is_disturbed or _SPEED_PATTERN.search(text)) or attempt == MAX_ATTEMPTS:
                raise
            remarks.append(f"repeated after {type(error).__name__}: {error}")


def multiply_times(value: Any, factor: int, is_time: bool = False) -> Any:
    """Return a copy of a JSON value. Multiply each number in the value of a time field, such as
    ``timeoutMS``, by `factor`.
    """
    if isinstance(value, dict):
        return {
            key: multiply_times(inner, factor, is_time or _TIME_KEY_PATTERN.fullmatch(key) is not None)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [multiply_times(inner, factor, is_time) for inner in value]
    return value * factor if is_time and type(value) in (int, float) else value


def _skip_without_members(target: Target, case: Mapping[str, Any]) -> None:
    if target.topology == "replicaset" and len(target.hosts) == 1:
        for words in _WORDS_OF_CASES_WITH_SEVERAL_MEMBERS:
            if words in str(case):
                raise Skip(f"the case ({words}) needs a replica set of several members")


def _skip_by_requirements(
    file_name: str,
    document: Mapping[str, Any],
    case: Mapping[str, Any],
    properties: DeploymentProperties,
) -> None:
    for alternatives in (document.get("runOnRequirements"), case.get("runOnRequirements")):
        unmet = _unmet_requirements(alternatives, properties)
        if unmet:
            raise Skip(f"requirement: {unmet}")
    if "skipReason" in case:
        raise Skip(f"{SKIPPED_BY_TEST}: {case['skipReason']}")
    words = words_of(document.get("createEntities")) | words_of(case)
    rule = rule_for(CaseOnTopology(file_name, case["description"], properties.topology, words))
    if rule is not None:
        raise Skip(rule.text)


def _unmet_requirements(alternatives: Sequence[Mapping[str, Any]] | None, properties: DeploymentProperties) -> str:
    """Return an empty text if the deployment satisfies an alternative, or if no alternative exists.

    Otherwise choose the alternative with the fewest unsatisfied requirements, and return their text.
    """
    return (
        "; ".join(min((unmet_requirements(each, properties) for each in alternatives), key=len)) if alternatives else ""
    )
