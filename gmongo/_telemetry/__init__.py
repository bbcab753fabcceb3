"""Observers of operations: OpenTelemetry traces, OpenTelemetry metrics, and the log of slow operations."""
