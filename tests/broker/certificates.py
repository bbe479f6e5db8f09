"""A CA of one's own and certificates it has signed, made with openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Signed:
    certificate: Path
    key: Path


class Authority:
    """A CA in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.certificate, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        _openssl(
            *f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name}".split(),
            *("-keyout", self._key, "-out", self.certificate),
        )

    def sign(self, name: str, address: str = "IP:127.0.0.1") -> Signed:
        request, extra = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        made = Signed(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        extra.write_text(f"subjectAltName={address}\n")
        _openssl(
            *f"req -newkey rsa:2048 -nodes -subj /CN={name}".split(),
            *("-keyout", made.key, "-out", request),
        )
        _openssl(
            *("x509", "-req", "-days", "2", "-CAcreateserial", "-in", request),
            *("-CA", self.certificate, "-CAkey", self._key),
            *("-extfile", extra, "-out", made.certificate),
        )
        return made


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
