"""The random name of a store: another one means other values, even at the same site."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from fogline.common.state_files import StateDamaged, read_state, write_state
from fogline.storage.errors import StoreDamaged

NAME = "id"
_ID = re.compile("[0-9a-f]{32}")


def is_id(text: object) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def store_id(folder: Path, may_make: bool) -> str:
    """The id in the folder. Made where there is none, but not for a store that must have had one:

    its values would count as another's, and come back a second time. Raises `StoreDamaged`.
    """
    path = folder / NAME
    try:
        found = read_state(path).strip()
    except FileNotFoundError as error:
        if not may_make:
            raise StoreDamaged(path, "it is missing") from error
        made = secrets.token_hex(16)
        write_state(path, made, copy=True)
        return made
    except StateDamaged as error:
        raise StoreDamaged(path, error.reason) from error
    if not is_id(found):
        raise StoreDamaged(path, "it holds no id")
    return found
