"""`fogline run`: where its records come from and how its results are shown."""
