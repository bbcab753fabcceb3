"""The tests: README.md beside this file says which folder tests what."""
