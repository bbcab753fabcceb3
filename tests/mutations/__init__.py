"""Mutations: small changes of the code that a test must detect. ``python -m tests.mutations`` runs the mutations."""
