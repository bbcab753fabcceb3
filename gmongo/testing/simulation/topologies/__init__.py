"""Kinds of deployments: roles of members, and the fields of hello."""
