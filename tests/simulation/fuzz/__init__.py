"""Random cases that the simulation and a real server have to answer alike."""
