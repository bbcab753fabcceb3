"""Discovery, monitoring and selection, seen from outside: what is sent to servers, and what listeners hear."""
