"""gmongo creates and decrypts data keys with the key management service (KMS) of each provider.

The tests also cover KMS requests that fail, time out, or are interrupted.
"""

from __future__ import annotations

import ssl
from base64 import b64encode

import gevent
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from gevent.ssl import SSLContext

import gmongo
from gmongo.encryption import Algorithm, ClientEncryption
from gmongo.encryption_options import HTTPProxyKMSConnect
from gmongo.errors import ConfigurationError, EncryptionError, NetworkTimeout
from tests.encryption.conftest import CODEC_OPTIONS, VAULT
from tests.encryption.proxy import Proxy
from tests.support.cases import with_cases
from tests.support.greenlets import living_greenlets
from tests.support.kms import KmsServer
from tests.support.wait import eventually

RANDOMIZED = Algorithm.AEAD_AES_256_CBC_HMAC_SHA_512_Random
HOST_NAMES = (
    "kms.us-east-1.amazonaws.com",
    "login.microsoftonline.com",
    "example.vault.azure.net",
    "oauth2.googleapis.com",
    "cloudkms.googleapis.com",
    "vault.kms.example",
    "127.0.0.1",
    "localhost",
)


@pytest.fixture(scope="module")
def pem_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kms")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for name, certificate in (
        ("server", authority.issue_cert(*HOST_NAMES)),
        ("other host", authority.issue_cert("elsewhere.example")),
        ("client", authority.issue_cert("ann@example.com")),
        ("unknown authority", trustme.CA().issue_cert(*HOST_NAMES)),
    ):
        certificate.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.pem")
    return folder


def tls_context_with(pem_folder, name, requires_client_certificate=False):
    context = SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem_folder / f"{name}.pem")
    if requires_client_certificate:
        context.load_verify_locations(pem_folder / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def kms(pem_folder):
    with KmsServer(tls_context_with(pem_folder, "server")) as server:
        yield server


@pytest.fixture(scope="module")
def providers():
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "aws": {"accessKeyId": "id", "secretAccessKey": "very secret"},
        "azure": {"tenantId": "tenant", "clientId": "client", "clientSecret": "very secret"},
        "gcp": {"email": "ann@example.com", "privateKey": b64encode(key).decode()},
        "kmip": {"endpoint": "vault.kms.example:5698"},
        "kmip:delegated": {"endpoint": "vault.kms.example"},
        "aws:other": {"accessKeyId": "id", "secretAccessKey": "very secret", "sessionToken": "very secret"},
    }


AZURE_MASTER_KEY = {"keyVaultEndpoint": "example.vault.azure.net", "keyName": "name"}
GCP_MASTER_KEY = {"projectId": "p", "location": "global", "keyRing": "r", "keyName": "n"}
MASTER_KEYS = {
    "aws": {"region": "us-east-1", "key": "arn:aws:kms:us-east-1:1:key/1"},
    "aws:other": {"region": "us-east-1", "key": "arn:aws:kms:us-east-1:1:key/1"},
    "azure": AZURE_MASTER_KEY,
    "gcp": GCP_MASTER_KEY,
    "kmip": {},
    "kmip:delegated": {"delegated": True},
}


@pytest.fixture
def open_encryption(client, pem_folder, providers, kms):
    client_encryptions = []

    def create_encryption(options=None, callback=kms.connect, **more_providers):
        tls = {name: {"tlsCAFile": str(pem_folder / "ca.pem"), **(options or {})} for name in providers}
        encryption = ClientEncryption(
            {**providers, **more_providers}, VAULT, client, CODEC_OPTIONS, tls, kms_connect_callback=callback
        )
        client_encryptions.append(encryption)
        return encryption

    yield create_encryption
    for each in client_encryptions:
        each.close()


@pytest.mark.parametrize("provider", MASTER_KEYS)
def test_data_key_of_each_provider_encrypts_and_decrypts(open_encryption, kms, provider):
    encryption = open_encryption()
    key = encryption.create_data_key(provider, MASTER_KEYS[provider], key_alt_names=["name"])
    assert kms.requests
    assert encryption.get_key(key)["masterKey"]["provider"] == provider
    request_count = len(kms.requests)
    secret = encryption.encrypt("secret", RANDOMIZED, key_alt_name="name")
    assert len(kms.requests) > request_count
    request_count = len(kms.requests)
    assert encryption.decrypt(secret) == "secret"
    assert len(kms.requests) == request_count  # The decryption uses the cached key.
    assert open_encryption().decrypt(secret) == "secret"
    eventually(lambda: kms.open_connection_count == 0)


