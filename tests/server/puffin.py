"""Deletion vectors as other writers make them: a Roaring bitmap of CRoaring's in a Puffin file."""
import json
import struct
import zlib

import pyroaring


def blob(rows):
    bitmap = pyroaring.BitMap64(sorted(rows))
    bitmap.run_optimize()
    body = b"\xd1\xd3\x39\x64" + bitmap.serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def file(vectors, named=True, **more):
    """vectors: {path of a data file: its deleted rows}."""
    out, blobs = b"PFA1", []
    for path, rows in vectors.items():
        data = blob(rows)
        properties = {"cardinality": str(len(rows))}
        if named:
            properties["referenced-data-file"] = path
        blobs.append(dict({"type": "deletion-vector-v1", "fields": [2147483546], "snapshot-id": -1,
                           "sequence-number": -1, "offset": len(out), "length": len(data),
                           "properties": properties}, **more))
        out += data
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    return out + b"PFA1" + footer + struct.pack("<I", len(footer)) + b"\0\0\0\0PFA1"
