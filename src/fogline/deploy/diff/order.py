"""In which order jobs are made and ended: nobody writes before somebody reads."""

from __future__ import annotations

from fogline.deploy.resolve.flow import Flow, FlowKey

Waves = tuple[tuple[str, ...], ...]


def downstream_first(flow: Flow) -> Waves:
    """Waves in which to make jobs: each comes after all jobs that read what it writes.

    Jobs that feed one another in a circle, which `resolve` refuses, come together at the end.
    """
    waiting: dict[str | FlowKey, int] = {
        name: len(set(flow.filters_of(name))) for name in flow.written
    }
    waiting |= {key: len(flow.readers[key]) for key in flow.readers}
    wave = [name for name in flow.written if not waiting[name]]
    waves: list[tuple[str, ...]] = []
    before = _feeding(flow)
    while wave:
        waves.append(tuple(wave))
        wave = _next_wave(wave, before, waiting)
    done = {name for names in waves for name in names}
    rest = tuple(name for name in flow.written if name not in done)
    return (*waves, rest) if rest else tuple(waves)


def _feeding(flow: Flow) -> dict[str | FlowKey, list[str | FlowKey]]:
    """Before each job the filters it reads with, before each filter the jobs it takes from."""
    before: dict[str | FlowKey, list[str | FlowKey]] = {}
    for key, names in flow.readers.items():
        for name in names:
            before.setdefault(name, []).append(key)
    for name in flow.written:
        for key in set(flow.filters_of(name)):
            before.setdefault(key, []).append(name)
    return before


def _next_wave(
    wave: list[str],
    before: dict[str | FlowKey, list[str | FlowKey]],
    waiting: dict[str | FlowKey, int],
) -> list[str]:
    """The jobs all of whose readers are done now; filters are passed through on the way."""
    found: list[str] = []
    pending: list[str | FlowKey] = list(wave)
    while pending:
        for item in before.get(pending.pop(), ()):
            waiting[item] -= 1
            if waiting[item]:
                continue
            if isinstance(item, str):
                found.append(item)
            else:
                pending.append(item)
    return found
