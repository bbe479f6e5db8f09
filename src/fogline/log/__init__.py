"""The site log: every message is written here before it is acknowledged, and read from here.

The files are described in docs/design/site-log.md; `io.fogline.log` reads and writes them too.
"""

from fogline.log.errors import LogBusy, LogDamaged, LogError, LogFull, LogGone
from fogline.log.files.frames import Frame, LogRecord
from fogline.log.files.positions import (
    Claim,
    claim_reader,
    forget_reader,
    get_position,
    lowest_position,
    retire_reader,
    set_position,
)
from fogline.log.notifier import LogNotifier
from fogline.log.reader import LogReader
from fogline.log.retention import Limits, enforce
from fogline.log.site import SiteLog
from fogline.log.writer import LogWriter

__all__ = [
    "Claim",
    "Frame",
    "Limits",
    "LogBusy",
    "LogDamaged",
    "LogError",
    "LogFull",
    "LogGone",
    "LogNotifier",
    "LogReader",
    "LogRecord",
    "LogWriter",
    "SiteLog",
    "claim_reader",
    "enforce",
    "forget_reader",
    "get_position",
    "lowest_position",
    "retire_reader",
    "set_position",
]
