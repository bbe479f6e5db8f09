"""What a coordinator asks of a site's store: how much there is, and which copies to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fogline.broker.login import read_password
from fogline.common.errors import SetupError, UsageError
from fogline.common.http.client import Patience, part
from fogline.fabric.http.store_client import StoreClient

MOST_METRICS = 50_000
"""The largest of them are reported; a control message has to end somewhere."""
_PATIENCE = Patience(connect=2.0, answer=8.0)


class StoreCommands:
    """The agent's way to the store process: over REST, with the site's own token."""

    def __init__(self, folder: Path, address: Callable[[], str]) -> None:
        self._token_file = folder / "store" / "token"
        self._address = address

    def report(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to the operation `store`."""
        state = self._client().json("GET", "/v1/state", [("metrics", "true")])
        sizes = sorted(state.get("metrics", {}).items(), key=lambda item: -item[1])
        state["metrics"] = dict(sizes[:MOST_METRICS])
        return {key: state[key] for key in ("id", "bytes", "metrics", "copies")}

    def keep_copies(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Exactly these copies, of all metrics or of some; the operation `copies`."""
        desired = body.get("copies")
        if not isinstance(desired, dict):
            raise UsageError("`copies` must map each site to its metrics or null")
        store = self._client()
        held = store.json("GET", "/v1/state").get("copies", {})
        for origin, metrics in desired.items():
            if origin not in held or held[origin]["wanted"] != metrics:
                store.json("PUT", f"/v1/copies/{part(origin)}", (), {"metrics": metrics})
        for origin in held:
            if origin not in desired:
                store.json("DELETE", f"/v1/copies/{part(origin)}")
        return {"copies": store.json("GET", "/v1/state").get("copies", {})}

    def _client(self) -> StoreClient:
        address = self._address()
        if not address or not self._token_file.exists():
            raise SetupError("the store of this site does not run", "see its status")
        return StoreClient(address, read_password(self._token_file) or "", _PATIENCE)
