"""The REST interface of a site: health, status, metrics, and the acknowledgement of damage."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fogline.agent.config.site import SiteConfig
from fogline.agent.contracts.site_status import SiteStatus
from fogline.agent.damage.watch import DamageWatch
from fogline.agent.supervisor import metrics
from fogline.common.http.parameters import QueryParameter, read_parameters
from fogline.common.http.replies import ErrorReplies, Json

ERRORS = ErrorReplies(
    "agent", routes="there is GET /health, /status and /metrics, and POST /damage/acknowledge"
)
_LOG = (QueryParameter("log", "Only the damage of this log"),)


class Reported(Protocol):
    """What is reported about: a site."""

    config: SiteConfig
    folder: Path

    @property
    def broker_url(self) -> str: ...

    @property
    def tls(self) -> dict[str, str] | None: ...

    @property
    def damage(self) -> DamageWatch: ...

    def status(self) -> SiteStatus: ...


def make_app(site: Reported) -> Starlette:
    def get_health(_request: Request) -> Response:
        healthy = site.status().healthy
        return Json({"healthy": healthy}, 200 if healthy else 503)

    def get_status(_request: Request) -> Response:
        return Json(site.status().as_json(), indent=2)

    def get_metrics(_request: Request) -> Response:
        node = metrics.node_metrics(site.config.site, site.folder)
        text = metrics.prometheus(site.status(), node)
        return Response(text, media_type="text/plain; version=0.0.4")

    def acknowledge(request: Request) -> Response:
        log = read_parameters(_LOG, request.query_params.multi_items())["log"]
        return Json({"acknowledged": site.damage.acknowledge(log or None)})

    return Starlette(
        routes=[
            Route("/health", get_health),
            Route("/status", get_status),
            Route("/metrics", get_metrics),
            Route("/damage/acknowledge", acknowledge, methods=["POST"]),
        ],
        exception_handlers=ERRORS.handlers(),
    )
