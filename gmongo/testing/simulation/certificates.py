"""Certificates of simulated servers."""

from __future__ import annotations

import functools
import importlib.util
import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

# False, True, the paths `certificate` (with its key) and `ca`, or a context.
Tls: TypeAlias = bool | ssl.SSLContext | Mapping[str, "str | os.PathLike[str]"]
_FIELDS = frozenset({"certificate", "ca"})


class Certificates:
    """A certificate authority for tests, as files.

    :param authority: the certificate and the key of an existing authority, as PEM.
    :ivar ca_file: the path for ``tlsCAFile``.
    """

    def __init__(self, authority: tuple[bytes, bytes] | None = None) -> None:
        self._authority = _trustme().CA.from_pem(*authority) if authority else _trustme().CA()
        self._directory = tempfile.TemporaryDirectory(prefix="gmongo-tls-")
        self.ca_file = str(Path(self._directory.name) / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca_file)

    @property
    def authority(self) -> tuple[bytes, bytes]:
        """The certificate and the key of the authority, as PEM."""
        return self._authority.cert_pem.bytes(), self._authority.private_key_pem.bytes()

    def issue(self, *identities: str, common_name: str | None = None) -> str:
        """Create a certificate with its key, and return the path.

        :param identities: host names, addresses or, for clients, e-mail addresses.
        :param common_name: the common name of the subject, or None.
        """
        leaf = self._authority.issue_cert(*identities, common_name=common_name)
        handle, path = tempfile.mkstemp(suffix=".pem", dir=self._directory.name)
        os.close(handle)
        leaf.private_key_and_cert_chain_pem.write_to_path(path)
        return path


_adopted: list[tuple[bytes, bytes]] = []


@functools.cache
def certificates() -> Certificates:
    """Return the authority of this process. Its files exist until the process ends.

    :raises RuntimeError: trustme is not installed.
    """
    return Certificates(*_adopted)


def adopt(certificate: bytes, key: bytes) -> None:
    """Use the authority of another process. This process must not have used its authority."""
    _adopted[:] = [(certificate, key)]


def server_context(tls: Tls) -> ssl.SSLContext | None:
    """Return the context of a server, or None without TLS. The context verifies client certificates, if there are any.

    :raises ValueError: `tls` has another key than `certificate` and `ca`.
    :raises RuntimeError: `tls` is True, and trustme is not installed.
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
