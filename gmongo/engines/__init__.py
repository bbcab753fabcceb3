"""Features that run several commands: cursors, bulk writes, transactions with retries, change streams."""
