"""What an offline run of W&B has written."""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

from wandb.proto.wandb_internal_pb2 import Record

BLOCK, HEADER, PIECE = 32768, 7, 7
"""Sizes of the format [bytes]: a block, the file's header, and the header of a piece of a record."""


def records(content: bytes) -> list[Record]:
    """Return the records of a ``.wandb`` file."""
    found = []
    for data in pieces(content):
        record = Record()
        record.ParseFromString(data)
        found.append(record)
    return found


def pieces(content: bytes) -> Iterator[bytes]:
    """Yield the data of the records: LevelDB's log format, pieces of (crc32, length, type) and data."""
    assert content[:4] == b":W&B"
    at, whole = HEADER, b""
    while at + PIECE <= len(content):
        left = BLOCK - at % BLOCK
        if left < PIECE:
            at += left
            continue
        crc, length, kind = struct.unpack_from("<IHB", content, at)
        data = content[at + PIECE : at + PIECE + length]
        assert zlib.crc32(data, zlib.crc32(bytes([kind]))) == crc
        whole, at = whole + data, at + PIECE + length
        if kind in (1, 4):  # a whole record, or the last piece of one
            yield whole
            whole = b""


def named(item: Any) -> str:
    """Return the name of a logged value or a setting."""
    return item.key or "/".join(item.nested_key)
