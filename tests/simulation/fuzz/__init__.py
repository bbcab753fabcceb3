"""Programs that send random commands to a real server and to the simulation, which must give equal answers."""
