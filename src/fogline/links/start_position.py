"""Where a reader of a log begins that has not read from it before."""

from __future__ import annotations

from fogline.log import SiteLog, get_position, set_position

START, END = "start", "end"


def starting_position(logs: SiteLog, log: str, reader: str, begin: str) -> int:
    """Where `reader` goes on: where it stopped, or else at the log's start or end as it is now.

    Kept before anything is read, so a crash does not move it and retention minds it.
    """
    folder = logs.folder(log)
    position = get_position(folder, reader)
    if position is None:
        with logs.reader(log, skip_damage=True) as source:
            position = source.committed() if begin == END else source.first()
        set_position(folder, reader, position)
    return position
