"""Client options: the table of options, parsing, validation, and rules between options."""
