"""Import of libmongocrypt through pymongocrypt, which is an optional dependency (``gmongo[encryption]``)."""

from __future__ import annotations

from typing import Any

from gmongo.errors import ConfigurationError

try:
    from pymongocrypt import mongocrypt as contexts
    from pymongocrypt.binary import MongoCryptBinaryIn
    from pymongocrypt.binding import ffi, lib
    from pymongocrypt.errors import MongoCryptError
    from pymongocrypt.options import DataKeyOpts, ExplicitEncryptOpts, MongoCryptOptions
except ImportError as error:
    import_error: ImportError | None = error

    class MongoCryptError(Exception):  # type: ignore[no-redef]
        """Placeholder for the error class of pymongocrypt if pymongocrypt is not installed."""

    contexts = ffi = lib = MongoCryptBinaryIn = DataKeyOpts = ExplicitEncryptOpts = MongoCryptOptions = None
else:
    import_error = None

__all__ = [
    "DataKeyOpts",
    "ExplicitEncryptOpts",
    "MongoCryptBinaryIn",
    "MongoCryptError",
    "MongoCryptOptions",
    "contexts",
    "ffi",
    "lib",
    "require_library",
]

# A C pointer or a pymongocrypt object.
Native = Any


def require_library() -> None:
    """Raise ConfigurationError if pymongocrypt is missing, or libmongocrypt cannot be loaded."""
    if import_error is not None:
        raise ConfigurationError(
            f"client-side encryption needs pymongocrypt, which cannot be imported ({import_error}): "
            "pip install 'gmongo[encryption]'"
        ) from import_error
    try:
        lib.mongocrypt_version(ffi.NULL)
    except (AttributeError, OSError, RuntimeError) as error:
        raise ConfigurationError(f"client-side encryption needs libmongocrypt: {error}") from error
