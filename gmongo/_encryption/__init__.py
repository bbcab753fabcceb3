"""Client-side encryption over libmongocrypt: its state machine, the I/O that this asks for, and the keys."""
