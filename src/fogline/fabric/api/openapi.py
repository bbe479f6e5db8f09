"""The REST interface described, for machines, from its list of addresses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import fogline
from fogline.common.http.parameters import QueryParameter
from fogline.fabric.api.address import Address

TITLE = "Fogline store"
ABOUT = "What this site and all others have stored. Everything but this page needs a token."
_ERRORS = {
    400: "asked wrong",
    401: "no or a wrong token",
    403: "a right is missing",
    404: "not there",
    409: "does not go with what is there",
    413: "too large",
    429: "more than a query may take",
    503: "not now",
}
_PART = re.compile(r"{(\w+)(:path)?}")


def openapi(addresses: Sequence[Address]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for address in addresses:
        path = _PART.sub(r"{\1}", address.path)
        paths.setdefault(path, {})[address.method.lower()] = _operation(address)
    schema = {"type": "object", "properties": {n: {"type": "string"} for n in ("error", "hint")}}
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": fogline.__version__, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": {"Error": schema},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(address: Address) -> dict[str, Any]:
    name = re.sub(r"\W+", "_", address.path.removeprefix("/v1")).strip("_")
    operation: dict[str, Any] = {
        "summary": address.summary,
        "operationId": f"{address.method.lower()}_{name}",
        "parameters": [
            *({"name": p[0], "in": "path", "required": True, "schema": {"type": "string"}}
              for p in _PART.findall(address.path)),
            *map(_parameter, address.parameters),
        ],
        "responses": {"200": {"description": "the answer"}, **_errors()},
    }  # fmt: skip
    if address.right:
        operation["description"] = f"Needs the right {address.right}."
    if address.body:
        content = {kind: {"schema": {"type": "object"}} for kind in address.body}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameter(parameter: QueryParameter) -> dict[str, Any]:
    one: dict[str, Any] = {"type": parameter.type}
    if parameter.default is not None:
        one["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.about,
        "schema": {"type": "array", "items": one} if parameter.many else one,
    }


def _errors() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {str(code): {"description": text, "content": content} for code, text in _ERRORS.items()}
