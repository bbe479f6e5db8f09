"""Programs run once, over files or history."""
