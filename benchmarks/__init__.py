"""Client CPU time per operation of gmongo, of PyMongo under gevent, and of a hand-written baseline."""
