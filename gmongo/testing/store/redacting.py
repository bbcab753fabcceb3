"""The ``$redact`` stage."""

from __future__ import annotations

from typing import Any

from gmongo.testing.store.errors import location
from gmongo.testing.store.expressions import Variables, compile_expression
from gmongo.testing.store.surroundings import Document, Documents, Stage, Surroundings
from gmongo.testing.store.values import MISSING

# What the expression's value has to be one of.
_DECISIONS = {name: f"<{name.lower()}>" for name in ("DESCEND", "PRUNE", "KEEP")}


def compile_redact(spec: Any, around: Surroundings) -> Stage:
    """The stage: the expression decides over each document, and where it says so over those in it."""
    decide = compile_expression(spec, around.scope.within(_DECISIONS))

    def redacted(document: Document, variables: Variables) -> Any:
        decision = decide({**variables, "CURRENT": document})
        if decision == _DECISIONS["KEEP"]:
            return document
        if decision == _DECISIONS["PRUNE"]:
            return MISSING
        if decision != _DECISIONS["DESCEND"]:
            raise location(17053, "$redact's expression should not return anything aside from the variables $$KEEP, "
                           "$$DESCEND, and $$PRUNE")  # fmt: skip
        found = {name: within(part, variables) for name, part in document.items()}
        return {name: part for name, part in found.items() if part is not MISSING}

    def within(value: Any, variables: Variables) -> Any:
        if isinstance(value, dict):
            return redacted(value, variables)
        if isinstance(value, list):
            found = [within(element, variables) for element in value]
            return [element for element in found if element is not MISSING]
        return value

    def run(documents: Documents, variables: Variables) -> Documents:
        for document in documents:
            found = redacted(document, {**variables, **_DECISIONS, "ROOT": document})
            if found is not MISSING:
                yield found

    return run
