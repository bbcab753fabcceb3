"""Program that compares the answers of a real server and the simulation to random commands."""
