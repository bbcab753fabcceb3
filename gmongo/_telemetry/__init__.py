"""What observes the operations of a client: traces and metrics of OpenTelemetry, and the log of slow operations."""
