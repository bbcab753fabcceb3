"""``import gmongo.as_pymongo``: later imports of ``pymongo`` or ``gridfs`` in this process return gmongo's modules.

Make it the first line of the program, before any import of PyMongo. In ``gunicorn.conf.py`` use the same line, and for
pytest ``-p gmongo.as_pymongo``. ``python -m gmongo PROGRAM`` also patches the standard library and needs no such line.
``docs/migrating.md`` describes the differences. A second import does nothing.

:raises RuntimeError: PyMongo was imported before; the message names the importing modules.
"""

from __future__ import annotations

from gmongo._stand_in import PYMONGO_VERSION, install
from gmongo._version import __version__

install()


def pytest_report_header() -> str:
    """Return a line for the header of pytest's report, if this module is a plugin."""
    return f"pymongo: gmongo {__version__} stands in for PyMongo {PYMONGO_VERSION}"
