"""The storage of a site: latest values in memory, history in columnar files, metadata, spaces.

docs/design/store.md says what is kept where, and why a crash loses and doubles nothing.
"""
