"""``python -m tests.extras NAME`` runs the program of an extra. The program ``none`` uses gmongo without extras."""

from __future__ import annotations

import sys
from importlib import import_module

if __name__ == "__main__":
    name = sys.argv[1].removeprefix("extra-")
    import_module(f"tests.extras.{name}_extra").main()
    print(f"{name}: done")
