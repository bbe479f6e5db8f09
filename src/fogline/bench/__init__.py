"""Simulations that the benchmarks run."""
