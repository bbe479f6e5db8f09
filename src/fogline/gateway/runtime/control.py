"""Gateways under the control of a coordinator: the operations of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fogline.broker import Tls
from fogline.broker.login import with_login
from fogline.common.errors import DataError
from fogline.control import ControlledNodes, ControlOptions, Member, OperationHandler
from fogline.gateway.runtime.config import Control
from fogline.gateway.runtime.gateway import Gateway


def operations(gateway: Gateway) -> dict[str, OperationHandler]:
    """What a gateway can be asked, besides `describe`, which every node answers."""

    def install(body: dict[str, Any]) -> dict[str, Any]:
        gateway.install(body.get("assignments"), body.get("jobs"))
        return {}

    def remove(body: dict[str, Any]) -> dict[str, Any]:
        gateway.remove(body.get("jobs"))
        return {}

    def flush(body: dict[str, Any]) -> dict[str, Any]:
        gateway.flush(body.get("jobs"))
        return {}

    def logs(body: dict[str, Any]) -> dict[str, Any]:
        lines = body.get("lines", 100)
        if type(lines) is not int:
            raise DataError("`lines` must be a whole number")
        return {"lines": gateway.job_log(str(body.get("job")), lines)}

    return {"install": install, "remove": remove, "flush": flush, "logs": logs}


def status(gateway: Gateway) -> dict[str, Any]:
    return {"jobs": [observed.as_json() for observed in gateway.observed()], "links": {}}


def connect_gateways(gateways: Sequence[Gateway], control: Control) -> ControlledNodes:
    """The connection of these gateways to the control broker, not started yet."""

    def settle() -> None:
        changed = [gateway for gateway in gateways if gateway.unsettled]
        try:
            for gateway in changed:
                gateway.settle()
        finally:
            nodes.publish_status(*(gateway.config.gateway for gateway in changed))

    url = with_login(control.url, control.user, control.password_file)
    options = ControlOptions(tls=Tls(ca=control.ca) if control.ca else None)
    members = [
        Member(gateway.describe, operations(gateway), partial(status, gateway))
        for gateway in gateways
    ]
    nodes = ControlledNodes(url, members, options, settle)
    return nodes
