"""The mutations fit the code, so that they can be tried: ``python -m tests.mutations``."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.mutations.mutation import ROOT, Mutation
from tests.mutations.tables import AREAS

ALL = [mutation for mutations in AREAS.values() for mutation in mutations]


@pytest.mark.parametrize("mutation", ALL, ids=lambda mutation: mutation.name)
def test_it_fits(mutation: Mutation) -> None:
    source = (ROOT / "gmongo" / mutation.file).read_text("utf-8")
    assert source.count(mutation.old) == 1
    assert mutation.new != mutation.old
    compile(source.replace(mutation.old, mutation.new), mutation.file, "exec")
    assert all((ROOT / target.partition("::")[0]).exists() for target in mutation.targets)


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(mutation.name for mutation in ALL).items() if times > 1] == []
