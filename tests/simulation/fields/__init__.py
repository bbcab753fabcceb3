"""Programs for the table that lists, for each command, the fields and types that a server accepts."""
