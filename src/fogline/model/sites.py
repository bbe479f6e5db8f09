"""Names that everything at a site agrees on, and what a job reports about itself."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, field
from hashlib import blake2b

from fogline.model.broker_url import BrokerUrl
from fogline.model.question import Question
from fogline.model.streams import FABRIC, StreamSource

FABRIC_LOGS = "fabric/"
"""What the logs of streams from the storage fabric begin with."""


def stream_log(stream: StreamSource) -> str:
    """The log of a stream's messages: its topic, behind the broker if that is not the site's; of a
    stream from the storage fabric that of its question."""
    if stream.provider == FABRIC:
        return fabric_log(stream.question)
    topic = str(stream.parameter("topic"))
    broker = stream.parameter("broker")
    return topic if broker is None else f"{BrokerUrl.parse(str(broker))}/{topic}"


def fabric_log(question: Question) -> str:
    """Equal questions share a log."""
    *names, share = astuple(question)
    text = json.dumps(names if share == 1 else [*names, share], ensure_ascii=True)
    return FABRIC_LOGS + blake2b(text.encode(), digest_size=8).hexdigest()


def insight_log(outlet: str, insight: str) -> str:
    """The log, and the topic, of an insight's results; `outlet` is the job that publishes them, or
    the one before it whose name they keep."""
    return f"insights/{outlet}/{insight}"


def out_log(job: str) -> str:
    """The log of what a job of the user's own code, of steps or of a first stage writes."""
    return f"out/{job}"


def command_log(job: str, insight: str) -> str:
    """The log of what an insight sends to devices (`TO`)."""
    return f"to/{job}/{insight}"


def bad_log(job: str, stream: str) -> str:
    """The log, and the topic, of messages that could not be decoded."""
    return f"bad/{job}/{stream}"


def late_log(job: str, stream: str) -> str:
    """The log, and the topic, of records that came too late for their window."""
    return f"late/{job}/{stream}"


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """One Spark query of a job, from its last batch."""

    name: str
    state: str
    """`starting`, `running` or `failed`."""
    problem: str = ""
    run: str = ""
    """Spark's id of this run; another one after every start."""
    batches: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    delay_ms: int = 0
    """How much later than planned the last batch began."""
    latency_ms: int = 0
    """From the newest event time of the last batch to its end."""
    state_rows: int = 0
    state_bytes: int = 0
    records: int = 0
    """This and the next three: of streams that no query of the job counts before it."""
    bad: int = 0
    late: int = 0
    bytes: int = 0
    lag_bytes: int = 0
    detail: str = ""
    """Of a problem in the user's code: the whole traceback."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job as its site sees it."""

    name: str
    queries: tuple[QueryStatus, ...] = field(default=())

    @property
    def state(self) -> str:
        states = [q.state for q in self.queries]
        return next((s for s in ("failed", "starting") if s in states), "running")
