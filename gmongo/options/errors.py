"""Errors of options: each is a ConfigurationError and the fitting built-in error, so either can be caught."""

from __future__ import annotations

from gmongo.errors import ConfigurationError, InvalidURI


class InvalidOption(ConfigurationError, ValueError):
    """The value of an option, or a combination of options, is not allowed."""


class InvalidOptionType(ConfigurationError, TypeError):
    """The value of an option has the wrong type."""


class InvalidHost(InvalidURI, ValueError):
    """A host, or its port, is not well formed."""
