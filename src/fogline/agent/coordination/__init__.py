"""A site under a coordinator."""
