"""What the driver knows of MongoDB servers: facts that others fix, each in one place, with its source.

`codes` and `labels` of errors · `wire_versions`, from which on a server can do something · `sizes` of messages.
A test finds such numbers and labels where they stand anywhere else.
"""
