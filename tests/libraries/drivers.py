"""Which driver an application runs on."""

from __future__ import annotations

from gmongo.testing import Deployment


def database_of(deployment: Deployment, name: str) -> str:
    """The deployment's connection string, with a default database."""
    return (
        deployment.uri.replace("/?", f"/{name}?") if "/?" in deployment.uri else f"{deployment.uri.rstrip('/')}/{name}"
    )


def drivers_seen(deployment: Deployment) -> set[str]:
    """The drivers that have introduced themselves to the deployment."""
    hellos = [each.body for name in ("hello", "isMaster", "ismaster") for each in deployment.commands.named(name)]
    return {body["client"]["driver"]["name"].partition("|")[0] for body in hellos if "client" in body}
