"""Client metadata: application, driver and platform (MongoDB Handshake specification)."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping

import bson
import gevent

from gmongo._documents import DocumentDict
from gmongo._version import __version__
from gmongo.driver_info import DriverInfo

_MAX_SIZE = 512
_DRIVER_FIELDS = {"name": "gmongo", "version": __version__}  # gmongo's own name and version are never truncated

# Name of each function-as-a-service platform -> environment variables that identify the platform.
_FAAS_VARIABLES = {
    "aws.lambda": ("AWS_LAMBDA_RUNTIME_API",),
    "azure.func": ("FUNCTIONS_WORKER_RUNTIME",),
    "gcp.func": ("K_SERVICE", "FUNCTION_NAME"),
    "vercel": ("VERCEL",),
}
# Metadata fields of each platform: field name -> (environment variable, type of the value).
_FAAS_FIELDS: dict[str, dict[str, tuple[str, type]]] = {
    "aws.lambda": {"region": ("AWS_REGION", str), "memory_mb": ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", int)},
    "azure.func": {},
    "gcp.func": {
        "region": ("FUNCTION_REGION", str),
        "memory_mb": ("FUNCTION_MEMORY_MB", int),
        "timeout_sec": ("FUNCTION_TIMEOUT_SEC", int),
    },
    "vercel": {"region": ("VERCEL_REGION", str)},
}


def client_metadata(app_name: str | None, wrappers: tuple[DriverInfo, ...] = ()) -> DocumentDict:
    """Return the `client` document of a handshake. The document has at most 512 bytes."""
    document = _build_document(app_name, wrappers)
    while not _shorten_document(document) and len(wrappers) > 1:
        wrappers = wrappers[:-1]
        document = _build_document(app_name, wrappers)
    driver = document["driver"]
    for field in sorted(driver, key=lambda field: -len(driver[field])):
        _truncate_field(document, driver, field, len(_DRIVER_FIELDS[field]))
    return document


def _build_document(app_name: str | None, wrappers: tuple[DriverInfo, ...]) -> DocumentDict:
    implementation = f"{platform.python_implementation()} {platform.python_version()}"
    document: DocumentDict = {"application": {"name": app_name}} if app_name else {}
    document["driver"] = {
        "name": "|".join([_DRIVER_FIELDS["name"], *(info.name for info in wrappers if info.name)]),
        # `name` and `version` list the libraries in the same order. A library without a version has
        # an empty version.
        "version": "|".join([__version__, *(info.version or "" for info in wrappers if info.name)]).rstrip("|"),
    }
    document["os"] = {
        "type": platform.system() or sys.platform,
        "name": platform.system() or sys.platform,
        "architecture": platform.machine(),
        "version": platform.release(),
    }
    document["platform"] = "|".join(
        [f"{implementation} (gevent {gevent.__version__})", *(info.platform for info in wrappers if info.platform)]
    )
    environment = _build_environment(os.environ)
    if environment:
        document["env"] = environment
    return document


def detect_faas_platform(variables: Mapping[str, str]) -> str | None:
    """Return the name of the function-as-a-service platform, or None if not exactly one platform matches."""
    matches = [name for name, signs in _FAAS_VARIABLES.items() if any(variables.get(sign) for sign in signs)]
    if variables.get("AWS_EXECUTION_ENV", "").startswith("AWS_Lambda_") and "aws.lambda" not in matches:
        matches.append("aws.lambda")
    if "vercel" in matches and "aws.lambda" in matches:
        matches.remove("aws.lambda")
    return matches[0] if len(matches) == 1 else None


def _build_environment(variables: Mapping[str, str]) -> DocumentDict:
    environment: DocumentDict = {}
    name = detect_faas_platform(variables)
    if name is not None:
        environment["name"] = name
        for field, (variable, convert) in _FAAS_FIELDS[name].items():
            try:
                environment[field] = convert(variables[variable])
            except (KeyError, ValueError):
                continue
    container = {}
    if os.path.exists("/.dockerenv"):
        container["runtime"] = "docker"
    if variables.get("KUBERNETES_SERVICE_HOST"):
        container["orchestrator"] = "kubernetes"
    if container:
        environment["container"] = container
    return environment


def _shorten_document(document: DocumentDict) -> bool:
    """Remove fields in the specification's order. Return True if the document is small enough."""
    if _fits(document):
        return True
    if "name" in document.get("env", {}):
        document["env"] = {"name": document["env"]["name"]}
    if not _fits(document):
        document["os"] = {"type": document["os"]["type"]}
    if not _fits(document):
        document.pop("env", None)
    _truncate_field(document, document, "platform")
    return _fits(document)


def _truncate_field(document: DocumentDict, parent: DocumentDict, field: str, min_bytes: int = 0) -> None:
    """If the document exceeds 512 bytes, truncate `parent[field]` to at least `min_bytes` bytes."""
    surplus = len(bson.encode(document)) - _MAX_SIZE
    if surplus > 0:
        text = parent[field].encode()
        parent[field] = text[: max(len(text) - surplus, min_bytes)].decode(errors="ignore")


def _fits(document: DocumentDict) -> bool:
    return len(bson.encode(document)) <= _MAX_SIZE
