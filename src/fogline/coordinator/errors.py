"""What can go wrong at the coordinator alone; all else is in `fogline.common.errors`."""

from __future__ import annotations

from fogline.common.errors import UnavailableError


class RepositoryError(UnavailableError):
    """The database cannot be used."""
