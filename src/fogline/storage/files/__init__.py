"""Values on disk and in memory."""
