"""The coordinator and its nodes in touch, by way of a broker: docs/design/many-sites.md."""

from fogline.control.connection import ControlOptions
from fogline.control.coordinator import ControlClient
from fogline.control.errors import ControlError, NoAnswerError
from fogline.control.node import ControlledNode, ControlledNodes
from fogline.control.presence import Member
from fogline.control.registry import SILENT_SECONDS, NodeRegistry
from fogline.control.worker import OperationHandler

__all__ = [
    "SILENT_SECONDS",
    "ControlClient",
    "ControlError",
    "ControlOptions",
    "ControlledNode",
    "ControlledNodes",
    "Member",
    "NoAnswerError",
    "NodeRegistry",
    "OperationHandler",
]
