"""The pages in docs/conformance list each requirement with the tests that have its marker."""
