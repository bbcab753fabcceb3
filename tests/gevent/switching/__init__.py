"""Something is thrown at every switch of a greenlet, one switch after the other."""
