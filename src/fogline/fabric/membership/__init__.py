"""The other nodes: who they are, how they are, how to ask them."""
