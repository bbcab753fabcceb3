"""``import gmongo.as_pymongo``: from here on, an import of ``pymongo`` or ``gridfs`` in this process is gmongo.

Make it the first line of the program, before anything imports PyMongo. The same line is enough in ``gunicorn.conf.py``,
and ``-p gmongo.as_pymongo`` for pytest. ``python -m gmongo PROGRAM`` does it without a line, and patches the standard
library too. ``docs/migrating.md`` says what to expect. A second import does nothing.

:raises RuntimeError: PyMongo itself was imported before; the message names the modules that have it.
"""

from __future__ import annotations

from gmongo._stand_in import PYMONGO_VERSION, install
from gmongo._version import __version__

install()


def pytest_report_header() -> str:
    """What pytest shows at the head of its report, where this module is a plugin."""
    return f"pymongo: gmongo {__version__} stands in for PyMongo {PYMONGO_VERSION}"
