"""A program, not a module: imports the user's code and prints on stdout what is wrong with it.

It watches over a second process, which does the importing, and afterwards ends everything that one
has started. It knows nothing of Fogline, so that the code sees only its own packages.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from typing import Any

_ANYTHING: dict[str, Any] = {"any": True, "names": [], "needed": []}
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(task: dict[str, Any]) -> None:
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
    answers, answer = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(answers)
        _work(task, answer)
    os.close(answer)
    output = _wait(answers, worker, time.monotonic() + task["seconds"])
    end_children()
    sys.stdout.write(output)


def _wait(answers: int, worker: int, deadline: float) -> str:
    output = b""
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([answers], [], [], min(left, 0.05))
        part = os.read(answers, 65536) if ready else b""
        output += part
        if output.endswith(b"\n"):
            return output.decode()
        if not part:
            ended, status = os.waitpid(worker, os.WNOHANG)
            if ended and not select.select([answers], [], [], 0)[0]:
                return json.dumps({"ended": os.waitstatus_to_exitcode(status)})
            if ended:
                rest = os.read(answers, 65536)
                return (output + rest).decode() or json.dumps(
                    {"ended": os.waitstatus_to_exitcode(status)}
                )
    return json.dumps({"late": True})


def end_children() -> None:
    """Whatever is left below this process; orphans come back to it, so none escapes."""
    while children := _children(os.getpid()):
        for child in children:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.002)


def _children(parent: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(name))
    return found


def _work(task: dict[str, Any], answer: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    memory = task["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = int(task["seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    try:
        result = trial(task["file"], task["entry"])
    except BaseException as error:
        result = {"problem": f"{task['file']} cannot be used: {type(error).__name__}"}
    os.write(answer, json.dumps(result).encode() + b"\n")
    os._exit(0)


def trial(file: str, entry: str) -> dict[str, Any]:
    """What is wrong with module:function of a file in the current folder, else the parameters that
    it takes."""
    found = _load(file, entry)
    return {"problem": found} if isinstance(found, str) else {"takes": found}


def _load(file: str, entry: str) -> str | dict[str, Any]:
    name, _, function = entry.partition(":")
    place = os.getcwd() if file.endswith(".py") else os.path.join(os.getcwd(), file)
    sys.path.insert(0, place)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return f"{file} has no module {name}"
        return f"{file} needs a module that is not installed: {error.name or error}"
    except BaseException as error:
        last = traceback.format_exception_only(error)[-1].strip()[:500]
        return f"{file} cannot be imported: {last}"
    if not _comes_from(module, place):
        return f"{file} has no module {name}: there is another one of that name"
    return _callable_problem(module, name, function)


def _comes_from(module: Any, place: str) -> bool:
    origin = getattr(module, "__file__", None)
    paths = [origin] if origin else list(getattr(module, "__path__", []))
    return any(str(path).startswith(place) for path in paths)


def _callable_problem(module: Any, name: str, function: str) -> str | dict[str, Any]:
    found = module
    for part in function.split("."):
        if not hasattr(found, part):
            return f"{name} has no function {function}"
        found = getattr(found, part)
    if not callable(found):
        return f"{name}:{function} is no function"
    try:
        signature = inspect.signature(found)
    except (ValueError, TypeError):
        return _ANYTHING
    if _takes(signature, None) or _takes(signature, None, {}):
        return _parameters(signature)
    return (
        f"{name}:{function}{signature} takes the wrong number of parameters: "
        "(records), (records, parameters) or (records, **parameters) is expected"
    )


def _parameters(signature: inspect.Signature) -> dict[str, Any]:
    """As a site calls it: with what it names, or with a mapping of all, or without any."""
    known = list(signature.parameters.values())
    free = any(p.kind is p.VAR_KEYWORD for p in known)
    named = free or any(p.kind is p.KEYWORD_ONLY for p in known)
    positional = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not named:
        return _ANYTHING if len(positional) > 1 else {"any": False, "names": [], "needed": []}
    own = [p for p in known if p.kind is p.KEYWORD_ONLY]
    own += [p for p in positional[1:] if p.kind is p.POSITIONAL_OR_KEYWORD]
    needed = [p.name for p in own if p.default is p.empty]
    return {"any": free, "names": [p.name for p in own], "needed": needed}


def _takes(signature: inspect.Signature, *given: object) -> bool:
    """Whether it can be called so; parameters that it names are given to it by their names."""
    named = [p.name for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
    try:
        signature.bind(*given, **dict.fromkeys(named))
    except TypeError:
        return False
    return True


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
