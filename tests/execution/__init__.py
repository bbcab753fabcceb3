"""Tests of sessions, transactions, retries and time limits with simulated deployments."""
