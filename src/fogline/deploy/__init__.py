"""From what people write down to the assignments of nodes: readers, resolving, diff, order, routes.

Nothing here does I/O: files, code and what is known about nodes come in as arguments.
"""
