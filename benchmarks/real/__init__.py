"""Measurements on real MongoDB servers: ``python -m benchmarks --real``."""
