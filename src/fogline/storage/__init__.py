"""The storage of a site: latest values in memory, history in columnar files, metadata, spaces.

docs/design/store.md says what is kept where, and why a crash loses and doubles nothing.
"""

from fogline.storage.changes import Changes
from fogline.storage.errors import (
    BadQuery,
    BadValue,
    QueryLimit,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
)
from fogline.storage.feeder import Feeder
from fogline.storage.limits import QueryLimits, StoreLimits
from fogline.storage.mapping import Insights, Readings
from fogline.storage.metadata import Description, Metadata, MetadataStore
from fogline.storage.query import AGGREGATES, Page
from fogline.storage.spaces import Row, Space, Spaces
from fogline.storage.store import SiteStore, StoreState
from fogline.storage.values import Value, batch, from_values, to_values

__all__ = [
    "AGGREGATES",
    "BadQuery",
    "BadValue",
    "Changes",
    "Description",
    "Feeder",
    "Insights",
    "Metadata",
    "MetadataStore",
    "Page",
    "QueryLimit",
    "QueryLimits",
    "Readings",
    "Row",
    "SiteStore",
    "Space",
    "Spaces",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreLimits",
    "StoreState",
    "Value",
    "batch",
    "from_values",
    "to_values",
]
