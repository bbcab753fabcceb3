"""Contenders that run as separate programs."""
