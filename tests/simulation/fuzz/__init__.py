"""Programs that compare the answers of a real server and the simulation to random commands."""
