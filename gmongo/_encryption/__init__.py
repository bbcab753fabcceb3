"""Client-side encryption over libmongocrypt: the state machine, its I/O, and the data keys."""
