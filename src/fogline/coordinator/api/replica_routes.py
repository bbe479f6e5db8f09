"""The addresses of copies: thin handlers; `routes` lists them."""

from __future__ import annotations

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from fogline.common.http.replies import Json
from fogline.coordinator.api.bodies import read_object
from fogline.coordinator.api.service import Service
from fogline.coordinator.replication.service import ReplicaService


def replicas_of(request: Request) -> ReplicaService:
    found = request.app.state.service
    assert isinstance(found, Service)
    return found.replicas


def get_replicas(request: Request) -> Json:
    return Json(replicas_of(request).shown())


async def put_replica(request: Request, origin: str, holder: str) -> Json:
    body = await read_object(request)
    return Json(await run_in_threadpool(replicas_of(request).want, origin, holder, body))


def delete_replica(request: Request, origin: str, holder: str) -> Json:
    return Json(replicas_of(request).refuse(origin, holder))
