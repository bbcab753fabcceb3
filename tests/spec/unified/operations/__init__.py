"""The operations of the format, by the type of entity that they are of."""
