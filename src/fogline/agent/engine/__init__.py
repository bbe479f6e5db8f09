"""The engine process: Spark and the jobs that run on it."""
