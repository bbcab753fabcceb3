"""A hand-written mutation: a change of gmongo, and the tests that must detect the change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conformance.pages import find_proofs

ROOT = Path(__file__).parents[2]

_proofs = cache(find_proofs)


class MutationError(Exception):
    """Raised if the mutation does not match the code of gmongo."""


@dataclass(frozen=True)
class Mutation:
    """A change of a file below ``gmongo``: `new` replaces `old`, which occurs exactly once in the
    file.

    :param what: the fault that the changed code has.
    :param tests: test files (paths below ``tests`` without suffix) and requirement IDs, separated by
        spaces. At least one of the selected tests must fail.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def targets(self) -> list[str]:
        """Return the pytest arguments that select the tests of the mutation."""
        names = self.tests.split()
        return [target for name in names for target in ([f"tests/{name}.py"] if "/" in name else _proofs()[name])]

    def apply(self, root: Path) -> str:
        """Change the file in `root`, which is a copy of the project.

        Return the previous text of the file.

        :raises MutationError: `old` does not occur exactly once.
        """
        path = root / "gmongo" / self.file
        old_source = path.read_text("utf-8")
        if old_source.count(self.old) != 1:
            raise MutationError(f"{self.name}: the text occurs {old_source.count(self.old)} times in {self.file}")
        new_source = old_source.replace(self.old, self.new)
        compile(new_source, str(path), "exec")
        path.write_text(new_source, "utf-8")
        return old_source
