"""Publishers of events. For most events, a publisher calls the listeners and logs a message."""
