"""Commands that call a site: its store, its logs."""
