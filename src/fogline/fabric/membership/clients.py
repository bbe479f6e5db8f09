"""The clients of all other nodes: one for each address, kept as long as the address is right."""

from __future__ import annotations

import threading

from fogline.common.errors import UsageError
from fogline.common.http.client import Patience
from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.http.secrets import Secrets, as_secrets
from fogline.fabric.membership.node_client import NodeClient
from fogline.fabric.membership.options import FabricOptions


class Clients:
    """For any thread, until `close`."""

    def __init__(self, secret: str | Secrets, options: FabricOptions) -> None:
        self._secret = as_secrets(secret)
        self._patience = Patience(options.connect_seconds, options.answer_seconds)
        self._guard = threading.Lock()
        self._known: dict[str, NodeClient] = {}

    def to(self, node: str, address: str) -> NodeClient:
        """Raises `NodeUnreachable` for an address that is none."""
        with self._guard:
            client = self._known.get(node)
            if client is not None and client.address == address.rstrip("/"):
                return client
            if client is not None:
                client.close()
            try:
                made = NodeClient(address, self._secret, node, self._patience)
            except UsageError as error:
                raise NodeUnreachable(error.message, error.hint) from error
            self._known[node] = made
            return made

    def close(self) -> None:
        with self._guard:
            known, self._known = self._known, {}
        for client in known.values():
            client.close()
