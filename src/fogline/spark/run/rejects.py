"""Records that were refused: bad ones and late ones, kept in a folder of JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from fogline.model.results import StreamCount


def count_rejects(folder: Path | None) -> dict[str, StreamCount]:
    """Bad and late records per stream, counted from what was kept."""
    counts: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.glob("*.ndjson")) if folder and folder.is_dir() else ():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                entry = json.loads(line)
                counts[(entry["stream"], entry["kind"])] += 1
    streams = {stream for stream, _ in counts}
    return {s: StreamCount(bad=counts[(s, "bad")], late=counts[(s, "late")]) for s in streams}
