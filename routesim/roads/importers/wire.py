"""Protocol-buffer messages taken apart in compiled loops that never look outside the message."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Ints
from routesim.kernels import kernel

Bytes = NDArray[np.uint8]


@kernel
def _check(buffer: Bytes, start: int, end: int) -> None:
    """Refuse a span that is not within the buffer; compiled loops do not look themselves."""
    if start < 0 or end < start or end > len(buffer):
        raise ValueError("a field lies outside its message, or a number stands where a list belongs")


@kernel
def _varint(buffer: Bytes, at: int, end: int) -> tuple[np.int64, int]:
    """Return an unsigned number (as the signed one of equal bits) and where it ends, within a span that was checked."""
    value = np.int64(0)
    for shift in range(0, 70, 7):
        if at >= end:
            raise ValueError("a number breaks off")
        byte = np.int64(buffer[at])
        at += 1
        value |= (byte & 0x7F) << shift if shift < 63 else (byte & 1) << 63
        if byte < 0x80:
            return value, at
    raise ValueError("a number does not end")


@kernel
def _zigzag(value: np.int64) -> np.int64:
    """Return the signed number that was stored with its sign in the last bit."""
    return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)


@kernel
def _step(buffer: Bytes, at: int, end: int) -> tuple[Any, Any, Any, Any]:
    """Return number, first and second of the field at `at`, and where the next one is (see `fields_of`)."""
    tag, at = _varint(buffer, at, end)
    number, kind = tag >> 3, tag & 7
    if number <= 0:
        raise ValueError("a field has no number")
    if kind == 0:
        value, at = _varint(buffer, at, end)
        return number, value, -1, at
    if kind == 2:
        length, at = _varint(buffer, at, end)
        if length < 0 or length > end - at:
            raise ValueError("a field is longer than its message")
        return number, at, at + length, at + length
    if kind == 1 or kind == 5:
        width = 8 if kind == 1 else 4
        if width > end - at:
            raise ValueError("a field is longer than its message")
        return -number, 0, 0, at + width
    raise ValueError("a field is of unknown kind")


@kernel
def fields_of(buffer: Bytes, start: int, end: int) -> Ints:
    """Return rows of field number, and where its content begins and ends; a plain number is (value, -1)."""
    _check(buffer, start, end)
    n, at = 0, start
    while at < end:
        _, _, _, at = _step(buffer, at, end)
        n += 1
    rows = np.empty((n, 3), dtype=np.int64)
    at = start
    for i in range(n):
        rows[i, 0], rows[i, 1], rows[i, 2], at = _step(buffer, at, end)
    return rows


@kernel
def spans_of(buffer: Bytes, start: int, end: int) -> Ints:
    """Return `fields_of` without the plain numbers."""
    rows = fields_of(buffer, start, end)
    return rows[rows[:, 2] >= 0]


@kernel
def _count(buffer: Bytes, start: int, end: int) -> int:
    _check(buffer, start, end)
    n = 0
    for at in range(start, end):
        n += buffer[at] < 0x80
    if end > start and buffer[end - 1] >= 0x80:
        raise ValueError("a number breaks off")
    return n


@kernel
def delta_values(buffer: Bytes, start: int, end: int) -> Ints:
    """Return packed signed numbers, each stored as the difference from the one before."""
    values = np.empty(_count(buffer, start, end), dtype=np.int64)
    total, at = np.int64(0), start
    for i in range(len(values)):
        value, at = _varint(buffer, at, end)
        total += _zigzag(value)
        values[i] = total
    return values


@kernel
def plain_nodes(buffer: Bytes, spans: Ints) -> Ints:
    """Return rows of id, latitude and longitude of single nodes."""
    rows = np.zeros((len(spans), 3), dtype=np.int64)
    for i in range(len(spans)):
        at, end = spans[i, 0], spans[i, 1]
        _check(buffer, at, end)
        found = 0
        while at < end:
            number, value, last, at = _step(buffer, at, end)
            if last == -1 and number in (1, 8, 9):
                rows[i, 0 if number == 1 else number - 7] = _zigzag(value)
                found += 1
        if found != 3:
            raise ValueError("a node must state its id, latitude and longitude once each")
    return rows


@kernel
def _way_lists(buffer: Bytes, at: int, end: int) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return where a way's keys, values and node ids begin and end."""
    keys, keys_end, values, values_end, refs, refs_end = 0, 0, 0, 0, 0, 0
    while at < end:
        number, first, last, at = _step(buffer, at, end)
        if number in (2, 3, 8):
            if last < 0 or (number == 2 and keys_end) or (number == 3 and values_end) or (number == 8 and refs_end):
                raise ValueError("a way must state its tags and nodes in one list each")
            if number == 2:
                keys, keys_end = first, last
            elif number == 3:
                values, values_end = first, last
            else:
                refs, refs_end = first, last
    return keys, keys_end, values, values_end, refs, refs_end


@kernel
def tagged_ways(buffer: Bytes, spans: Ints, wanted: int, n_texts: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return tags (pairs of text numbers) and node ids of ways with the key `wanted`, each with offsets."""
    chosen = np.empty((len(spans), 6), dtype=np.int64)
    n_ways, n_tags, n_refs = 0, 0, 0
    for i in range(len(spans)):
        _check(buffer, spans[i, 0], spans[i, 1])
        lists = _way_lists(buffer, spans[i, 0], spans[i, 1])
        has, at = False, lists[0]
        while at < lists[1]:
            key, at = _varint(buffer, at, lists[1])
            has = has or key == wanted
        if has:
            tags = _count(buffer, lists[0], lists[1])
            if tags != _count(buffer, lists[2], lists[3]):
                raise ValueError("a way has not as many values as keys")
            n_tags += tags
            n_refs += _count(buffer, lists[4], lists[5])
            chosen[n_ways] = lists
            n_ways += 1
    pairs = np.empty((n_tags, 2), dtype=np.int64)
    pair_offsets = np.zeros(n_ways + 1, dtype=np.int64)
    refs = np.empty(n_refs, dtype=np.int64)
    ref_offsets = np.zeros(n_ways + 1, dtype=np.int64)
    pair, ref = 0, 0
    for i in range(n_ways):
        key_at, value_at = chosen[i, 0], chosen[i, 2]
        while key_at < chosen[i, 1]:
            pairs[pair, 0], key_at = _varint(buffer, key_at, chosen[i, 1])
            pairs[pair, 1], value_at = _varint(buffer, value_at, chosen[i, 3])
            for side in range(2):
                if pairs[pair, side] < 0 or pairs[pair, side] >= n_texts:
                    raise ValueError("a tag points to a text that is not there")
            pair += 1
        pair_offsets[i + 1] = pair
        values = delta_values(buffer, chosen[i, 4], chosen[i, 5])
        refs[ref : ref + len(values)] = values
        ref += len(values)
        ref_offsets[i + 1] = ref
    return pairs, pair_offsets, refs, ref_offsets
