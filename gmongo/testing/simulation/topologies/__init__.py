"""The kinds of deployments: which member may do what, and what hello tells of it."""
