"""What was observed becomes decisions: which data to copy where, and where a query reads it."""
