"""Facts about MongoDB servers, each with its source.

The modules are `codes` (error codes), `labels` (error labels), `wire_versions` (first wire version of
each feature) and `sizes` (size limits). A test searches the other modules of the driver for copies of
these facts.
"""
