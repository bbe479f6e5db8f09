"""Geohash cells as native Spark arithmetic: no Python per record."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

_ALPHABET = "0123456789bcdefghjkmnpqrstuvwxyz"


def geohash(length: int, latitude: Column, longitude: Column) -> Column:
    """The geohash of a point with `length` characters; nothing for points off the map."""
    bits = 5 * length
    lon_bits, lat_bits = (bits + 1) // 2, bits // 2
    lon = _cell(longitude, 180.0, lon_bits)
    lat = _cell(latitude, 90.0, lat_bits)
    characters = [_character(index, lat, lon, lat_bits, lon_bits) for index in range(length)]
    valid = latitude.between(-90, 90) & longitude.between(-180, 180)
    return F.when(valid, F.concat(*characters))


def _cell(degrees: Column, half: float, bits: int) -> Column:
    """Which of 2^bits equal strips a coordinate falls in; the far edge belongs to the last."""
    scaled = F.floor((degrees + half) / (2 * half) * float(2**bits)).cast("long")
    return F.least(scaled, F.lit(2**bits - 1))


def _character(index: int, lat: Column, lon: Column, lat_bits: int, lon_bits: int) -> Column:
    """Five interleaved bits, longitude first, as one letter."""
    parts = []
    for offset in range(5):
        position = 5 * index + offset
        source, total = (lon, lon_bits) if position % 2 == 0 else (lat, lat_bits)
        bit = F.shiftright(source, total - 1 - position // 2).bitwiseAND(F.lit(1))
        parts.append(bit * (16 >> offset))
    number = reduce(lambda a, b: a + b, parts)
    return F.substring(F.lit(_ALPHABET), number.cast("int") + 1, F.lit(1))
