"""Sessions, transactions, retries and time limits, on simulated deployments."""
