"""Features of several commands each: cursors, bulk writes, transactions with retries, change streams."""
