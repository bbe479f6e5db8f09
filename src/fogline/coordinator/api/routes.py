"""Every address of the coordinator, in one list, with thin handlers behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool

from fogline.common.errors import DataError
from fogline.common.fabric_secret import ACCEPT_SECONDS, LONGEST_ACCEPT_SECONDS
from fogline.common.http.docs_page import page_of
from fogline.common.http.replies import Html, Json
from fogline.coordinator.api.bodies import read_object, read_pipeline
from fogline.coordinator.api.job_schema import CHANGE, JOB
from fogline.coordinator.api.service import Service
from fogline.coordinator.pipelines.changes import scalars

_WAITING = CapacityLimiter(50)
"""Threads of those who wait; others never wait for them."""

PIPELINE_TYPES = ("application/yaml", "application/json", "text/x-insights")


def service_of(request: Request) -> Service:
    found = request.app.state.service
    assert isinstance(found, Service)
    return found


async def post_job(request: Request) -> Json:
    description = await read_object(request)
    result = await run_in_threadpool(service_of(request).post_job, description)
    return Json(result, 201 if result["changed"] else 200)


def get_jobs(request: Request) -> Json:
    return Json(service_of(request).jobs())


def get_job(request: Request, name: str) -> Json:
    return Json(service_of(request).job(name))


def delete_job(request: Request, name: str) -> Json:
    return Json(service_of(request).delete_job(name))


async def patch_job(request: Request, name: str) -> Json:
    body = await read_object(request)
    unknown = sorted(set(body) - {"parameters", "running"})
    running = body.get("running")
    if unknown or not (running is None or isinstance(running, bool)):
        raise DataError("a job's parameters can be changed, and whether it is running")
    parameters = scalars(body.get("parameters", {}))
    return Json(await run_in_threadpool(service_of(request).patch_job, name, parameters, running))


def get_logs(request: Request, name: str, lines: int = Query(default=100, ge=1, le=10_000)) -> Json:
    return Json(service_of(request).logs(name, lines))


PackageParameter = Annotated[
    list[str] | None, Query(description="file=sha256, for files that the text names")
]


async def put_pipeline(
    request: Request, name: str, package: PackageParameter = None, dry_run: bool = False
) -> Json:
    text, format = await read_pipeline(request)
    put = service_of(request).put_pipeline
    return Json(await run_in_threadpool(put, name, text, format, dry_run, _hashes(package)))


def get_pipelines(request: Request) -> Json:
    return Json(service_of(request).pipelines())


def get_pipeline(request: Request, name: str) -> Json:
    return Json(service_of(request).pipeline(name))


async def diff_pipeline(request: Request, name: str, package: PackageParameter = None) -> Json:
    """Without a body: from what is deployed to what the pipeline's own text says."""
    text, format = await read_pipeline(request)
    service = service_of(request)
    if not text.strip():
        return Json(await run_in_threadpool(service.own_diff, name))
    put = service.put_pipeline
    return Json(await run_in_threadpool(put, name, text, format, True, _hashes(package)))


def _hashes(packages: list[str] | None) -> dict[str, str]:
    pairs = [text.rpartition("=") for text in packages or ()]
    if not all(name and sha256 for name, _, sha256 in pairs):
        raise DataError("a package is file=sha256")
    return {name: sha256 for name, _, sha256 in pairs}


def delete_pipeline(request: Request, name: str) -> Json:
    return Json(service_of(request).delete_pipeline(name))


async def put_package(request: Request, name: str, dry_run: bool = False) -> Json:
    """With `dry_run` the file is kept by its hash only, and the name means what it did."""
    with service_of(request).packages.incoming() as incoming:
        async for part in request.stream():
            await run_in_threadpool(incoming.write, part)
        alias = await run_in_threadpool(incoming.keep, name, not dry_run)
    return Json({"name": alias.name, "sha256": alias.sha256, "size": alias.size})


def get_packages(request: Request) -> Json:
    return Json(service_of(request).packages_known())


def get_nodes(request: Request) -> Json:
    return Json(service_of(request).nodes())


def get_history(request: Request, name: str) -> Json:
    return Json(service_of(request).history(name))


def delete_node(request: Request, name: str) -> Json:
    return Json(service_of(request).forget_node(name))


def get_fabric(request: Request) -> Json:
    return Json(service_of(request).fabric())


def rotate_secret(
    request: Request,
    accept_old_seconds: float = Query(default=ACCEPT_SECONDS, ge=0, le=LONGEST_ACCEPT_SECONDS),
) -> Json:
    """Secrets of before are accepted for so many seconds, for sites that get the new one later."""
    return Json(service_of(request).rotate_secret(accept_old_seconds))


