"""Programs compiled to Spark."""
