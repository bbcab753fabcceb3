"""Client CPU per operation of gmongo, of PyMongo under gevent, and of a hand-written floor."""
