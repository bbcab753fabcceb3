"""Tests of the connection pool, with markers that name requirements of the CMAP specification
(docs/conformance/cmap.md).
"""
