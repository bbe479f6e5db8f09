"""Simulated IoT streams: seeded, repeatable, with the habits of real sensors.

`events` makes them, `encode` turns one into a message, `write_file` and `publish` deliver a run.
"""

from fogline.simulate.encode import FORMATS, encode
from fogline.simulate.file import write_file
from fogline.simulate.messages import Wire
from fogline.simulate.mqtt import publish
from fogline.simulate.patterns import PATTERNS
from fogline.simulate.schema import Event, FieldSchema, StreamKind
from fogline.simulate.streams import STREAMS, Run, events

__all__ = [
    "FORMATS",
    "PATTERNS",
    "STREAMS",
    "Event",
    "FieldSchema",
    "Run",
    "StreamKind",
    "Wire",
    "encode",
    "events",
    "publish",
    "write_file",
]
