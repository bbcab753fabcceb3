"""Facts about MongoDB servers, each with its source.

The modules are `codes` (error codes), `labels` (error labels), `wire_versions` (first wire version of
each feature) and `sizes` (size limits). A test fails if a module outside of this package contains one
of these numbers or labels.
"""