def test_data_key_is_rewrapped_with_each_kms_provider(open_encryption):
    encryption = open_encryption(local={"key": bytes(96)})
    key = encryption.create_data_key("local")
    secret = encryption.encrypt("secret", RANDOMIZED, key)
    for provider, master_key in MASTER_KEYS.items():
        result = encryption.rewrap_many_data_key({}, provider, master_key)
        assert result.bulk_write_result.modified_count == 1
        assert encryption.get_key(key)["masterKey"]["provider"] == provider
        assert open_encryption().decrypt(secret) == "secret"
    assert encryption.rewrap_many_data_key({"keyAltNames": "no such key"}).bulk_write_result is None


@pytest.mark.parametrize("failure_count", [1, 2])
def test_kms_request_is_retried_with_backoff_after_network_error(open_encryption, kms, failure_count, monkeypatch):
    backoffs = []
    monkeypatch.setattr("gmongo._encryption.kms.sleep", backoffs.append)
    kms.failure_count = failure_count
    open_encryption().create_data_key("aws", MASTER_KEYS["aws"])
    assert len(kms.requests) == failure_count + 1
    assert len(backoffs) == failure_count and all(0 < backoff < 60 for backoff in backoffs)


def test_kms_request_fails_after_a_limited_number_of_attempts(open_encryption, kms):
    kms.failure_count = 1000
    with pytest.raises(EncryptionError, match=r"last attempt failed with: aws KMS at .*connection closed"):
        open_encryption().create_data_key("aws", MASTER_KEYS["aws"])
    assert 1 < len(kms.requests) < 10


def test_http_error_of_kms_raises_encryption_error(open_encryption, kms):
    kms.status = 403
    with pytest.raises(EncryptionError, match="403"):
        open_encryption().create_data_key("aws", MASTER_KEYS["aws"])


@pytest.mark.parametrize(
    ("pem_name", "message"),
    [
        ("unknown authority", "certificate was not accepted"),
        ("other host", "certificate was not accepted.*(mismatch|not valid for)"),
    ],
)
def test_invalid_certificate_of_kms_raises_error_before_any_request(client, pem_folder, providers, pem_name, message):
    with KmsServer(tls_context_with(pem_folder, pem_name)) as kms:
        tls = {"aws": {"tlsCAFile": str(pem_folder / "ca.pem")}}
        with (
            ClientEncryption(
                {"aws": providers["aws"]}, VAULT, client, CODEC_OPTIONS, tls, kms_connect_callback=kms.connect
            ) as encryption,
            pytest.raises(EncryptionError, match=rf"{message}(?!\w)"),
        ):
            encryption.create_data_key("aws", MASTER_KEYS["aws"])
        assert kms.requests == []


def test_client_certificate_is_sent_to_kms(client, pem_folder):
    with KmsServer(tls_context_with(pem_folder, "server", True)) as kms:
        trusted = {"tlsCAFile": str(pem_folder / "ca.pem")}
        for options, succeeds in (
            (trusted, False),
            ({**trusted, "tlsCertificateKeyFile": str(pem_folder / "client.pem")}, True),
        ):
            with ClientEncryption(
                {"kmip": {"endpoint": f"127.0.0.1:{kms.port}"}}, VAULT, client, CODEC_OPTIONS, {"kmip": options}
            ) as encryption:
                if succeeds:
                    encryption.create_data_key("kmip")
                else:
                    with pytest.raises(EncryptionError):
                        encryption.create_data_key("kmip")


@with_cases
def test_invalid_kms_tls_options_raise_error_with_reason(client, providers, options, error_class, message):
    with pytest.raises(error_class, match=rf"{message}(?!\w)"):
        ClientEncryption({"aws": providers["aws"]}, VAULT, client, CODEC_OPTIONS, options)


def test_kms_tls_options_accept_disabled_ocsp_endpoint_check(client, providers):
    options = {"aws": {"tlsDisableOCSPEndpointCheck": True}}
    ClientEncryption({"aws": providers["aws"]}, VAULT, client, CODEC_OPTIONS, options).close()


def test_timeout_block_limits_kms_request(open_encryption, kms):
    kms.delay = lambda: gevent.sleep(5)
    encryption = open_encryption()
    with gmongo.timeout(0.2), pytest.raises(EncryptionError) as caught:
        encryption.create_data_key("aws", MASTER_KEYS["aws"])
    assert caught.value.timeout
    assert isinstance(caught.value.cause, NetworkTimeout)


def test_gevent_timeout_in_kms_request_is_raised_unchanged(open_encryption, kms):
    kms.delay = lambda: gevent.sleep(5)
    encryption = open_encryption()
    for limit in (
        gevent.Timeout(0.1),
        gevent.Timeout(0.1, TimeoutError("custom")),
        gevent.Timeout(0.1, OSError("custom")),
    ):
        with pytest.raises((gevent.Timeout, OSError)) as caught, limit:
            encryption.create_data_key("aws", MASTER_KEYS["aws"])
        assert caught.value is limit or str(caught.value) == "custom"


