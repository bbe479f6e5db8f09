"""What Spark says when it fails, for people."""

from __future__ import annotations

import re

from fogline.common.errors import DataError

_TRACEBACK = "Traceback (most recent call last):"
_PLACE = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)')
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(: .*)?$")


def python_traceback(error: BaseException) -> str:
    """What the user's code said in a Python worker, from the first line of the traceback to the
    exception; empty where none failed."""
    _, mark, after = str(error).rpartition(_TRACEBACK)
    if not mark:
        return ""
    lines = [mark]
    for line in after.splitlines()[1:]:
        lines.append(line)
        if _RAISED.match(line):
            return "\n".join(lines)
    return ""


def summarise_failure(error: BaseException) -> DataError:
    """Spark's failure in one line: the exception of the user's code with its place, or else the
    innermost cause, without the stack."""
    text = str(error)
    if traceback := python_traceback(error):
        *above, raised = traceback.splitlines()
        places = [found for line in above if (found := _PLACE.match(line))]
        file, line, name = places[-1].groups() if places else ("", "", "")
        place = f" ({file.rpartition('/')[2]}, line {line}, in {name})" if places else ""
        return DataError(f"{raised[:400]}{place}")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return DataError((causes[-1] if causes else lines[0] if lines else text)[:500])
