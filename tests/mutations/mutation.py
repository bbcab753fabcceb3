"""What a mutation is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conformance.pages import find_proofs

ROOT = Path(__file__).parents[2]

_proofs = cache(find_proofs)


class MutationError(Exception):
    """A mutation does not fit the code any more."""


@dataclass(frozen=True)
class Mutation:
    """One small change.

    :param name: short, such as ``c35``.
    :param what: the fault in the changed code, for people.
    :param file: below ``gmongo``.
    :param old: text that occurs once in the file.
    :param new: what takes its place.
    :param tests: of which one must fail: files, below ``tests`` and without suffix, or IDs of requirements, whose tests
        are meant.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def targets(self) -> list[str]:
        """Its tests as pytest takes them."""
        named = self.tests.split()
        return [target for name in named for target in ([f"tests/{name}.py"] if "/" in name else _proofs()[name])]

    def apply(self, root: Path) -> str:
        """Change the file below `root`; returns what was there before.

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
