"""The query language: text to tree (`parse`) and back (`print_query`)."""

from fogline.language.parser import parse
from fogline.language.printer import (
    print_condition,
    print_expression,
    print_query,
    print_window,
)

__all__ = ["parse", "print_condition", "print_expression", "print_query", "print_window"]
