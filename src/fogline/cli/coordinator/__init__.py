"""Commands that call a coordinator."""
