"""The kinds of deployments. Each kind defines the roles of the members, and the fields of their hello replies."""
