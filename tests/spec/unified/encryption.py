"""Client-side encryption in cases: automatic encryption of client entities, and ``clientEncryption``
entities.

The simulated key management services cannot decrypt data keys that real services have encrypted.
The simulated mongocryptd supports JSON schemas, but no encrypted fields of Queryable Encryption.
"""

from __future__ import annotations

import functools
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bson.codec_options import CodecOptions
from gevent.ssl import SSLContext

from gmongo import MongoClient
from gmongo.testing.simulation.certificates import certificates
from tests.spec.unified.schema import FormatError
from tests.spec.unified.values import check_known
from tests.support.kms import KmsServer
from tests.support.mongocryptd import Mongocryptd

if TYPE_CHECKING:
    from gmongo.encryption import ClientEncryption
    from gmongo.encryption_options import AutoEncryptionOpts

LOCAL_KEY = (
    "Mng0NCt4ZHVUYUJCa1kxNkVyNUR1QURhZ2h2UzR2d2RrZzh0cFBwM3R6NmdWMDFBMUN3YkQ5aXRRMkhGRGdQV09wOGVNYUMxT2k3NjZKelhaQmRC"
    "ZGJkTXVyZG9uSjFk"
)
_KMS_HOSTS = ("kms.us-east-1.amazonaws.com", "kms.us-east-2.amazonaws.com", "login.microsoftonline.com")
_KMS_HOSTS += ("*.vault.azure.net", "oauth2.googleapis.com", "cloudkms.googleapis.com", "localhost")
_OPTION_NAMES = {
    "keyVaultNamespace": "key_vault_namespace",
    "kmsProviders": "kms_providers",
    "schemaMap": "schema_map",
    "bypassAutoEncryption": "bypass_auto_encryption",
    "bypassQueryAnalysis": "bypass_query_analysis",
    "encryptedFieldsMap": "encrypted_fields_map",
    "keyExpirationMS": "key_expiration_ms",
}


def auto_encryption_options(spec: Mapping[str, Any]) -> AutoEncryptionOpts:
    """Convert ``autoEncryptOpts`` of a client entity to AutoEncryptionOpts."""
    from gmongo.encryption_options import AutoEncryptionOpts

    check_known(spec, {*_OPTION_NAMES, "extraOptions"}, "autoEncryptOpts")
    options = {_OPTION_NAMES[name]: value for name, value in spec.items() if name in _OPTION_NAMES}
    providers = options["kms_providers"] = kms_providers(options["kms_providers"])
    return AutoEncryptionOpts(
        **options,
        mongocryptd_uri=_mongocryptd_server().uri,
        mongocryptd_bypass_spawn=True,
        kms_tls_options=_tls_options(providers),
        kms_connect_callback=_kms_server().connect,
    )


def client_encryption(spec: Mapping[str, Any], client: MongoClient[Any]) -> ClientEncryption[Any]:
    """Create the ClientEncryption object of a ``clientEncryption`` entity."""
    from gmongo.encryption import ClientEncryption

    known = {"keyVaultClient", "keyVaultNamespace", "kmsProviders", "keyExpirationMS", "timeoutMS"}
    check_known(spec, known, "clientEncryptionOpts")
    providers = kms_providers(spec["kmsProviders"])
    return ClientEncryption(
        providers,
        spec["keyVaultNamespace"],
        client,
        CodecOptions(),
        _tls_options(providers),
        spec.get("keyExpirationMS"),
        _kms_server().connect,
        spec.get("timeoutMS"),
    )


def kms_providers(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the KMS providers of a definition. Replace each placeholder by a value."""
    return {
        provider: {
            name: _placeholder_value(name) if isinstance(value, Mapping) and "$$placeholder" in value else value
            for name, value in fields.items()
        }
        for provider, fields in spec.items()
    }


def _placeholder_value(name: str) -> Any:
    if name == "key":
        return LOCAL_KEY
    if name == "privateKey":
        return _private_key()
    if name == "endpoint":
        return "localhost:5698"
    if name in ("accessKeyId", "secretAccessKey", "sessionToken", "tenantId", "clientId", "clientSecret", "email"):
        return "anything"
    if name == "accessToken":
        return "token"
    raise FormatError(f"the runner has no value for the placeholder of the option {name}")


def _tls_options(providers: Mapping[str, Any]) -> dict[str, Any]:
    remote = [name for name in providers if not name.startswith("local")]
    return {name: {"tlsCAFile": certificates().ca_file} for name in remote}


@functools.cache
def _private_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    encoding, form = serialization.Encoding.DER, serialization.PrivateFormat.PKCS8
    return b64encode(key.private_bytes(encoding, form, serialization.NoEncryption())).decode()


@functools.cache
def _kms_server() -> KmsServer:
    context = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates().issue(*_KMS_HOSTS))
    return KmsServer(context).__enter__()


@functools.cache
def _mongocryptd_server() -> Mongocryptd:
    server = Mongocryptd()
    server.start()
    return server
