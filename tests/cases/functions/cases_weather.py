"""Functions that the case files name."""

from __future__ import annotations


def celsius(fahrenheit: float) -> float:
    return (fahrenheit - 32) / 1.8
