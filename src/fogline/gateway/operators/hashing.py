"""XXH64, the hash by which the Spark source samples; here in plain Python."""

from __future__ import annotations

import struct

_MASK = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_UNIT = 2.0**-53


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _round(acc: int, word: int) -> int:
    return _rotate((acc + word * _P2) & _MASK, 31) * _P1 & _MASK


def xxh64(data: bytes, seed: int = 0) -> int:
    """The hash as an unsigned number."""
    seed &= _MASK
    size = len(data)
    words = struct.unpack_from(f"<{size // 8}Q", data)
    value = _stripes(words[: size // 32 * 4], seed) if size >= 32 else (seed + _P5) & _MASK
    value = (value + size) & _MASK
    for word in words[size // 32 * 4 :]:
        value = (_rotate(value ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    return _avalanche(_rest(value, data[size // 8 * 8 :]))


def _stripes(words: tuple[int, ...], seed: int) -> int:
    lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
    for lane in range(4):
        acc = lanes[lane]
        for word in words[lane::4]:
            acc = _round(acc, word)
        lanes[lane] = acc
    value = sum(_rotate(acc, by) for acc, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for acc in lanes:
        value = ((value ^ _round(0, acc)) * _P1 + _P4) & _MASK
    return value


def _rest(value: int, data: bytes) -> int:
    if len(data) >= 4:
        value ^= int.from_bytes(data[:4], "little") * _P1 & _MASK
        value = (_rotate(value, 23) * _P2 + _P3) & _MASK
        data = data[4:]
    for byte in data:
        value = _rotate(value ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    return value


def _avalanche(value: int) -> int:
    value = (value ^ value >> 33) * _P2 & _MASK
    value = (value ^ value >> 29) * _P3 & _MASK
    return value ^ value >> 32


def unit(value: int) -> float:
    """A hash as a number from 0 to below 1."""
    return (value >> 11) * _UNIT
