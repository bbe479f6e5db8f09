"""The file of logins of a Mosquitto: it holds no password, only what shows whether one is right."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from fogline.common.private_files import write_private

HASH_ROUNDS = 10_000


def write_passwords(file: Path, logins: Mapping[str, str]) -> None:
    """Raises `SetupError` when it cannot be written."""
    lines = [f"{name}:{_hash_password(password)}\n" for name, password in logins.items()]
    write_private(file, "".join(lines))


def _hash_password(password: str) -> str:
    """Mosquitto's own form: PBKDF2 with SHA-512, and what is needed to repeat it."""
    salt = os.urandom(12)
    key = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, HASH_ROUNDS, 64)
    return f"$7${HASH_ROUNDS}${b64encode(salt).decode()}${b64encode(key).decode()}"
