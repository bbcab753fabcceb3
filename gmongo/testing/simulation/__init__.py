"""Simulated servers, which use the wire protocol of MongoDB 4.2 to 8.2."""
