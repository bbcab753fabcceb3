"""Program that compares how a server and the simulation validate the fields of malformed commands."""
