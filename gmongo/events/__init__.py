"""Publishers: each turns something that happened into a log message and an event, if there is a listener or a log."""
