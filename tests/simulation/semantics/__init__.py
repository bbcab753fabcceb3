"""What MongoDB answers, as its documentation says, and programs that compare servers with it and with each other."""
