"""From messages to values."""
