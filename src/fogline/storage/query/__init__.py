"""Questions to a store: ranges, aggregates, changes, SQL."""
