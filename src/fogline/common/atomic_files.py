"""Files that are there whole or not at all, also after a power failure."""

from fogline.common.state_files import replace, sync

__all__ = ["replace", "sync"]
