"""The client of a node's store: JSON or Arrow, with a token or the secrets of the fabric."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fogline.common.errors import START_SITE
from fogline.common.http.client import JSON, HttpClient, Parameters, Patience, RemoteService
from fogline.fabric.errors import NodeRefused, NodeUnreachable, NotThere, TokenRefused
from fogline.fabric.http.secrets import Secrets
from fogline.storage.errors import BadQuery, BadValue, QueryLimit

if TYPE_CHECKING:
    import pyarrow as pa

STORE = RemoteService(
    "the store",
    START_SITE,
    {
        400: BadQuery,
        401: TokenRefused,
        403: NodeRefused,
        404: NotThere,
        413: QueryLimit,
        429: QueryLimit,
    },
    NodeUnreachable,
    ("/v1/latest", "/v1/sql"),
)


class StoreClient(HttpClient):
    """With the fabric's secrets it shows the one that the node accepts.

    Raises `NodeUnreachable` when there is no answer, or none that can be understood, `NodeRefused`
    when the token is not accepted, `BadQuery` and `QueryLimit` as the node itself would.
    """

    def __init__(self, url: str, token: str | Secrets, patience: Patience | None = None) -> None:
        shown = token.accepted_secrets if isinstance(token, Secrets) else token
        super().__init__(url, STORE, shown, patience)

    def arrow(
        self, method: str, path: str, parameters: Parameters = (), body: Any = None
    ) -> tuple[pa.Table, dict[str, Any]]:
        """The table of an answer and what came with it."""
        from fogline.fabric.http.arrow import ARROW_TYPE, from_arrow  # heavy, and not all need it

        data = None if body is None else json.dumps(body).encode()
        media_type = "" if data is None else JSON
        found = self.exchange(method, path, parameters, data, media_type, ARROW_TYPE)
        try:
            return from_arrow(found)
        except BadValue as error:
            raise NodeUnreachable(
                f"{self.url} answers with what is no table: {error.message}"
            ) from error
