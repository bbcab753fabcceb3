"""If the package of an extra is missing, the error names the extra."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gmongo.testing.embedded import default_engine

_ROOT = Path(__file__).parents[2]
# The beginning of a test program. Each later import of a hidden package fails.
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
_GSSAPI = (
    "import gmongo; from tests.support.server import ScriptedServer\n"
    "with ScriptedServer() as s, gmongo.MongoClient('127.0.0.1', s.port, username='u', authMechanism='GSSAPI')"
)
_MODULE = "import runpy; sys.argv = ['x', '.']; runpy.run_module({!r}, run_name='__main__')"

# For each extra: a package of the extra, which the test hides, and a program that needs the package.
MISSING = [
    ("snappy", "snappy", "import gmongo; gmongo.MongoClient('h', connect=False, compressors='snappy')"),
    ("zstd", "zstandard", "import gmongo; gmongo.MongoClient('h', connect=False, compressors='zstd')"),
    ("gssapi", "gssapi", f"{_GSSAPI} as client: client.db.c.find_one()"),
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
    ("testing", "trustme", f"{_A_DEPLOYMENT}; Deployment.standalone(tls=True).start()"),
    (
        "mongod",
        "fiftyone",
        "import os, shutil; os.environ.pop('GMONGO_MONGOD', None); shutil.which = lambda *_: None\n"
        "from gmongo.testing.mongod import program; program._program_in_wheel = lambda: None\n"
        "from gmongo.testing import EmbeddedDatabase; EmbeddedDatabase(engine='mongod').start()",
    ),
    ("testing", "nx_27017", "from gmongo.testing import EmbeddedDatabase; EmbeddedDatabase().start()"),
    (
        "testing",
        "tzdata",
        f"import zoneinfo; zoneinfo.reset_tzpath(to=()); {_A_DEPLOYMENT}; import gmongo\n"
        "with Deployment.standalone() as d, gmongo.MongoClient(d.uri) as c:\n"
        "    c.a.b.insert_one({}); list(c.a.b.aggregate([{'$set': {'x': {'$hour': {'date': {'$toDate': '$_id'}, "
        "'timezone': 'Europe/Berlin'}}}}]))",
    ),
    (
        "icu",
        "icu",
        f"{_A_DEPLOYMENT}; import gmongo\n"
        "with Deployment.standalone() as d, gmongo.MongoClient(d.uri) as c:\n"
        "    c.a.b.insert_one({'x': 'a'}); c.a.b.find_one({'x': 'a'}, collation={'locale': 'sv', 'strength': 4})",
    ),
]
# These extras only install packages for the examples and for the development of gmongo.
TOOL_EXTRAS = {"examples", "dev"}
WITHOUT_PACKAGES = {"aws"}


def declared_extras() -> set[str]:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(_ROOT / "setup.cfg")
    return set(setup["options.extras_require"])


def test_case_table_covers_every_extra() -> None:
    assert {extra for extra, *_ in MISSING} | TOOL_EXTRAS | WITHOUT_PACKAGES == declared_extras()


def test_tox_has_environment_for_each_extra() -> None:
    settings = (_ROOT / "tox.ini").read_text()
    [factors] = re.findall(r"^\[testenv:extra-\{(.*)\}\]$", settings, re.MULTILINE)
    programs = {path.stem.removesuffix("_extra") for path in (_ROOT / "tests" / "extras").glob("*_extra.py")}
    assert set(factors.split(",")) == programs == declared_extras() - TOOL_EXTRAS | {"none"}


@pytest.mark.parametrize("extra", sorted({"none", *declared_extras()} - TOOL_EXTRAS))
def test_program_of_extra_succeeds(extra: str) -> None:
    for package in {package for name, package, _ in MISSING if name == extra}:
        pytest.importorskip(package)
    if extra == "mongod" and default_engine() != "mongod":
        pytest.skip("no mongod runs here")
    done = subprocess.run(
        [sys.executable, "-m", "tests.extras", extra],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=_ROOT,
    )
    assert done.stdout == f"{extra}: done\n", done.stderr[-600:]


@pytest.mark.parametrize(("extra", "package", "program"), MISSING)
def test_error_of_missing_package_names_extra(extra: str, package: str, program: str) -> None:
    sys_path = f"import sys; sys.path.insert(0, {str(_ROOT)!r})\n"
    source = sys_path + _HIDE.replace("{hidden!r}", repr({package})) + program
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    last = [line for line in done.stderr.splitlines() if line.strip()][-2:]
    assert any(f"gmongo[{extra}]" in line for line in last), done.stderr[-600:]
