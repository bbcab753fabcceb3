"""The connection pool, requirement by requirement (docs/conformance/cmap.md)."""
