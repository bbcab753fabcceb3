"""The error of what needs an extra that is not installed names the extra."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

_SETUP = Path(__file__).parents[2] / "setup.cfg"
# Packages that are not found.
_HIDE = """
import sys

class Hiding:
    def __init__(self, hidden):
        self.finders, self.hidden = list(sys.meta_path), hidden

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            return None
        return next((spec for each in self.finders if (spec := each.find_spec(name, path, target))), None)

sys.meta_path[:] = [Hiding({hidden!r})]
"""
_A_DEPLOYMENT = "from gmongo.testing import Deployment"
_MODULE = "import runpy; sys.argv = ['x', '.']; runpy.run_module({!r}, run_name='__main__')"

# The extra, the packages of it that are hidden, and a program that uses them.
MISSING = [
    ("snappy", "snappy", "import gmongo; gmongo.MongoClient('h', connect=False, compressors='snappy')"),
    ("zstd", "zstandard", "import gmongo; gmongo.MongoClient('h', connect=False, compressors='zstd')"),
    ("gssapi", "gssapi", "import gmongo; gmongo.MongoClient('mongodb://u@h/?authMechanism=GSSAPI')"),
    (
        "encryption",
        "pymongocrypt",
        "import gmongo; from gmongo.encryption_options import AutoEncryptionOpts as Options\n"
        "gmongo.MongoClient('h', connect=False, auto_encryption_opts=Options({'local': {'key': b'x' * 96}}, 'a.b'))",
    ),
    *(
        (
            "ocsp",
            each,
            "import gmongo; gmongo.MongoClient('h', connect=False, tls=True, tlsDisableOCSPEndpointCheck=False)",
        )
        for each in ("OpenSSL", "cryptography", "service_identity")
    ),
    ("status", "rich", _MODULE.format("gmongo.status")),
    (
        "opentelemetry",
        "opentelemetry",
        "import gmongo; gmongo.MongoClient('h', connect=False, tracing={'enabled': True})",
    ),
    ("opentelemetry", "opentelemetry", "import gmongo; gmongo.MongoClient('h', connect=False, metrics=True)"),
    *(("testing", package, _A_DEPLOYMENT) for package in ("sortedcontainers", "pcre2")),
    (
        "testing",
        "sortedcontainers",
        "from gmongo.testing import DeploymentThread; DeploymentThread.standalone().start()",
    ),
    ("testing", "sortedcontainers", _MODULE.format("gmongo.testing")),
    ("testing", "sortedcontainers", "import gmongo.testing.pytest_plugin"),
    ("testing", "trustme", f"{_A_DEPLOYMENT}; Deployment.standalone(tls=True).start()"),
    ("testing", "nx_27017", "from gmongo.testing import EmbeddedDatabase; EmbeddedDatabase().start()"),
    (
        "icu",
        "icu",
        f"{_A_DEPLOYMENT}; import gmongo\n"
        "with Deployment.standalone() as d, gmongo.MongoClient(d.uri) as c:\n"
        "    c.a.b.insert_one({'x': 'a'}); c.a.b.find_one({'x': 'a'}, collation={'locale': 'sv', 'strength': 4})",
    ),
]
# Of many packages, which are for the examples and for work on gmongo itself.
OF_PROGRAMS = {"examples", "dev"}


def test_every_extra_is_here() -> None:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(_SETUP)
    assert {extra for extra, *_ in MISSING} | OF_PROGRAMS == set(setup["options.extras_require"])


@pytest.mark.parametrize(("extra", "package", "program"), MISSING)
def test_it_is_named_when_its_package_is_missing(extra: str, package: str, program: str) -> None:
    source = _HIDE.replace("{hidden!r}", repr({package})) + program
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    last = [line for line in done.stderr.splitlines() if line.strip()][-2:]
    assert any(f"gmongo[{extra}]" in line for line in last), done.stderr[-600:]
