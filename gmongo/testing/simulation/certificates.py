"""Certificates of simulated servers and of test clients."""

from __future__ import annotations

import functools
import importlib.util
import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

# The servers use no TLS (False), a generated certificate (True), an existing SSLContext, or the files
# of a mapping. The key `certificate` (a file with certificate and key) is required, and `ca` is optional.
Tls: TypeAlias = bool | ssl.SSLContext | Mapping[str, "str | os.PathLike[str]"]
_TLS_KEYS = frozenset({"certificate", "ca"})


class Certificates:
    """A certificate authority for tests, which writes its certificates to files.

    :param authority: the certificate and the key of an existing authority, as PEM; None creates a new
        authority.
    :ivar ca_file: the path of the authority's certificate, for the option ``tlsCAFile``.
    """

    def __init__(self, authority: tuple[bytes, bytes] | None = None) -> None:
        self._authority = _import_trustme().CA.from_pem(*authority) if authority else _import_trustme().CA()
        self._directory = tempfile.TemporaryDirectory(prefix="gmongo-tls-")
        self.ca_file = str(Path(self._directory.name) / "ca.pem")
        self._authority.cert_pem.write_to_path(self.ca_file)

    @property
    def authority(self) -> tuple[bytes, bytes]:
        """The certificate and the key of the authority, as PEM."""
        return self._authority.cert_pem.bytes(), self._authority.private_key_pem.bytes()

    def issue(self, *identities: str, common_name: str | None = None) -> str:
        """Create a certificate and its key in one file, and return the path of the file.

        :param identities: the names in the certificate: host names, IP addresses or, for clients,
            e-mail addresses.
        :param common_name: the common name of the subject, such as ``ada`` in ``CN=ada,OU=tests,O=gmongo``, or None.
        """
        subject = {"common_name": common_name, "organization_unit_name": "tests", "organization_name": "gmongo"}
        leaf = self._authority.issue_cert(*identities, **subject)
        handle, path = tempfile.mkstemp(suffix=".pem", dir=self._directory.name)
        os.close(handle)
        leaf.private_key_and_cert_chain_pem.write_to_path(path)
        return path


_parent_authority: list[tuple[bytes, bytes]] = []


@functools.cache
def certificates() -> Certificates:
    """Return the certificate authority of this process. The files of the authority exist until the process ends.

    :raises RuntimeError: trustme is not installed.
    """
    return Certificates(*_parent_authority)


def use_authority(certificate: bytes, key: bytes) -> None:
    """Use the authority of the parent process. Call the function before the first call of :func:`certificates`."""
    _parent_authority[:] = [(certificate, key)]


def create_server_context(tls: Tls) -> ssl.SSLContext | None:
    """Return the SSLContext of a server. Return None if `tls` is False.

    If `tls` is True or has the key ``ca``, the context verifies each certificate that a client sends.
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
    if not {"certificate"} <= set(files) <= _TLS_KEYS:
        raise ValueError(f"tls has the keys {sorted(files)}, but must have 'certificate' and may have 'ca'")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files["certificate"])
    if "ca" in files:
        context.load_verify_locations(files["ca"])
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _import_trustme() -> Any:
    if importlib.util.find_spec("trustme") is None:
        raise RuntimeError("tls=True needs trustme, which is not installed: run pip install 'gmongo[testing]'")
    import trustme

    return trustme
