"""Commands that ask a coordinator."""
