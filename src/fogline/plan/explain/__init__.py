"""Plans as text: what `fogline explain` shows."""
