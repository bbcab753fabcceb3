"""How clients prove who they are."""
