"""Observers of operations: OpenTelemetry traces and metrics, and the log of slow operations."""
