"""The network side of the simulated deployment: members that speak the wire protocol as MongoDB 4.2 to 8 do."""
