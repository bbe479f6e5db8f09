"""The topics of the control broker, as docs/design/many-sites.md lists them."""

from __future__ import annotations

from fogline.common.errors import DataError
from fogline.model.nodes import is_name

_NODES = "fogline/nodes"
_ANSWERS = "fogline/answers"

ANNOUNCEMENTS = f"{_NODES}/+/birth"
STATUSES = f"{_NODES}/+/status"
COORDINATOR = "fogline/coordinator/do"

ANNOUNCEMENT, STATUS = "birth", "status"


def announcement(node: str) -> str:
    return f"{_NODES}/{_check_name(node)}/{ANNOUNCEMENT}"


def status(node: str) -> str:
    return f"{_NODES}/{_check_name(node)}/{STATUS}"


def do(node: str) -> str:
    return f"{_NODES}/{_check_name(node)}/do"


def requested_node(topic: str) -> str:
    """The node that takes requests on this topic; empty for the coordinator's."""
    return topic.removeprefix(f"{_NODES}/").rpartition("/")[0] if topic != COORDINATOR else ""


def answers(client: str) -> str:
    return f"{_ANSWERS}/{_check_name(client)}"


def is_answers(topic: str) -> bool:
    """Whether an answer may be sent there: a request must not make us publish anywhere else."""
    head, _, client = topic.rpartition("/")
    return head == _ANSWERS and is_name(client)


def parse_topic(topic: str) -> tuple[str, str]:
    """The node and what it publishes (`birth`, `status`); empty texts for any other topic."""
    head, _, rest = topic.partition(f"{_NODES}/")
    node, _, kind = rest.partition("/")
    return (node, kind) if not head and is_name(node) else ("", "")


def _check_name(name: str) -> str:
    if not is_name(name):
        raise DataError(f"{name!r} cannot be part of a topic", "leave out / + # $")
    return name
