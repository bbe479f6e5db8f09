"""Who is upstream of whom, among all jobs of a coordinator: the order of commands follows it."""

from __future__ import annotations

from collections import defaultdict

from fogline.deploy.diff.order import waves_of
from fogline.deploy.resolve.flow import Flow


def upstream_of(flow: Flow) -> dict[str, frozenset[str]]:
    """For every job the jobs that write what it reads.

    Pipelines may feed one another in a circle; there no order is right, and the edges that would
    close it are left out.
    """
    if not any(flow.meets.values()):
        return dict.fromkeys(flow.written, frozenset())
    wave = {name: number for number, names in enumerate(waves_of(flow)) for name in names}
    found: dict[str, set[str]] = defaultdict(set)
    for key, writers in flow.writers.items():
        for reader in flow.read_by(key):
            found[reader].update(name for name in writers if wave[name] > wave[reader])
    return {name: frozenset(found.get(name, ())) for name in flow.written}
