"""Client-side encryption with libmongocrypt: the state machine, its requests to servers, and the data keys."""
