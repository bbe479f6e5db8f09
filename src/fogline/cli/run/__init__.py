"""`fogline run`: the source of its records and the display of its results."""
