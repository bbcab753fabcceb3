"""What takes several commands: cursors, bulk writes, transactions that are tried again, change streams."""
