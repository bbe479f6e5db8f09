"""What can go wrong between nodes of the fabric."""

from __future__ import annotations

from fogline.common.errors import NotFoundError
from fogline.storage.errors import BadQuery, StoreError


class NodeUnreachable(StoreError):  # noqa: N818
    """A node gives no answer."""


class NodeRefused(StoreError):  # noqa: N818
    """A node does not accept this caller."""


class TokenRefused(NodeRefused):
    """A node does not accept the token, and has done nothing."""


class NotThere(NotFoundError, BadQuery):  # noqa: N818
    """Nothing of this name exists where it was asked for."""
