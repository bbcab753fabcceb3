"""``python -m tests.extras NAME`` runs the program of an extra. The program ``none`` uses gmongo
without extras.
"""

from __future__ import annotations

import sys

from tests.extras import programs

if __name__ == "__main__":
    name = sys.argv[1].removeprefix("extra-")
    getattr(programs, name)()
    print(f"{name}: done")
