"""The commands for pipelines: call the coordinator, show the response."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fogline.cli.output.tables import colour_state, console, print_items, table
from fogline.common.errors import DataError, FoglineError, UsageError
from fogline.coordinator.client import CoordinatorClient, find
from fogline.deploy.manifest.composition import read_composition
from fogline.deploy.manifest.deployment_plan import read_deployment_plan
from fogline.model.nodes import SETTLED
from fogline.plan.analysis.query_file import read_text

FORMATS = {".ins": "ins", ".yaml": "yaml", ".yml": "yaml", ".json": "plan"}
_SHOW_SECONDS = 0.2
_HEALTH = {True: "well", False: "[red]unwell[/]", None: ""}


def deploy(file: Path, name: str | None, wait: float, as_json: bool) -> None:
    """Sends the file and the code it names; with `wait`, waits until its jobs run."""
    client = find()
    text, form, name = _read(file, name)
    uploaded = _upload(client, file, text, form)
    response = client.put_pipeline(name, text, form, packages=_hashes(uploaded))
    response["packages"] = uploaded
    if not as_json:
        _show_diff(response)
        click.echo(f"pipeline {name}: revision {response['revision']}")
    if wait and response["left"]:
        response["jobs"] = _wait(client, name, wait, quiet=as_json)
    if as_json:
        click.echo(json.dumps(response))


def diff(file: Path, name: str | None, as_json: bool) -> None:
    client = find()
    text, form, name = _read(file, name)
    uploaded = _upload(client, file, text, form, dry_run=True)
    response = client.diff(name, text, form, _hashes(uploaded))
    if as_json:
        click.echo(json.dumps(response))
    else:
        _show_diff(response)


def delete(name: str, as_json: bool) -> None:
    """Deletes a pipeline, or a job of that name."""
    client = find()
    known = {pipeline["name"] for pipeline in client.pipelines()}
    response = client.delete_pipeline(name) if name in known else client.delete_job(name)
    click.echo(json.dumps(response) if as_json else f"{name} is deleted")


def status(name: str | None, as_json: bool) -> None:
    """Shows all pipelines, or one with its jobs."""
    client = find()
    if name is not None:
        print_items([client.pipeline(name)], as_json, lambda found: _show_jobs(found[0]["jobs"]))
        return
    states = {job["name"]: job["state"] for job in client.jobs()}
    found = client.pipelines()
    for pipeline in found:
        own = [states.get(job, "waiting") for job in pipeline["jobs"]]
        pipeline["states"] = {state: own.count(state) for state in sorted(set(own))}
    print_items(found, as_json, _show_pipelines)


def jobs(name: str | None, as_json: bool) -> None:
    client = find()
    found = [client.job(name)] if name else client.jobs()
    print_items(found, as_json, _show_jobs)


def sites(as_json: bool) -> None:
    print_items(find().nodes(), as_json, _show_nodes)


def forget(name: str, as_json: bool) -> None:
    """Forgets a node that will not come back."""
    response = find().forget_node(name)
    click.echo(json.dumps(response) if as_json else f"{name} is forgotten")


def change(name: str, parameters: Iterable[str], running: bool | None, as_json: bool) -> None:
    """Changes parameters of a job, or whether it runs."""
    response = find().patch_job(name, dict(_parameter(text) for text in parameters), running)
    print_items([response], as_json, _show_jobs)


def logs(name: str, lines: int, as_json: bool) -> None:
    response = find().logs(name, lines)
    click.echo(json.dumps(response) if as_json else "\n".join(response["lines"]))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def _read(file: Path, name: str | None) -> tuple[str, str, str]:
    form = FORMATS.get(file.suffix.lower())
    if form is None:
        raise UsageError(f"{file.name}: unknown kind of file", "one of " + ", ".join(FORMATS))
    return read_text(file), form, name or file.stem


def _upload(
    client: CoordinatorClient, file: Path, text: str, form: str, dry_run: bool = False
) -> list[dict[str, Any]]:
    """Uploads code and query files that the text names and that exist beside it."""
    if form == "ins":
        return []
    read = read_deployment_plan if form == "plan" else read_composition
    found = read(text)
    packages = []
    for name in dict.fromkeys([*found.code_files, *found.query_files]):
        path = file.parent / name
        if path.is_file():
            packages.append(client.put_package(name, path, dry_run))
    return packages


def _hashes(uploaded: list[dict[str, Any]]) -> dict[str, str]:
    return {package["name"]: package["sha256"] for package in uploaded}


def _parameter(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{text!r} is not name=value", "for example publish.rate=10")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _wait(
    client: CoordinatorClient, name: str, seconds: float, quiet: bool
) -> list[dict[str, Any]]:
    """Waits until every job is in its desired state; raises DataError after `seconds`."""
    deadline = time.monotonic() + seconds
    columns = (TextColumn("jobs running"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("jobs")
        while True:
            found: list[dict[str, Any]] = client.pipeline(name)["jobs"]
            settled = [job for job in found if job["state"] in SETTLED]
            bar.update(task, total=len(found), completed=len(settled))
            if len(settled) == len(found):
                return found
            if time.monotonic() > deadline:
                raise _not_settled([job for job in found if job not in settled], seconds)
            client.progress(settle=_SHOW_SECONDS)


def _not_settled(waiting: list[dict[str, Any]], seconds: float) -> FoglineError:
    first = waiting[0]
    why = f": {first['problem']}" if first["problem"] else ""
    text = f"after {seconds:g} s {len(waiting)} jobs do not run yet; {first['name']} is "
    return DataError(
        f"{text}{first['state']}{why}", "see fogline jobs; the coordinator keeps trying"
    )


# ── showing ──────────────────────────────────────────────────────────────────────────────────────


def _show_diff(response: dict[str, Any]) -> None:
    click.echo(response["text"] or "nothing changes")
    for note in response["notes"]:
        click.echo(f"note: {note}", err=True)


def _show_pipelines(found: list[dict[str, Any]]) -> None:
    shown = table("pipeline", "revision", "jobs", "states")
    for item in found:
        states = ", ".join(f"{count} {state}" for state, count in item["states"].items())
        shown.add_row(item["name"], str(item["revision"]), str(len(item["jobs"])), states)
    console().print(shown)


def _show_jobs(found: list[dict[str, Any]]) -> None:
    shown = table("job", "pipeline", "site", "state", "in", "out", "bad", "late", "problem")
    for job in found:
        counts = [f"{job[key]:,}" for key in ("records_in", "records_out", "bad", "late")]
        head = [job["name"], job["pipeline"], job["node"], colour_state(job["state"])]
        shown.add_row(*head, *counts, job["problem"] or _describe_muted(job))
    console().print(shown)


def _describe_muted(job: dict[str, Any]) -> str:
    """Insights that it computes without publishing them."""
    return f"muted: {', '.join(job['muted'])}" if job.get("muted") else ""


def _show_nodes(found: list[dict[str, Any]]) -> None:
    shown = table("node", "kind", "state", "health", "broker", "cores", "memory", "jobs", "links")
    for node in found:
        links = ", ".join(_link(to, link) for to, link in node["links"].items())
        row = [node["name"], node["kind"], colour_state(node["state"])]
        row += [_HEALTH[node.get("healthy")], node.get("broker", "")]
        memory = f"{node.get('memory_mb', 0) / 1024:.1f} GB"
        row += [str(node.get("cores", "")), memory, str(len(node["jobs"])), links]
        shown.add_row(*row)
    console().print(shown)


def _link(to: str, link: dict[str, Any]) -> str:
    rate = f", {link['mbit_s']:g} Mbit/s" if link["mbit_s"] else ""
    return f"{to} ({link['latency_ms']:g} ms{rate})"