def test_kill_at_any_time_of_kms_request_leaks_no_connection_and_no_greenlet(open_encryption, kms):
    """Kill greenlets that send requests to a KMS.

    Each greenlet runs longer than the previous greenlet, so that the kills interrupt each wait.
    """
    encryption = open_encryption()
    encryption.create_data_key("azure", AZURE_MASTER_KEY)
    before = len(list(living_greenlets()))
    for step in range(40):
        greenlet = gevent.spawn(encryption.create_data_key, "azure", AZURE_MASTER_KEY)
        gevent.sleep(step * 0.0005)
        greenlet.kill()
    encryption.create_data_key("azure", AZURE_MASTER_KEY)
    eventually(lambda: kms.open_connection_count == 0 and len(list(living_greenlets())) <= before)


@pytest.fixture
def metadata_service(monkeypatch):
    from tests.auth.endpoints import Endpoint

    def reply(method, path, headers, body):
        if headers.get("metadata") == "true" and "resource=https%3A%2F%2Fvault.azure.net" in path:
            return 200, '{"access_token": "token of azure", "expires_in": "3600"}'
        if headers.get("metadata-flavor") == "Google":
            return 200, '{"access_token": "token of google"}'
        return 404, "unknown client"

    with Endpoint(reply) as endpoint:
        monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint.url)
        monkeypatch.setenv("GCE_METADATA_HOST", endpoint.host)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield endpoint


@pytest.mark.parametrize(("provider", "count"), [("aws", 0), ("azure", 1), ("gcp", 1)])
def test_on_demand_credentials_are_requested_and_cached(open_encryption, kms, metadata_service, provider, count):
    encryption = open_encryption(**{provider: {}})
    assert metadata_service.requests == []
    key = encryption.create_data_key(provider, MASTER_KEYS[provider])
    assert len(metadata_service.requests) == count
    # The token comes from the metadata service, so the client requests no token from the KMS.
    assert not any(path.endswith("/token") for _, path in kms.requests)
    assert encryption.decrypt(encryption.encrypt(1, RANDOMIZED, key)) == 1
    # The client caches only the token for Azure, whose lifetime is in the reply.
    assert len(metadata_service.requests) == (2 if provider == "gcp" else count)


def test_invalid_reply_of_metadata_service_raises_encryption_error(open_encryption, metadata_service):
    for status, text in ((500, "no"), (200, "no json"), (200, "{}"), (200, '{"access_token": 5, "expires_in": "1"}')):
        metadata_service.answer = lambda *_, status=status, text=text: (status, text)
        with pytest.raises(EncryptionError, match="Azure metadata service"):
            open_encryption(azure={}).create_data_key("azure", AZURE_MASTER_KEY)


@pytest.mark.parametrize("uses_tls", [False, True])
def test_kms_request_uses_http_proxy_with_credentials(open_encryption, pem_folder, kms, uses_tls):
    context = tls_context_with(pem_folder, "server") if uses_tls else None
    with Proxy(kms.port, context) as proxy:
        trusted = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusted.load_verify_locations(pem_folder / "ca.pem")
        scheme = "https" if uses_tls else "http"
        url = f"{scheme}://ann:very%20secret@127.0.0.1:{proxy.port}"
        proxy_callback = HTTPProxyKMSConnect(url, trusted if uses_tls else None, {"X-Trace": "1"})
        assert "secret" not in repr(proxy_callback)
        open_encryption(callback=proxy_callback).create_data_key("aws", MASTER_KEYS["aws"])
        assert kms.requests == [("kms.us-east-1.amazonaws.com", "/")]
        [head] = proxy.heads
        assert head.startswith("CONNECT kms.us-east-1.amazonaws.com:443 HTTP/1.1")
        assert "Proxy-Authorization: Basic YW5uOnZlcnkgc2VjcmV0" in head
        assert "X-Trace: 1" in head
        proxy.status = "407 No"
        with pytest.raises(EncryptionError, match="the proxy refused to connect"):
            open_encryption(callback=proxy_callback).create_data_key("aws", MASTER_KEYS["aws"])


def test_connect_callback_without_socket_raises_encryption_error(open_encryption):
    with pytest.raises(EncryptionError, match="kms_connect_callback must return a socket"):
        open_encryption(callback=lambda context: 5).create_data_key("aws", MASTER_KEYS["aws"])


@with_cases
def test_invalid_http_proxy_url_raises_error_with_reason(url, error_class, message):
    with pytest.raises(error_class) as caught:
        HTTPProxyKMSConnect(url)
    assert str(caught.value) == message


@with_cases
def test_repr_of_http_proxy_has_host_and_port_without_password(url, text):
    assert repr(HTTPProxyKMSConnect(url)) == text


def test_ssl_context_with_http_proxy_raises_configuration_error():
    with pytest.raises(
        ConfigurationError, match=r"^ssl_context is for TLS with the proxy, so proxy_url must begin with"
    ):
        HTTPProxyKMSConnect("http://x", ssl.create_default_context())
