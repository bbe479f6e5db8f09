"""All logs of a site: one folder per topic below one root."""

from __future__ import annotations

from pathlib import Path

from fogline.log.files.names import folder_name, named_topic
from fogline.log.reader import LogReader
from fogline.log.writer import MIN_FREE_BYTES, SEGMENT_BYTES, LogWriter


class SiteLog:
    """The logs below `root`, found by topic; making one writes nothing."""

    def __init__(
        self,
        root: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> None:
        self.root = root
        self._segment_bytes = segment_bytes
        self._min_free_bytes = min_free_bytes

    def topics(self) -> list[str]:
        """The topics that have a log, in order."""
        return sorted(filter(None, (topic_of(path.parent) for path in self.root.glob("*/topic"))))

    def folder(self, topic: str) -> Path:
        """Where the topic's log is, or would be."""
        return self.root / folder_name(topic)

    def writer(self, topic: str) -> LogWriter:
        """The topic's one writer; makes the log when it is new. Raises `LogBusy` for a second."""
        return LogWriter(
            self.folder(topic),
            topic,
            segment_bytes=self._segment_bytes,
            min_free_bytes=self._min_free_bytes,
        )

    def reader(self, topic: str, skip_damage: bool = False) -> LogReader:
        """A reader of the topic's log, which may not exist yet."""
        return LogReader(self.folder(topic), skip_damage)


def topic_of(folder: Path) -> str:
    """What the file `topic` of a log says; where that does not fit the folder it is damaged, and
    the topic is read from the name of the folder. Empty for one that is neither."""
    text = (folder / "topic").read_bytes().decode("utf-8", "replace")
    fits = text and folder_name(text) == folder.name
    return text if fits or not text else named_topic(folder.name)