def get_events(
    request: Request,
    limit: int = Query(default=100, ge=1, le=1000),
    after: int = Query(default=0, ge=0, le=2**31 - 1),
) -> Json:
    return Json(service_of(request).events(limit, after))


def get_replicas(request: Request) -> Json:
    return Json(service_of(request).replicas.status())


async def put_replica(request: Request, origin: str, holder: str) -> Json:
    body = await read_object(request)
    replicas = service_of(request).replicas
    return Json(await run_in_threadpool(replicas.add_copy, origin, holder, body))


def delete_replica(request: Request, origin: str, holder: str) -> Json:
    return Json(service_of(request).replicas.refuse(origin, holder))


async def get_progress(
    request: Request, settle: float = Query(default=0.0, ge=0.0, le=60.0)
) -> Json:
    """With `settle` the answer comes when the observed state is the desired one, or after so many
    seconds."""
    progress = service_of(request).progress
    return Json(await to_thread.run_sync(progress, settle, limiter=_WAITING if settle else None))


def get_health(request: Request) -> Json:
    health = service_of(request).health()
    return Json(health, 200 if health["ok"] else 503)


def get_openapi(request: Request) -> Json:
    return Json(request.app.openapi())


def get_docs(request: Request) -> Html:
    return Html(page_of(request.app.openapi()))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path; `types` are what a body may be."""

    method: str
    path: str
    handler: Callable[..., Any]
    summary: str
    types: tuple[str, ...] = field(default=())
    needs_body: bool = True
    schema: Mapping[str, Any] | None = None
    """Of a body that is JSON."""


ROUTES = (
    Endpoint("POST", "/jobs", post_job, "Deploy one job", ("application/json",), schema=JOB),
    Endpoint("GET", "/jobs", get_jobs, "All jobs and how they are"),
    Endpoint("GET", "/jobs/{name}", get_job, "One job and how it is"),
    Endpoint(
        *("PATCH", "/jobs/{name}", patch_job, "Change parameters, start, stop"),
        types=("application/json",),
        schema=CHANGE,
    ),
    Endpoint("DELETE", "/jobs/{name}", delete_job, "Delete a job"),
    Endpoint("GET", "/jobs/{name}/logs", get_logs, "The last lines of a job's log"),
    Endpoint("GET", "/pipelines", get_pipelines, "All pipelines"),
    Endpoint(
        "PUT", "/pipelines/{name}", put_pipeline, "Deploy or change a pipeline", PIPELINE_TYPES
    ),
    Endpoint("GET", "/pipelines/{name}", get_pipeline, "One pipeline, its text and its jobs"),
    Endpoint("DELETE", "/pipelines/{name}", delete_pipeline, "Delete a pipeline with its jobs"),
    Endpoint(
        *("GET", "/pipelines/{name}/diff", diff_pipeline, "What a text would change"),
        types=PIPELINE_TYPES,
        needs_body=False,
    ),
    Endpoint(
        "POST", "/pipelines/{name}/diff", diff_pipeline, "What a text would change", PIPELINE_TYPES
    ),
    Endpoint(
        *("PUT", "/packages/{name:path}", put_package, "Store a package of code"),
        types=("application/octet-stream",),
    ),
    Endpoint("GET", "/packages", get_packages, "All packages"),
    Endpoint("GET", "/nodes", get_nodes, "All nodes and their status"),
    Endpoint("DELETE", "/nodes/{name}", delete_node, "Forget a node that will not come back"),
    Endpoint("GET", "/nodes/{name}/history", get_history, "When a node failed and was restarted"),
    Endpoint("GET", "/replicas", get_replicas, "Copies of stored values: desired and held"),
    Endpoint("PUT", "/replicas/{origin}/{holder}", put_replica, "Add a copy", PIPELINE_TYPES[1:2]),
    Endpoint("DELETE", "/replicas/{origin}/{holder}", delete_replica, "Remove a copy"),
    Endpoint("GET", "/fabric", get_fabric, "Which sites have the fabric's secret"),
    Endpoint("POST", "/fabric/rotate-secret", rotate_secret, "Make a new secret of the fabric"),
    Endpoint("GET", "/progress", get_progress, "How many jobs are in which state"),
    Endpoint("GET", "/events", get_events, "What happened last"),
    Endpoint("GET", "/health", get_health, "Whether the coordinator works; needs no token"),
    Endpoint("GET", "/openapi.json", get_openapi, "This interface, for machines"),
    Endpoint("GET", "/docs", get_docs, "This interface, for people"),
)
