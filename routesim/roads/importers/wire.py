"""Protocol-buffer messages taken apart in compiled loops that never look outside the message."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Ints
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
def plain_nodes(buffer: Bytes, spans: Ints, key: int, value: int) -> Ints:
    """Return rows of id, latitude, longitude and whether it has the tag of single nodes; -1 is no tag to look for."""
    rows = np.zeros((len(spans), 4), dtype=np.int64)
    for i in range(len(spans)):
        at, end = spans[i, 0], spans[i, 1]
        _check(buffer, at, end)
        found = 0
        keys, keys_end, values, values_end = 0, 0, 0, 0
        while at < end:
            number, first, last, at = _step(buffer, at, end)
            if last == -1 and number in (1, 8, 9):
                rows[i, 0 if number == 1 else number - 7] = _zigzag(first)
                found += 1
            elif last >= 0 and number == 2:
                keys, keys_end = first, last
            elif last >= 0 and number == 3:
                values, values_end = first, last
        if found != 3:
            raise ValueError("a node must state its id, latitude and longitude once each")
        while key >= 0 and keys < keys_end and values < values_end:
            one, keys = _varint(buffer, keys, keys_end)
            other, values = _varint(buffer, values, values_end)
            if one == key and other == value:
                rows[i, 3] = 1
    return rows


@kernel
def dense_tagged(buffer: Bytes, start: int, end: int, n_nodes: int, key: int, value: int) -> Bools:
    """Tell which nodes of a dense group have a tag, from its list of keys and values with a 0 after each node."""
    _check(buffer, start, end)
    tagged = np.zeros(n_nodes, dtype=np.bool_)
    node, at = 0, start
    while at < end:
        one, at = _varint(buffer, at, end)
        if one == 0:
            node += 1
            continue
        other, at = _varint(buffer, at, end)
        if node >= n_nodes:
            raise ValueError("a group of nodes has tags of more nodes than it has")
        if one == key and other == value:
            tagged[node] = True
    return tagged


@kernel
def _way_lists(buffer: Bytes, at: int, end: int) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return a way's id, and where its keys, values and node ids begin and end."""
    name, keys, keys_end, values, values_end, refs, refs_end = np.int64(0), 0, 0, 0, 0, 0, 0
    while at < end:
        number, first, last, at = _step(buffer, at, end)
        if number == 1 and last == -1:
            name = first
        elif number in (2, 3, 8):
            if last < 0 or (number == 2 and keys_end) or (number == 3 and values_end) or (number == 8 and refs_end):
                raise ValueError("a way must state its tags and nodes in one list each")
            if number == 2:
                keys, keys_end = first, last
            elif number == 3:
                values, values_end = first, last
            else:
                refs, refs_end = first, last
    return name, keys, keys_end, values, values_end, refs, refs_end


@kernel
def ways_with(buffer: Bytes, spans: Ints, columns: Ints, n_columns: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return ids of ways that have the first of certain keys, their values, how many nodes they have, and where.

    `columns` says of every text of the table of which column it is the key, or -1. A value is the number of a text, -1
    where a way has no such key; of a key that is stated twice the last value counts.
    """
    names = np.empty(len(spans), dtype=np.int64)
    values = np.full((len(spans), n_columns), -1, dtype=np.int64)
    counts = np.empty(len(spans), dtype=np.int64)
    nodes = np.empty((len(spans), 2), dtype=np.int64)
    n_ways = 0
    for i in range(len(spans)):
        _check(buffer, spans[i, 0], spans[i, 1])
        name, key_at, keys_end, value_at, values_end, refs, refs_end = _way_lists(buffer, spans[i, 0], spans[i, 1])
        has, at = False, key_at
        while at < keys_end:
            key, at = _varint(buffer, at, keys_end)
            if 0 <= key < len(columns) and columns[key] == 0:
                has = True
        if not has:
            continue
        if _count(buffer, key_at, keys_end) != _count(buffer, value_at, values_end):
            raise ValueError("a way has not as many values as keys")
        while key_at < keys_end:
            key, key_at = _varint(buffer, key_at, keys_end)
            value, value_at = _varint(buffer, value_at, values_end)
            if key < 0 or key >= len(columns) or value < 0 or value >= len(columns):
                raise ValueError("a tag points to a text that is not there")
            if columns[key] >= 0:
                values[n_ways, columns[key]] = value
        names[n_ways] = name
        counts[n_ways] = _count(buffer, refs, refs_end)
        nodes[n_ways, 0], nodes[n_ways, 1] = refs, refs_end
        n_ways += 1
    return names[:n_ways], values[:n_ways], counts[:n_ways], nodes[:n_ways]


@kernel
def only_dense(begin: Bytes, size: int) -> bool:
    """Tell by the beginning of a block of `size` bytes whether it is texts and then one dense group up to its end."""
    at, end = 0, len(begin)
    for depth in range(3):
        if at + 22 > end:
            return False
        tag, at = _varint(begin, at, end)
        length, at = _varint(begin, at, end)
        if length < 0 or length > size - at:
            return False
        if depth == 0:
            if tag != (1 << 3 | 2):
                return False
            at = int(at + length)
        elif tag != (2 << 3 | 2) or at + length != size:
            return False
    return True


@kernel
def plain_values(buffer: Bytes, start: int, end: int) -> Ints:
    """Return packed numbers as they are."""
    values = np.empty(_count(buffer, start, end), dtype=np.int64)
    at = start
    for i in range(len(values)):
        values[i], at = _varint(buffer, at, end)
    return values


@kernel
def relations_with(buffer: Bytes, spans: Ints, key: int, value: int) -> Bools:
    """Tell which relations have a tag."""
    found = np.zeros(len(spans), dtype=np.bool_)
    for i in range(len(spans)):
        _check(buffer, spans[i, 0], spans[i, 1])
        _, key_at, keys_end, value_at, values_end, _, _ = _way_lists(buffer, spans[i, 0], spans[i, 1])
        while key_at < keys_end and value_at < values_end:
            one, key_at = _varint(buffer, key_at, keys_end)
            other, value_at = _varint(buffer, value_at, values_end)
            if one == key and other == value:
                found[i] = True
    return found


@kernel
def delta_lists(buffer: Bytes, spans: Ints, total: int) -> Ints:
    """Return `delta_values` of several spans one after the other, `total` in all."""
    values = np.empty(total, dtype=np.int64)
    at = 0
    for i in range(len(spans)):
        part = delta_values(buffer, spans[i, 0], spans[i, 1])
        if at + len(part) > total:
            raise ValueError("a list is longer than was counted")
        values[at : at + len(part)] = part
        at += len(part)
    return values[:at]
