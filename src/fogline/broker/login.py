"""Users and passwords of brokers: kept in files, put into addresses, taken out again."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from fogline.common.errors import DataError


def read_password(file: Path | None) -> str | None:
    """The file's text without the line's end; nothing where no file is given."""
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DataError(f"the password file {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"the password file {file} is not UTF-8 text") from error


def with_login(url: str, user: str | None, password_file: Path | None) -> str:
    """The address with user and password, unless it has them: not for printing."""
    if user is None or "@" in url:
        return url
    scheme, _, rest = url.partition("://")
    secret = read_password(password_file) or ""
    return f"{scheme}://{quote(user, safe='')}:{quote(secret, safe='')}@{rest}"


def without_login(url: str) -> str:
    """The address as everybody may see it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
