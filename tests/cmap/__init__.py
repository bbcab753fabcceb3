"""Tests of the connection pool for each requirement of the CMAP specification
(docs/conformance/cmap.md).
"""
