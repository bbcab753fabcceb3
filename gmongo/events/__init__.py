"""Publishers of events. For each event, a publisher calls the listeners and logs a message."""
