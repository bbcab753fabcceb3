"""Small changes of the code, each of which some test must notice: ``python -m tests.mutations`` tries them all."""
