"""Certificates for the server's side of TLS."""

from __future__ import annotations

import functools
import importlib.util
import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

# Whether, or with what: the paths `certificate` (with its key) and `ca`, or a context.
Tls: TypeAlias = bool | ssl.SSLContext | Mapping[str, "str | os.PathLike[str]"]
_FIELDS = frozenset({"certificate", "ca"})


class Certificates:
    """A certificate authority made for tests, as files.

    :ivar ca_file: what a client gives as ``tlsCAFile``.
    """

    def __init__(self) -> None:
        self._authority = _trustme().CA()
        self._directory = tempfile.TemporaryDirectory(prefix="gmongo-tls-")
        self.ca_file = str(Path(self._directory.name) / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca_file)

    def issue(self, *identities: str, common_name: str | None = None) -> str:
        """The path of a new certificate with its key.

        :param identities: host names, addresses or, for clients, e-mail addresses.
        :param common_name: of its subject; None is none.
        """
        leaf = self._authority.issue_cert(*identities, common_name=common_name)
        handle, path = tempfile.mkstemp(suffix=".pem", dir=self._directory.name)
        os.close(handle)
        leaf.private_key_and_cert_chain_pem.write_to_path(path)
        return path


@functools.cache
def certificates() -> Certificates:
    """The authority of this process; its files go when the process ends.

    :raises RuntimeError: trustme is not installed.
    """
    return Certificates()


def server_context(tls: Tls) -> ssl.SSLContext | None:
    """The context for a server; None is without TLS. A client's certificate is verified if it gives one.

    :raises ValueError: `tls` names something else than `certificate` and `ca`.
    :raises RuntimeError: it is True, and trustme is not installed.
    """
    if tls is False:
        return None
    if isinstance(tls, ssl.SSLContext):
        return tls
    files: Mapping[str, Any]
    if tls is True:
        files = {"certificate": certificates().issue("127.0.0.1", "localhost"), "ca": certificates().ca_file}
    else:
        files = tls
    if not {"certificate"} <= set(files) <= _FIELDS:
        raise ValueError(f"tls has {sorted(files)}, expected 'certificate' and perhaps 'ca'")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["certificate"])
    if "ca" in files:
        context.load_verify_locations(files["ca"])
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _trustme() -> Any:
    if importlib.util.find_spec("trustme") is None:
        raise RuntimeError("tls=True needs trustme, which is not installed: run pip install 'gmongo[testing]'")
    import trustme

    return trustme
