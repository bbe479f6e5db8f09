"""The storage fabric: the stores of all sites as one. docs/design/fabric.md is its contract."""
