"""Ways in which a file is damaged, for tables of tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], None]


def flip_bit(path: Path) -> None:
    """In the middle, and so that a digit stays a digit."""
    data = bytearray(path.read_bytes())
    digits = [at for at, byte in enumerate(data) if chr(byte).isdigit()] or [len(data) // 2]
    data[digits[len(digits) // 3]] ^= 1
    path.write_bytes(data)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def zero_page(path: Path) -> None:
    """The first 4096 bytes, or the first half of a smaller file."""
    data = path.read_bytes()
    size = min(4096, len(data) // 2)
    path.write_bytes(bytes(size) + data[size:])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def halve(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def double(path: Path) -> None:
    path.write_bytes(2 * path.read_bytes())


DAMAGES: dict[str, Damage] = {
    "flipped bit": flip_bit,
    "zeroed": zero,
    "zeroed page": zero_page,
    "empty": empty,
    "half": halve,
    "doubled": double,
}
