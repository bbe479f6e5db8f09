"""The fabric's secrets of a site: that of `secret_file`, else what its coordinator handed over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from fogline.broker.login import read_password
from fogline.common.errors import DataError
from fogline.common.fabric_secret import FabricSecret, load_secret, save_secret


class SiteSecret:
    """What was handed over last is kept in the site's folder: a site that starts while its
    coordinator is unreachable goes on with it. For one thread at a time."""

    def __init__(
        self, folder: Path, secret_file: Path | None, clock: Callable[[], float] = time.time
    ) -> None:
        self.problem = ""
        """Why the one of before cannot be used; the coordinator hands it over again."""
        self._folder, self._file, self._clock = folder, secret_file, clock
        self._handed: FabricSecret | None = None
        if secret_file is None:
            try:
                self._handed = load_secret(folder)
            except DataError as error:
                self.problem = error.message

    @property
    def version(self) -> int:
        """Of what the coordinator handed over; 0 without."""
        return self._handed.version if self._handed is not None else 0

    @property
    def own(self) -> bool:
        """Whether the configuration names a file: then what is handed over does not count."""
        return self._file is not None

    def take(self, handed: FabricSecret) -> bool:
        """Keeps it if it is newer than what is there; whether it was. It is on disk then."""
        if self.own or handed.version <= self.version:
            return False
        taken = handed.after(self._handed, self._clock())
        save_secret(self._folder, taken)
        self._handed = taken
        return True

    def accepted_secrets(self) -> list[tuple[str, float | None]]:
        """All that are accepted, the newest first, with the time until when."""
        if self.own:
            text = read_password(self._file)
            return [(text, None)] if text else []
        if self._handed is None:
            return []
        replaced = [(old.secret, old.until) for old in self._handed.replaced]
        return [(self._handed.secret, None), *replaced]
