"""Tests that the text of each hand-written mutation occurs in gmongo, and that the mutation changes
the behaviour.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.mutations.change_kinds import behaviour_of
from tests.mutations.mutation import ROOT, Mutation
from tests.mutations.tables import AREAS

ALL_MUTATIONS = [mutation for mutations in AREAS.values() for mutation in mutations]


@cache
def behaviour_of_file(file: str) -> object:
    return behaviour_of(compile(text_of(file), file, "exec", dont_inherit=True))


@cache
def text_of(file: str) -> str:
    return (ROOT / "gmongo" / file).read_text("utf-8")


@pytest.mark.parametrize("mutation", ALL_MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_matches_its_file_and_changes_behaviour(mutation: Mutation) -> None:
    source = text_of(mutation.file)
    assert source.count(mutation.old) == 1
    changed = compile(source.replace(mutation.old, mutation.new), mutation.file, "exec", dont_inherit=True)
    assert behaviour_of(changed) != behaviour_of_file(mutation.file)
    assert all((ROOT / target.partition("::")[0]).exists() for target in mutation.targets)


def test_names_of_mutations_are_unique() -> None:
    assert [name for name, times in Counter(mutation.name for mutation in ALL_MUTATIONS).items() if times > 1] == []
