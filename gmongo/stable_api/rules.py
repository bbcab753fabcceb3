"""Rules of API version 1: functions that check a command with the tables in :mod:`gmongo.stable_api.facts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from gmongo._documents import Document
from gmongo.stable_api import facts


class Verdict(Enum):
    """Verdict on a command or on a part of a command. The most serious verdict is first."""

    OUTSIDE = "not in API version 1"
    DEPRECATED = "deprecated in API version 1"
    UNKNOWN = "not known to be in API version 1"
    REFUSED = "refused by the server"
    NEWER = "added to API version 1 after MongoDB 5.0.0"


class Remark(NamedTuple):
    """Remark on a command or on a part of a command.

    :param verdict: the verdict on the command or the part.
    :param command: the name of the command.
    :param part: parameter, stage, operator, index type or index option; empty for the command itself.
    :param advice: advice on a replacement, or the reason for the verdict. The advice may be empty.
    """

    verdict: Verdict
    command: str
    part: str = ""
    advice: str = ""


@dataclass
class Finding:
    """Remark with the number of its occurrences, and with the place of its first occurrence.

    :param remark: the remark.
    :param place: ``file:line`` of the code that sent the first command with this remark. The place is
        empty if only driver code ran.
    :param count: the number of commands with this remark.
    """

    remark: Remark
    place: str
    count: int = 0

    @property
    def hinders(self) -> bool:
        """True if ``strict=True`` or ``deprecation_errors=True`` may make the finding an error."""
        return self.remark.verdict is not Verdict.NEWER


def remarks_on(name: str, command: Document) -> Iterator[Remark]:
    """Yield all remarks on a command. `command` is empty if the content of the command is secret."""
    canonical = facts.ALIASES.get(name, name)
    command_facts = facts.COMMANDS.get(canonical)
    if command_facts is None:
        yield Remark(Verdict.OUTSIDE, name, advice=facts.ADVICE.get(name, ""))
        return
    if canonical in facts.DEPRECATED_COMMANDS:
        yield Remark(Verdict.DEPRECATED, name)
    if command_facts.since != "5.0":
        yield Remark(Verdict.NEWER, name, advice=f"since MongoDB {command_facts.since}")
    for parameter in command:
        if parameter in command_facts.outside:
            yield Remark(Verdict.OUTSIDE, name, f"parameter {parameter}")
        elif parameter != name and parameter not in command_facts.inside and parameter not in facts.GENERIC_PARAMETERS:
            yield Remark(Verdict.UNKNOWN, name, f"parameter {parameter}")
    check = _CONTENT_CHECKS.get(canonical)
    if check is not None:
        yield from check(name, command)


# Functions that check the content of a command


def _pipeline_remarks(name: str, command: Document) -> Iterator[Remark]:
    pipeline = command.get("pipeline")
    yield from _stage_remarks(name, pipeline)
    yield from _operator_remarks(name, pipeline)


def _stage_remarks(name: str, pipeline: object) -> Iterator[Remark]:
    """Check the stages of a pipeline and of its nested pipelines."""
    for stage in _documents_in(pipeline):
        for stage_name, content in stage.items():
            if stage_name in facts.STAGES_OUTSIDE:
                yield Remark(Verdict.OUTSIDE, name, f"stage {stage_name}")
            elif stage_name == "$collStats":
                yield from _coll_stats_remarks(name, content)
            else:
                for inner in _inner_pipelines(stage_name, content):
                    yield from _stage_remarks(name, inner)


def _coll_stats_remarks(name: str, content: object) -> Iterator[Remark]:
    if isinstance(content, Mapping):
        for field in sorted(content.keys() - facts.COLL_STATS_INSIDE):
            yield Remark(Verdict.OUTSIDE, name, f"stage $collStats with {field}", "only count is in API version 1")


def _inner_pipelines(stage_name: str, content: object) -> list[object]:
    if not isinstance(content, Mapping):
        return []
    if stage_name == "$facet":
        return list(content.values())
    return [content.get("pipeline")] if stage_name in ("$lookup", "$unionWith") else []


def _operator_remarks(name: str, value: object) -> Iterator[Remark]:
    """Check the operators in filters, projections and expressions at any depth."""
    if isinstance(value, Mapping):
        for key, content in value.items():
            if key == "$meta" and isinstance(content, str) and content in facts.META_OUTSIDE:
                yield Remark(Verdict.OUTSIDE, name, f"operator $meta: {content}")
            elif key == "$text":
                yield Remark(Verdict.OUTSIDE, name, "operator $text", "text indexes are not in API version 1")
            yield from _operator_remarks(name, content)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _operator_remarks(name, each)


def _make_operator_check(*fields: str) -> Callable[[str, Document], Iterator[Remark]]:
    """Return a function that checks the operators in the parameters `fields` of a command."""
    return lambda name, command: _operator_remarks(name, [command.get(field) for field in fields])


def _make_filter_check(field: str) -> Callable[[str, Document], Iterator[Remark]]:
    """Return a function that checks the filters in the parameter `field` of a write command."""
    return lambda name, command: _operator_remarks(
        name, [each.get("q", each.get("filter")) for each in _documents_in(command.get(field))]
    )


def _index_remarks(name: str, command: Document) -> Iterator[Remark]:
    for index in _documents_in(command.get("indexes")):
        for option in index:
            if option in facts.INDEX_OPTIONS_OUTSIDE:
                yield Remark(Verdict.OUTSIDE, name, f"index option {option}")
        key = index.get("key")
        for kind in key.values() if isinstance(key, Mapping) else ():
            if isinstance(kind, str) and kind in facts.INDEX_TYPES_OUTSIDE:
                yield Remark(Verdict.OUTSIDE, name, f"index type {kind}")


def _explain_remarks(name: str, command: Document) -> Iterator[Remark]:
    explained_command = command.get(name)
    if isinstance(explained_command, Mapping) and explained_command:
        for remark in remarks_on(next(iter(explained_command)), explained_command):
            yield remark._replace(command=f"{name} of {remark.command}")


def _documents_in(value: object) -> list[Document]:
    """Return the documents in a list. Omit all other elements, because the server rejects them."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Sequence) else []


_CONTENT_CHECKS: dict[str, Callable[[str, Document], Iterator[Remark]]] = {
    "aggregate": _pipeline_remarks,
    "bulkWrite": _make_filter_check("ops"),
    "count": _make_operator_check("query"),
    "create": _pipeline_remarks,
    "createIndexes": _index_remarks,
    "delete": _make_filter_check("deletes"),
    "explain": _explain_remarks,
    "find": _make_operator_check("filter", "projection", "sort"),
    "findAndModify": _make_operator_check("query", "sort", "fields"),
    "update": _make_filter_check("updates"),
}
