"""Random cases that the simulation and a real server must answer alike."""
