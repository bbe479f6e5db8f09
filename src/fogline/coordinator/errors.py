"""What can go wrong at the coordinator; REST gives each kind its own status."""

from __future__ import annotations

from fogline.common.errors import FoglineError


class StoreError(FoglineError):
    """The database cannot be used."""


class NotThereError(FoglineError):
    """Nothing of this name exists."""


class ConflictError(FoglineError):
    """It cannot be done as things are."""


class RefusedError(FoglineError):
    """The token is missing or wrong."""


class TooLargeError(FoglineError):
    """More than is taken at once."""


class UnavailableError(FoglineError):
    """It cannot be done now; later it may."""
