"""Read the hand-written mutations from ``mutations.jsonl``. Each line contains one mutation.

A mutation is in the file only if two conditions are true:

- No random mutation can make this change. A random mutation (`change_kinds.py`) changes, for
  example, one operator, constant, condition, argument, loop, `except` or `finally`, or deletes one
  statement.
- The changed code has a fault that concerns an interleaving of greenlets, a fork, or security (such
  as certificates and secrets).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.mutations.mutation import Mutation

_FILE = Path(__file__).with_name("mutations.jsonl")


def _read() -> Mapping[str, tuple[Mutation, ...]]:
    areas: dict[str, list[Mutation]] = {"interleaving": [], "fork": [], "security": []}
    for line in _FILE.read_text("utf-8").splitlines():
        row = json.loads(line)
        areas[row.pop("subject")].append(Mutation(**row))
    return {subject: tuple(mutations) for subject, mutations in areas.items()}


AREAS = _read()
"""The mutations by their subject."""
