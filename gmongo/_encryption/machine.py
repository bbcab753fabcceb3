"""State machine of libmongocrypt, and the on-demand credentials of KMS providers.

The driver supplies the data that libmongocrypt requests in each state, until the task is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import bson

from gmongo import _clock
from gmongo._documents import DocumentDict
from gmongo._encryption.context import Context, MakeContext
from gmongo._encryption.handle import Handle
from gmongo._encryption.kms import Kms, timeout_until
from gmongo._encryption.library import lib
from gmongo.auth.aws_credentials import AwsCredentialsCache
from gmongo.auth.http import azure_token, request_json, text_fields
from gmongo.errors import ConfigurationError, EncryptionError, PyMongoError
from gmongo.execution.deadline import until
from gmongo.execution.sessions import bind_session


class ServerRequests(Protocol):
    """Requests of the state machine to servers."""

    def list_collections(self, database: str, filter: bytes) -> list[bytes]:
        """Return the descriptions of the collections that match the encoded query `filter`, as encoded documents."""

    def analyse(self, database: str, command: bytes) -> bytes:
        """Return the reply of mongocryptd, which contains the command with marks at the values to encrypt."""

    def find_keys(self, filter: bytes) -> list[bytes]:
        """Return the data keys of the key vault that match the encoded query `filter`, as encoded documents."""


class Machine:
    """State machine that drives the contexts of one handle of libmongocrypt."""

    def __init__(self, handle: Handle, requests: ServerRequests, kms: Kms) -> None:
        self.handle = handle
        self.kms_providers = dict(handle.settings.kms_providers)
        self._requests = requests
        self._kms = kms
        self._on_demand_credentials = OnDemandCredentials(handle.settings.on_demand_providers)

    def run(
        self, make_context: MakeContext, size: int, deadline: float | None, *, is_slow: bool = False
    ) -> bytes | None:
        """Run the task of a :class:`Context`. Return the result, or None if the task changes nothing.

        In addition to `deadline`, each request to a service has its own time limit. If `is_slow` is
        True, a thread processes even small inputs.
        """
        with Context(self.handle, make_context, size) as context:
            context.runs_in_thread = context.runs_in_thread or is_slow
            while True:
                state = context.native.state
                if state == lib.MONGOCRYPT_CTX_READY:
                    result: bytes = context.step(context.native.finish)
                    return result
                if state == lib.MONGOCRYPT_CTX_DONE:
                    return None
                if state == lib.MONGOCRYPT_CTX_ERROR:
                    context.step(context.native._raise_from_status)
                self._supply_data(context, state, deadline)

    def _supply_data(self, context: Context, state: int, deadline: float | None) -> None:
        """Pass to libmongocrypt the data that the current state requests."""
        native, requests = context.native, self._requests

        def supply(fetch: Callable[[], list[bytes]]) -> None:
            with _convert_errors(), bind_session(None), until(deadline):
                for each in fetch():
                    context.step(native.add_mongo_operation_result, each)
            context.step(native.complete_mongo_operation)

        if state == lib.MONGOCRYPT_CTX_NEED_MONGO_KEYS:
            supply(lambda: requests.find_keys(native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_KMS:
            for request in native.kms_contexts():
                with request, _convert_errors():
                    self._kms.complete_request(request, deadline)
            context.step(native.complete_kms)
        elif state == lib.MONGOCRYPT_CTX_NEED_KMS_CREDENTIALS:
            with _convert_errors():
                credentials = self._on_demand_credentials.fetch(deadline)
            context.step(native.provide_kms_providers, bson.encode(credentials))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO:
            supply(lambda: requests.list_collections(native.database, native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_COLLINFO_WITH_DB:
            supply(lambda: requests.list_collections(context.database, native.mongo_operation()))
        elif state == lib.MONGOCRYPT_CTX_NEED_MONGO_MARKINGS:
            supply(lambda: [requests.analyse(native.database, native.mongo_operation())])
            context.runs_in_thread = True  # libmongocrypt may compute many tokens for the command
        else:
            raise EncryptionError(ValueError(f"libmongocrypt is in state {state}, which gmongo does not support"))


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert driver errors to EncryptionError, but no other exceptions, such as GreenletExit."""
    try:
        yield
    except EncryptionError:
        raise
    except PyMongoError as error:
        raise EncryptionError(error) from error


_MIN_LIFETIME = 60.0  # minimum remaining lifetime of a cached token in seconds
_AZURE_RESOURCE = "https://vault.azure.net"


class OnDemandCredentials:
    """Source of the credentials of KMS providers, with a cache."""

    def __init__(self, providers: tuple[str, ...]) -> None:
        self._providers = providers
        self._aws = AwsCredentialsCache()
        self._azure_token = "", 0.0  # the access token, and the time of its expiration

    def fetch(self, deadline: float | None) -> DocumentDict:
        """Return the credentials of the providers in the format of libmongocrypt."""
        methods = {"aws": self._fetch_aws, "azure": self._fetch_azure, "gcp": self._fetch_google}
        return {name: methods[name](max(timeout_until(deadline), 0.001)) for name in self._providers}

    def _fetch_aws(self, timeout: float) -> dict[str, str]:
        try:
            aws = self._aws.find()
        except ConfigurationError as error:
            raise ConfigurationError(str(error).replace("authMechanism MONGODB-AWS", 'kms_providers["aws"]')) from None
        credentials = {"accessKeyId": aws.key_id, "secretAccessKey": aws.secret}
        return credentials if aws.token is None else {**credentials, "sessionToken": aws.token}

    def _fetch_azure(self, timeout: float) -> dict[str, str]:
        requested_at = _clock.monotonic()
        token, valid_until = self._azure_token
        if valid_until - requested_at <= _MIN_LIFETIME:
            reply = azure_token(_AZURE_RESOURCE, timeout)
            token, lifetime = reply["access_token"], str(reply.get("expires_in"))
            self._azure_token = token, requested_at + (float(lifetime) if lifetime.isdecimal() else 0.0)
        return {"accessToken": token}

    def _fetch_google(self, timeout: float) -> dict[str, str]:
        service = "the Google Cloud metadata service"
        host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        reply = request_json(service, "GET", url, {"Metadata-Flavor": "Google"}, timeout)
        return {"accessToken": text_fields(service, reply, "access_token")[0]}
