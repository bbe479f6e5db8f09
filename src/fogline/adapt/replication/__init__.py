"""Which data is copied where, and where queries read it."""
