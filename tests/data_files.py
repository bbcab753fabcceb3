"""Read the tables of test cases. A table is in a data file, in which each line is a JSON object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def rows(module: str, table: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of the data file that has the folder and name of a module, and the ending ``.jsonl``.

    :param module: the path of the module.
    :param table: return only the rows whose field ``table`` has this value, without this field.
    """
    parsed = map(json.loads, Path(module).with_suffix(".jsonl").read_text("utf-8").splitlines())
    return [row for row in parsed if table is None or row.pop("table") == table]
