"""Replace PyMongo. After ``import gmongo.as_pymongo``, imports of ``pymongo`` or ``gridfs`` return gmongo's modules.

Import this module before any import of PyMongo: in the first line of the program, or after
``gevent.monkey.patch_all()``. For gunicorn, write the import into ``gunicorn.conf.py``. For pytest,
use ``-p gmongo.as_pymongo``. A second import of this module does nothing.
``python -m gmongo PROGRAM`` replaces PyMongo without this import, and also patches the standard
library. ``docs/migrating.md`` describes the differences between gmongo and PyMongo.

:raises RuntimeError: the program has already imported PyMongo. The message names the importing
    modules.
"""

from __future__ import annotations

from gmongo._stand_in import PYMONGO_VERSION, install
from gmongo._version import __version__

install()


def pytest_report_header() -> str:
    """Return a line for the header of pytest's report. pytest calls this function if this module is a plugin."""
    return f"pymongo: gmongo {__version__} stands in for PyMongo {PYMONGO_VERSION}"
