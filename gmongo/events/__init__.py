"""Publishers of events. A publisher calls the listeners with each event, and logs a message."""
