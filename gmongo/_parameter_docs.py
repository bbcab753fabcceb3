"""Shared descriptions of parameters, which decorators add to the docstrings of public methods."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

Kind = TypeVar("Kind", bound=type)
P = ParamSpec("P")
R = TypeVar("R")

SHARED_PARAMETERS = """
:param array_filters: conditions for the array elements that `update` names as ``$[name]``; None by default.
:param bypass_document_validation: True disables the document validation of the server; None by default.
:param codec_options: the options for encoding and decoding; None (the default) inherits the options.
:param command: the name of the command, or the whole command as a mapping.
:param encrypted_fields: the collection's encrypted fields, whose state collections the method also drops. None (the
    default) lets a client with ``auto_encryption_opts`` find the encrypted fields.
:param filter: a query; ``{}`` matches every document.
:param kwargs: further fields of the command, such as ``maxTimeMS`` (in milliseconds), and
    ``collation`` if the command compares strings.
:param name_or_collection: the name of the collection, or a :class:`~gmongo.collection.Collection`.
:param pipeline: the list of the pipeline's stages.
:param read_concern: the isolation level of reads; None (the default) inherits the level.
:param read_preference: the servers to which the client sends reads; None (the default) inherits the read preference.
:param replacement: the new document, without update operators. An ``_id`` must equal the ``_id`` of the replaced
    document.
:param return_document: :attr:`ReturnDocument.BEFORE` (the default) returns the original document, and
    :attr:`ReturnDocument.AFTER` returns the new document.
:param update: update operators such as ``{"$set": {"title": "new"}}``, or a pipeline as a list of stages.
:param upsert: True inserts a document if no document matches; False by default.
:param value: the value of the first field, if `command` is the name of the command; 1 by default.
:param write_concern: the acknowledgement that each write waits for; None (the default) inherits the write concern.
"""
_FIELD_START = re.compile(r"^(?=:(?:param|returns|raises)\b)", re.MULTILINE)
_PARAMETER_FIELD = re.compile(r":param (\w+):")


def describes_parameters(*sources: type | str) -> Callable[[Kind], Kind]:
    """Decorate a class: complete the parameter descriptions of the class and its public methods.

    :param sources: classes and texts, whose ``:param`` fields describe the parameters. A later
        source overrides an earlier source.
    """
    shared: dict[str, str] = {}
    for source in sources:
        shared |= _index_parameters(_split_fields(source if isinstance(source, str) else source.__doc__)[1:])

    def complete_docstrings(kind: Kind) -> Kind:
        members = [member for name, member in vars(kind).items() if name[0] != "_"]
        for documented, function in ((kind, getattr(kind, "__init__", None)), *zip(members, members, strict=True)):
            if inspect.isfunction(function) and documented.__doc__:
                documented.__doc__ = _complete_docstring(documented.__doc__, function, shared)
        return kind

    return complete_docstrings


def has_parameters_of(original: Callable[P, object]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Decorate a function: set the signature to the parameters of `original`."""

    def declare(function: Callable[..., R]) -> Callable[P, R]:
        signature = inspect.signature(original)
        return_annotation = function.__annotations__["return"]
        vars(function)["__signature__"] = signature.replace(return_annotation=return_annotation)
        vars(function)["__wrapped__"] = original
        return function

    return declare


def read_only(name: str, doc: str) -> Any:
    """Return a property that has the docstring `doc` and returns the attribute `name`."""
    return property(attrgetter(name), doc=doc)


def _complete_docstring(docstring: str, function: Any, shared: dict[str, str]) -> str:
    code = inspect.unwrap(function).__code__
    parameter_count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[:parameter_count]
    summary, *fields = _split_fields(docstring)
    descriptions = {**shared, **_index_parameters(fields)}
    parameters = [descriptions[name] for name in names if name in descriptions]
    return "\n".join((f"{summary}\n", *parameters, *(each for each in fields if not _PARAMETER_FIELD.match(each))))


def _split_fields(docstring: str | None) -> list[str]:
    """Split a docstring into a list: the text before the first field, and then each field."""
    return [part.strip() for part in _FIELD_START.split(inspect.cleandoc(docstring or ""))]


def _index_parameters(fields: list[str]) -> dict[str, str]:
    return {match[1]: field for field in fields if (match := _PARAMETER_FIELD.match(field))}
