"""Credential of a client, and the rules for the credentials of each mechanism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from gmongo._documents import Document
from gmongo.errors import ConfigurationError

EXTERNAL = "$external"
DEFAULT = "DEFAULT"

# Default value of ALLOWED_HOSTS: the hosts to which the client may send the tokens of a human user.
_MONGODB_DOMAINS = ("*.mongodb.net", "*.mongodb-qa.net", "*.mongodb-dev.net", "*.mongodbgov.net")
DEFAULT_ALLOWED_HOSTS = (*_MONGODB_DOMAINS, "localhost", "127.0.0.1", "::1")
CANONICALIZATION_MODES = ("none", "forward", "forwardAndReverse", "true", "false")
# Value of ENVIRONMENT (MONGODB-OIDC) -> True if TOKEN_RESOURCE is required, False if TOKEN_RESOURCE
# is forbidden.
_OIDC_ENVIRONMENTS = {"test": False, "k8s": False, "azure": True, "gcp": True}


@dataclass(frozen=True)
class Credential:
    """Credential of a client.

    The mechanism ``DEFAULT`` means the strongest SCRAM mechanism of the server. The names of
    properties are in upper case.
    """

    mechanism: str
    source: str  # the database that stores the user
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    properties: Document = field(default_factory=dict, repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle a credential, because it contains a password")

    def __str__(self) -> str:
        user = f"user {self.username!r}" if self.username is not None else "no username"
        return f"{user}, authSource {self.source!r}, mechanism {self.mechanism}"


def credential_of(
    options: Document, username: str | None, password: str | None, database: str | None
) -> Credential | None:
    """Return the credential from the client options, or None if the client does not authenticate.

    The names in `options` are in lower case. `database` is the default database of the URI, or None.
    """
    mechanism = options.get("authmechanism")
    if mechanism is None and (username is None or (username == "" and not password)):
        return None  # an empty username may come from an empty environment variable
    mechanism = mechanism or DEFAULT
    rules = _RULES.get(mechanism, _Rules())
    default_source = EXTERNAL if rules.external is True else database or (EXTERNAL if rules.external else "admin")
    properties = options.get("authmechanismproperties") or {}
    application_properties = {name.upper(): value for name, value in properties.items()}
    credential = Credential(
        mechanism,
        options.get("authsource") or default_source,
        username,
        password if rules.password is True else password or None,
        {**rules.defaults, **application_properties},
    )
    reason = _rejection_reason(credential, rules, application_properties, username)
    if reason:
        raise ConfigurationError(f"authMechanism {mechanism}: {reason}")
    return credential


@dataclass(frozen=True)
class _Rules:
    """Rules for the credentials of one mechanism. The default values are the rules of SCRAM."""

    external: bool | str = False  # True if authSource must be "$external". "default" if "$external" is the default.
    requires_username: bool = True
    password: bool | None = True  # True requires, False forbids, and None allows a password
    properties: tuple[str, ...] = ()  # the names of the allowed properties
    defaults: Document = field(default_factory=dict)  # the default values of properties
    check: Callable[[Credential], str | None] = lambda credential: None  # returns the reason for a rejection, or None


def _rejection_reason(
    credential: Credential, rules: _Rules, application_properties: Document, username: str | None
) -> str | None:
    """Return the reason to reject a credential, or None. `application_properties` excludes default values."""
    if username == "" or (rules.requires_username and username is None):
        return "a username is required and must not be empty"
    if rules.password is True and credential.password is None:
        return "a password is required"
    if rules.password is False and credential.password is not None:
        return "a password must not be given"
    if rules.external is True and credential.source != EXTERNAL:
        return f"authSource must be {EXTERNAL!r}, not {credential.source!r}"
    unknown = next((name for name in application_properties if name not in rules.properties), None)
    if unknown is not None:
        allowed = f"only {', '.join(rules.properties)}" if rules.properties else "none"
        return f"authMechanismProperties must not have {unknown}; the mechanism has {allowed}"
    return rules.check(credential)


def _check_plain(credential: Credential) -> str | None:
    if "\0" in (credential.username or "") + (credential.password or ""):
        return "the username and the password must not contain the null character, which separates the two"
    return None


def _check_gssapi(credential: Credential) -> str | None:
    mode = str(credential.properties.get("CANONICALIZE_HOST_NAME", "none"))
    if mode not in CANONICALIZATION_MODES and mode not in ("True", "False"):
        return f"CANONICALIZE_HOST_NAME must be one of {', '.join(CANONICALIZATION_MODES)}, not {mode!r}"
    return None


def _check_aws(credential: Credential) -> str | None:
    if (credential.username is None) != (credential.password is None):
        return "username (the access key ID) and password (the secret access key) must be given together"
    if credential.username is None and credential.properties.get("AWS_SESSION_TOKEN"):
        return "AWS_SESSION_TOKEN needs a username and a password"
    return None


def _check_oidc(credential: Credential) -> str | None:
    properties = credential.properties
    sources = ("ENVIRONMENT", "OIDC_CALLBACK", "OIDC_HUMAN_CALLBACK")
    if sum(properties.get(name) is not None for name in sources) != 1:
        return f"authMechanismProperties must have exactly one of {', '.join(sources)}"
    for name in sources[1:]:
        if properties.get(name) is not None and not callable(getattr(properties[name], "fetch", None)):
            return f"{name} must be an OIDCCallback, with a method fetch"
    if properties.get("ENVIRONMENT") is not None:
        return _check_oidc_environment(credential)
    if properties.get("TOKEN_RESOURCE") is not None:
        return "TOKEN_RESOURCE needs ENVIRONMENT"
    hosts = properties["ALLOWED_HOSTS"]
    if not isinstance(hosts, (list, tuple)) or not all(isinstance(host, str) for host in hosts):
        return "ALLOWED_HOSTS must be a list of host names"
    return None


def _check_oidc_environment(credential: Credential) -> str | None:
    name = credential.properties["ENVIRONMENT"]
    if name not in _OIDC_ENVIRONMENTS:
        return f"ENVIRONMENT must be one of {', '.join(_OIDC_ENVIRONMENTS)}, not {name!r}"
    needs_resource = _OIDC_ENVIRONMENTS[name]
    if needs_resource is not bool(credential.properties.get("TOKEN_RESOURCE")):
        return f"TOKEN_RESOURCE must {'' if needs_resource else 'not '}be given with ENVIRONMENT:{name}"
    if credential.username is not None and name == "test":
        return f"a username must not be given with ENVIRONMENT:{name}"
    return None


_RULES: dict[str, _Rules] = {
    "PLAIN": _Rules(external="default", check=_check_plain),
    "MONGODB-X509": _Rules(external=True, requires_username=False, password=False),
    "MONGODB-AWS": _Rules(
        external=True, requires_username=False, password=None, properties=("AWS_SESSION_TOKEN",), check=_check_aws
    ),
    "GSSAPI": _Rules(
        external=True,
        password=None,
        properties=("SERVICE_NAME", "SERVICE_REALM", "SERVICE_HOST", "CANONICALIZE_HOST_NAME"),
        defaults={"SERVICE_NAME": "mongodb"},
        check=_check_gssapi,
    ),
    "MONGODB-OIDC": _Rules(
        external=True,
        requires_username=False,
        password=False,
        properties=("ENVIRONMENT", "TOKEN_RESOURCE", "OIDC_CALLBACK", "OIDC_HUMAN_CALLBACK", "ALLOWED_HOSTS"),
        defaults={"ALLOWED_HOSTS": DEFAULT_ALLOWED_HOSTS},
        check=_check_oidc,
    ),
}
