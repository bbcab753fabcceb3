"""What a mutation is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


class MutationError(Exception):
    """A mutation does not fit the code any more."""


@dataclass(frozen=True)
class Mutation:
    """One small change.

    :param name: short, such as ``c22``; its letters are the area.
    :param what: what is wrong then, for people.
    :param file: below ``gmongo``.
    :param old: text that occurs once in the file.
    :param new: what takes its place.
    :param tests: files of tests, below ``tests`` and without suffix, of which one must fail.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def targets(self) -> list[str]:
        """Its tests as paths."""
        return [f"tests/{name}.py" for name in self.tests.split()]

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
