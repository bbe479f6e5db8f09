"""What changes between two versions of a pipeline, and in which order."""
