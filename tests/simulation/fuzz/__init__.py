"""Random cases to which the simulation and a real server must give equal answers."""
