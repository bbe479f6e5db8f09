"""Messages of devices into records: the one Python decoder, used by gateways and by the store.

It reads json, ndjson, SenML, csv, xml and cbor as the Spark source does (`connector/`); what a
gateway forwards, what the store keeps and what a query sees are the same values.
`tests/formats` holds the cases that all of them have to pass.
"""

from __future__ import annotations

from fogline.formats.errors import BadMessage, BadTime
from fogline.formats.reading import FORMATS, Format, all_fields, read
from fogline.formats.values import Reading

__all__ = ["FORMATS", "BadMessage", "BadTime", "Format", "Reading", "all_fields", "read"]
