"""A hand-written mutation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conformance.pages import find_proofs

ROOT = Path(__file__).parents[2]

_proofs = cache(find_proofs)


class MutationError(Exception):
    """The mutation does not match the code."""


@dataclass(frozen=True)
class Mutation:
    """Replace `old`, which occurs once in a file below ``gmongo``, by `new`. A test of `tests` must fail.

    :param what: the fault of the changed code.
    :param tests: files below ``tests`` without suffix, or requirement IDs.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def targets(self) -> list[str]:
        """Return the tests as arguments for pytest."""
        named = self.tests.split()
        return [target for name in named for target in ([f"tests/{name}.py"] if "/" in name else _proofs()[name])]

    def apply(self, root: Path) -> str:
        """Change the file below `root`, and return the previous text.

        :raises MutationError: `old` does not occur exactly once.
        """
        path = root / "gmongo" / self.file
        before = path.read_text("utf-8")
        if before.count(self.old) != 1:
            raise MutationError(f"{self.name}: the text occurs {before.count(self.old)} times in {self.file}")
        after = before.replace(self.old, self.new)
        compile(after, str(path), "exec")
        path.write_text(after, "utf-8")
        return before
