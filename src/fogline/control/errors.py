"""Errors between the coordinator and its nodes; distinguished by class, never by text."""

from __future__ import annotations

from fogline.common.errors import FoglineError


class ControlError(FoglineError):
    """The other side said no, or the request could not be sent."""


class NoAnswerError(ControlError):
    """No answer came in time; whether the request was carried out is not known."""
