"""Reading a query file: the first step of most commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fogline.common.errors import DataError
from fogline.common.settings import Settings
from fogline.language.ast import QueryFile
from fogline.language.parser import parse
from fogline.plan.analysis.build import plan_query
from fogline.plan.operators import Plan
from fogline.plan.user_functions import UserFunctions

_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class LoadedQuery:
    path: Path
    text: str
    query: QueryFile
    plan: Plan
    functions: UserFunctions


def load_query(path: Path, settings: Settings) -> LoadedQuery:
    """Parses and checks a file; raises QueryError with every problem in it."""
    return check_text(read_text(path), settings, path)


def check_text(text: str, settings: Settings, path: Path = Path()) -> LoadedQuery:
    """The same for a text that came from elsewhere."""
    functions = UserFunctions(settings.functions)
    query = parse(text)
    plan = plan_query(query, text, functions.check, settings.retention_ms)
    return LoadedQuery(path, text, query, plan, functions)


def read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
        whole = len(data) < _MOST_BYTES  # else it may end within a character, and is refused anyway
        return data.decode("utf-8", "strict" if whole else "replace")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text (byte {error.start})"
        raise DataError(message, "save the file as UTF-8") from error
