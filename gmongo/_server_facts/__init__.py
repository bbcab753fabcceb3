"""Facts about MongoDB servers, each with its source.

`codes` and `labels` of errors · `wire_versions` of features · `sizes` of messages.
A test finds such numbers and labels in other modules.
"""
