"""The queries of the worked examples that `fogline demo` runs."""
