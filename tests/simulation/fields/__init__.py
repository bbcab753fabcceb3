"""Programs that test the simulated validation of the fields and types in each command."""
