"""Functions for the URI of an example application, and for the names of the connected drivers."""

from __future__ import annotations

from gmongo.testing import Deployment


def uri_with_database(deployment: Deployment, name: str) -> str:
    """Return a URI of the deployment. The URI contains the default database `name`."""
    return (
        deployment.uri.replace("/?", f"/{name}?") if "/?" in deployment.uri else f"{deployment.uri.rstrip('/')}/{name}"
    )


def connected_drivers(deployment: Deployment) -> set[str]:
    """Return the driver names in the hello commands that a deployment has received."""
    hellos = [each.body for name in ("hello", "isMaster", "ismaster") for each in deployment.commands.named(name)]
    return {body["client"]["driver"]["name"].partition("|")[0] for body in hellos if "client" in body}
