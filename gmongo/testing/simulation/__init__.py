"""The servers of the simulated deployment, which use the wire protocol like MongoDB 4.2 to 8."""
