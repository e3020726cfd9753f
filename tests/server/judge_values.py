#!/usr/bin/env python3
"""Our bounds, statistics, partition texts, bucket hashes and variant grammar, judged by pyhoglake's
own functions and vector files, of both its lines.

    judge_values.py [VERSION...]

Each line runs this file again in its own environment, where random values go through the real
pyhoglake and through tests/server/values_tool.c. JUDGE_SEED repeats a run. The sdist's
tests/wire_oracle.py says how a decoded bound is read by people.
"""
import datetime as dt
import decimal
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import traceback
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(os.environ.get("MP_BUILD_DIR", os.path.join(TOP, "build")), "tests/server/server-values")
ROUNDS = int(os.environ.get("JUDGE_ROUNDS", "2000"))
D = decimal.Decimal
decimal.getcontext().prec = 60
INTEGERS = {"int8": (-2**7, 2**7 - 1), "int16": (-2**15, 2**15 - 1), "int": (-2**31, 2**31 - 1),
            "long": (-2**63, 2**63 - 1), "uint8": (0, 2**8 - 1), "uint16": (0, 2**16 - 1),
            "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1)}
STAMPS = {"timestamp_s": 10**6, "timestamp_ms": 10**6, "timestamp": 10**6, "timestamptz": 10**6,
          "timestamp_ns": 10**9}
SCALARS = list(INTEGERS) + list(STAMPS) + ["boolean", "float", "double", "decimal", "date", "time",
                                          "string", "json", "uuid", "binary"]


def some_int(chance, low, high):
    near = chance.choice([low, high, 0, -1, 1, 127, 128, -128, -129, 2**31, -2**31 - 1, 2**53])
    if chance.random() < 0.3:
        return min(max(near + chance.randint(-2, 2), low), high)
    bits = chance.randint(1, max(high.bit_length(), 1))
    return min(max(chance.getrandbits(bits) * chance.choice([1, -1]), low), high)


def some_float(chance):
    if chance.random() < 0.2:
        return chance.choice([0.0, -0.0, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 1e16, 1e15, 0.1])
    value = struct.unpack("<d", chance.getrandbits(64).to_bytes(8, "little"))[0]
    return chance.gauss(0, 1e6) if math.isnan(value) else value


def some_text(chance):
    return "".join(chance.choice('abcé漢z~"\\\n\x00\x7f😀 ') for _ in range(chance.choice([0, 1, 3, 12, 70])))


class Value:
    """A random value of a type: what pyhoglake takes, what its oracle takes, and how it lies."""

    def __init__(self, chance, kind):
        self.kind, self.precision, self.scale, self.params = kind, 0, 0, None
        if kind in INTEGERS:
            self.value = some_int(chance, *INTEGERS[kind])
            self.token = str(self.value)
            size = 8 if kind in ("long", "uint64") else 4
            self.plain = (self.value % (1 << (8 * size))).to_bytes(size, "little")
        elif kind in STAMPS:
            # What a datetime holds for the transforms; all of int64 is in bounds_of_all_bits.
            unit = STAMPS[kind]
            low, high = (-2**63 + 1, 2**63 - 1) if unit == 10**9 else (-62135596800 * unit, 253402300799 * unit)
            step = {"timestamp_s": 10**6, "timestamp_ms": 1000}.get(kind, 1)
            self.value = some_int(chance, low, high) // step * step
            self.token = str(self.value)
            lies = self.value // 1000 if kind == "timestamp_ms" else self.value
            self.plain = struct.pack("<q", lies)
        elif kind == "boolean":
            self.value = chance.random() < 0.5
            self.token, self.plain = str(self.value).lower(), bytes([self.value])
        elif kind == "float":
            self.value = 0.0
            for _ in range(10):
                bits = chance.getrandbits(32).to_bytes(4, "little")
                if not math.isnan(struct.unpack("<f", bits)[0]):
                    self.value = chance.choice([0.0, -0.0, struct.unpack("<f", bits)[0]])
                    break
            self.token = "Infinity" if self.value == math.inf else "-Infinity" if self.value == -math.inf else repr(self.value)
        elif kind == "double":
            self.value = some_float(chance)
            self.token = "Infinity" if self.value == math.inf else "-Infinity" if self.value == -math.inf else repr(self.value)
        elif kind == "decimal":
            self.precision = chance.randint(1, 38)
            self.scale = chance.randint(0, self.precision)
            limit = 10**self.precision - 1
            self.unscaled = some_int(chance, -limit, limit)
            self.value = D(self.unscaled).scaleb(-self.scale)
            self.params = {"precision": self.precision, "scale": self.scale}
            self.token = str(self.unscaled)
            self.plain = (struct.pack("<i", self.unscaled) if self.precision <= 9 else
                          struct.pack("<q", self.unscaled) if self.precision <= 18 else
                          self.unscaled.to_bytes(16, "big", signed=True))
        elif kind == "date":
            days = some_int(chance, -719162, 2932896)
            self.value = dt.date(1970, 1, 1) + dt.timedelta(days)
            self.token, self.plain = str(days), struct.pack("<i", days)
        elif kind == "time":
            self.value = some_int(chance, 0, 86400 * 10**6 - 1)
            self.token, self.plain = str(self.value), struct.pack("<q", self.value)
        elif kind in ("string", "json"):
            self.value = some_text(chance) if kind == "string" else json.dumps({"a": some_text(chance)})
            self.token, self.plain = self.value, self.value.encode()
        elif kind == "uuid":
            self.value = uuid.UUID(int=chance.getrandbits(128))
            self.token, self.plain = str(self.value), self.value.bytes
        else:
            self.value = chance.randbytes(chance.choice([0, 1, 2, 3, 4, 5, 30]))
            self.token, self.plain = "", self.value

    def native(self):
        """For pyhoglake's transforms: what pyarrow would hand it."""
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc if self.kind == "timestamptz" else None)
        if self.kind in STAMPS and self.kind != "timestamp_ns":
            return epoch + dt.timedelta(microseconds=self.value)
        if self.kind == "time":
            return (epoch + dt.timedelta(microseconds=self.value)).time()
        return self.value


class Tool:
    def __init__(self):
        self.asks, self.checks = [], []

    def ask(self, check, **ask):
        """check(answer) gives None, or what is wrong."""
        self.asks.append(json.dumps(ask))
        self.checks.append(check)

    def run(self):
        done = subprocess.run([TOOL], input=("\n".join(self.asks) + "\n").encode(), capture_output=True)
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:], done.stdout[-300:])
        # Only \n ends a line: texts hold other line separators.
        answers = done.stdout.decode().split("\n")[:-1]
        assert len(answers) == len(self.asks) and self.asks
        wrong = []
        for ask, check, answer in zip(self.asks, self.checks, answers):
            fault = check(answer)
            if fault:
                wrong.append((ask[:300], answer[:300], fault))
        assert not wrong, "%d of %d, such as %r" % (len(wrong), len(answers), wrong[:6])
        return len(answers)


def equals(**want):
    def check(answer):
        got = json.loads(answer, strict=False)
        return None if got == want else "wanted %r" % (want,)
    return check


def as_float32(text):
    return struct.pack("<f", float(text))


def reads(wire, oracle, narrow=False):
    """The bound is valid and people read it as the oracle says: numbers of integers and decimals
    letter by letter, of doubles by value. A narrow one (float) is, as in the vector file, the
    shortest text that gives the same float: at most nine digits."""
    def check(answer):
        if wire is oracle.REFUSED:
            return None if json.loads(answer) == {"valid": False, "value": None} else "NaN is a bound"
        if isinstance(wire, oracle.RawToken):
            raw = answer[len('{"valid":true,"value":'):-1]
            digits = raw.split("e")[0].replace(".", "").lstrip("-0").rstrip("0")
            if raw == wire or (narrow and as_float32(raw) == as_float32(wire) and len(digits) <= 9):
                return None
            return "wanted " + wire
        return equals(valid=True, value=wire)(answer)
    return check


# --- inside an environment with pyhoglake ------------------------------------------------------

def bounds(tool, chance, hog, oracle):
    for _ in range(ROUNDS):
        for kind in SCALARS:
            one = Value(chance, kind)
            raw = hog.bounds.encode_bound(kind, one.value, one.params)
            vector = {"type": kind, "value": one.token, "hex": raw.hex(), "type_params": one.params}
            tool.ask(reads(oracle.render_wire(vector), oracle, vector["type"] == "float"), op="bound", type=kind, scale=one.scale, hex=raw.hex())


def bounds_of_all_bits(tool, chance, hog, oracle):
    """Any bytes of a fixed width are a bound, but NaN; other widths are none."""
    widths = {"int": 4, "long": 8, "float": 4, "double": 8, "date": 4, "timestamp": 8, "timestamptz": 8,
              "timestamp_ns": 8, "uuid": 16}
    for _ in range(ROUNDS):
        for kind, width in widths.items():
            raw = chance.randbytes(chance.choice([width] * 4 + [0, 1, width - 1, width + 1, 3]))
            if len(raw) != width:
                tool.ask(equals(valid=False, value=None), op="bound", type=kind, scale=0, hex=raw.hex())
                continue
            token = str(int.from_bytes(raw, "little", signed=True))
            if kind in ("float", "double"):
                value = struct.unpack("<f" if width == 4 else "<d", raw)[0]
                token = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, repr(value))
                token = "NaN" if math.isnan(value) else token
            elif kind == "uuid":
                token = str(uuid.UUID(bytes=raw))
            vector = {"type": kind, "value": token, "hex": raw.hex(), "type_params": None}
            tool.ask(reads(oracle.render_wire(vector), oracle, vector["type"] == "float"), op="bound", type=kind, scale=0, hex=raw.hex())


def texts_that_are_no_utf8(tool, chance, hog, oracle):
    """A bound all the same, but nothing that people could read: the answer stays JSON."""
    for raw in (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf8\x88\x80\x80\x80"):
        assert isinstance(hog.bounds.decode_bound("string", raw), bytes)
        for kind in ("string", "json"):
            tool.ask(equals(valid=True, value=None), op="bound", type=kind, scale=0, hex=raw.hex())


def bound_vectors(tool, chance, hog, oracle):
    """The released vector file, cell by cell."""
    document = oracle.load_raw()
    for vector in document["vectors"]:
        scale = int((vector["type_params"] or {}).get("scale", 0))
        tool.ask(reads(oracle.render_wire(vector), oracle, vector["type"] == "float"), op="bound", type=vector["type"], scale=scale,
                 hex=vector["hex"])
    for case in document["bound_normalization"]["cases"]:
        upper = not (case["lower"] if "lower" in case else case.get("role", case.get("bound")) == "lower")
        tool.ask(equals(hex=case["stored_hex"]), op="zero", type=case["type"], hex=case["raw_hex"], upper=upper)


def orders(tool, chance, hog, oracle):
    for _ in range(ROUNDS):
        for kind in SCALARS:
            a, b = Value(chance, kind), Value(chance, kind)
            if kind == "decimal":
                b.params, b.value = a.params, D(b.unscaled).scaleb(-a.scale)
            if chance.random() < 0.1:
                b.value = a.value
            x, y = (hog.bounds.encode_bound(kind, one.value, a.params) for one in (a, b))
            keys = [(v.value.encode() if isinstance(v.value, str) else v.value.bytes if kind == "uuid" else v.value)
                    for v in (a, b)]
            tool.ask(equals(order=(keys[0] > keys[1]) - (keys[0] < keys[1])), op="order", type=kind, a=x.hex(),
                     b=y.hex())


def zeros(tool, chance, hog, oracle):
    for _ in range(ROUNDS // 10):
        for kind in ("float", "double", "long", "string"):
            raw = hog.bounds.encode_bound(kind, chance.choice([0.0, -0.0, 1.5]) if kind != "string" else "x")
            for upper in (False, True):
                want = hog.bounds.normalize_bound(kind, raw, lower=not upper)
                tool.ask(equals(hex=want.hex()), op="zero", type=kind, hex=raw.hex(), upper=upper)


def bucket_hashes(tool, chance, hog, oracle):
    for _ in range(ROUNDS):
        for kind in sorted(hog.transforms._BUCKETABLE):
            one = Value(chance, kind)
            want = hog.transforms.bucket_hash(kind, one.native(), one.params)
            tool.ask(equals(hash=want), op="bucket", type=kind, precision=one.precision, scale=one.scale,
                     hex=one.plain.hex())


def temporal_numbers(tool, chance, hog, oracle):
    import pyarrow as pa
    arrow = {"date": pa.date32(), "timestamp_s": pa.timestamp("s"), "timestamp_ms": pa.timestamp("ms"),
             "timestamp": pa.timestamp("us"), "timestamp_ns": pa.timestamp("ns"),
             "timestamptz": pa.timestamp("us", "UTC")}
    for transform in ("year", "month", "day", "hour"):
        for kind, made in arrow.items():
            if (transform, kind) == ("hour", "date"):
                continue
            values = [Value(chance, kind) for _ in range(ROUNDS)]
            ticks = pa.array([struct.unpack("<q" if kind != "date" else "<i", v.plain)[0] for v in values],
                             pa.int64() if kind != "date" else pa.int32())
            if kind == "timestamp_s":  # lies in microseconds
                ticks = pa.array([v.value // 10**6 for v in values], pa.int64())
            got = hog.transforms.transform_strings(transform, None, ticks.cast(made), kind).to_pylist()
            for one, want in zip(values, got):
                tool.ask(equals(number=int(want)), op="number", type=kind, transform=transform, hex=one.plain.hex())


def identity_texts(tool, chance, hog, oracle):
    for _ in range(ROUNDS):
        for kind in SCALARS:
            one = Value(chance, kind)
            plain = one.plain if kind not in ("float", "double") else struct.pack("<f" if kind == "float" else "<d",
                                                                                  one.value)
            want = hog.transforms.wire_string(kind, "identity", one.native())
            tool.ask(equals(text=want), op="text", type=kind, precision=one.precision, scale=one.scale, hex=plain.hex())


def variant_vectors(tool, chance, hog, oracle):
    path = os.path.join(os.path.dirname(oracle.__file__), "vectors/variant_shredding_vectors.json")
    with open(path) as file:
        vectors = json.load(file)["vectors"]
    for vector in vectors:
        try:
            json.dumps(vector["declaration"], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            continue  # half a surrogate pair: our reader of JSON refuses it before
        if vector["declaration"] is None:
            continue  # declares nothing
        def check(answer, vector=vector):
            fault = json.loads(answer)["fault"]
            if vector["expect"] == "accept":
                return "must be accepted" if fault else None
            if not fault and vector.get("client") != "may_accept":
                return "must be refused: %s %s" % (vector["path"], vector["problem"])
            return None
        tool.ask(check, op="variant", declaration=vector["declaration"])


def statistics(tool, chance, hog, oracle):
    """Files by pyarrow under pyhoglake's own schema: what the hydrator tells is what it would send."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    directory = tempfile.TemporaryDirectory(prefix="values-")
    for number in range(max(ROUNDS // 20, 20)):
        fields, arrays, rows = [], [], chance.choice([0, 1, 7, 200])
        nested = chance.random() < 0.3
        for i, kind in enumerate(chance.sample(SCALARS, 6)):
            values = [Value(chance, kind) for _ in range(rows)]
            params, made = None, None
            if kind == "decimal":
                params = {"precision": 38, "scale": 6}
            made = hog.types.coltype_to_arrow(kind, params)
            column = []
            for one in values:
                if chance.random() < chance.choice([0.2, 0.2, 1.0]):
                    column.append(None)
                elif kind == "decimal":
                    column.append(D(one.unscaled % 10**30).scaleb(-6))
                elif kind in STAMPS:
                    column.append(one.value // (10**6 if kind == "timestamp_s" else 1000 if kind == "timestamp_ms" else 1))
                elif kind == "uuid":
                    column.append(one.value.bytes)
                else:
                    column.append(one.native())
            if kind == "uuid":
                made = pa.binary(16)
                array = pa.array(column, made)
            elif kind == "json":
                array = pa.array(column, pa.string()).cast(pa.json_())
            elif kind in STAMPS:
                array = pa.array(column, pa.int64()).cast(made)
            else:
                array = pa.array(column, made)
            field = pa.field("c%d" % i, array.type if kind != "uuid" else pa.binary(16))
            if nested and i < 2 and kind not in ("json", "uuid"):
                if i:
                    array = pa.StructArray.from_arrays([array], ["x"])
                else:
                    lists = [chance.choice([None, [], [v], [v, v]]) for v in array.to_pylist()] \
                        if kind != "timestamp_ns" else [[] for _ in range(rows)]
                    array = pa.array(lists, pa.list_(array.type))
                field = pa.field("c%d" % i, array.type)
            fields.append(field)
            arrays.append(array)
        schema = pa.schema(fields)
        defs = hog.types.schema_to_column_defs(schema)
        ids = iter(range(1, 1000))
        def assign(items):
            return [dict(d, field_id=next(ids), ordinal=n, **({"children": assign(d["children"])} if d.get("children") else {}))
                    for n, d in enumerate(items)]
        columns = [hog.models.Column.from_wire(d) for d in assign(defs)]
        target = hog.types.columns_to_arrow_schema(columns)
        plain = hog.types.uuid_storage_form_schema(target) if hasattr(hog.types, "uuid_storage_form_schema") else target
        table = pa.table(arrays, schema=schema).cast(plain)
        path = os.path.join(directory.name, "%d.parquet" % number)
        pq.write_table(table, path, row_group_size=chance.choice([3, 100, 1000]), use_dictionary=chance.random() < 0.5,
                       compression=chance.choice(["snappy", "zstd", "none"]),
                       write_statistics=chance.random() < 0.9, store_schema=chance.random() < 0.5)
        told = hog.stats.extract_column_stats(pq.read_metadata(path), columns)
        hexed = lambda raw: None if raw is None else raw.hex()
        want = [dict(field_id=s.field_id, value_count=s.value_count, null_count=s.null_count, size_bytes=s.size_bytes,
                     lower=hexed(s.lower_bound), upper=hexed(s.upper_bound)) for s in told] if rows else []
        want.sort(key=lambda s: s["field_id"])
        tool.ask(equals(stats=want), op="stats", columns=defs, file=path)
    return directory


PARTS = [bounds, bounds_of_all_bits, texts_that_are_no_utf8, bound_vectors, orders, zeros, bucket_hashes,
         temporal_numbers, identity_texts, variant_vectors, statistics]


def inside(version, seed):
    import pyhoglake
    import pyhoglake.bounds
    import pyhoglake.stats
    import pyhoglake.transforms
    import pyhoglake.types
    import pyhoglake.models
    import wire_oracle
    passed = failed = 0
    for part in PARTS:
        tool = Tool()
        try:
            kept = part(tool, random.Random("%s %s" % (seed, part.__name__)), pyhoglake, wire_oracle)
            count = tool.run()
            passed += 1
            print("pyhoglake %s: %-25s %6d answers as wanted" % (version, part.__name__, count), flush=True)
            del kept
        except Exception:
            failed += 1
            traceback.print_exc(file=sys.stdout)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


def main():
    import judge_pyhoglake
    seed = os.environ.get("JUDGE_SEED") or str(random.SystemRandom().randrange(1 << 32))
    passed = failed = 0
    print("JUDGE_SEED=" + seed)
    for version in sys.argv[1:] or judge_pyhoglake.VERSIONS:
        python, source = judge_pyhoglake.environment(version)
        env = dict(os.environ, PYTHONPATH=os.path.join(source, "tests"), JUDGE_INSIDE=version, JUDGE_SEED=seed)
        done = subprocess.run([python, os.path.abspath(__file__)], env=env, capture_output=True, text=True)
        lines = done.stdout.rstrip().split("\n")
        print("\n".join(lines[:-1]), done.stderr, flush=True)
        counts = lines[-1].split()
        if len(counts) == 4 and counts[1] == "passed,":
            passed, failed = passed + int(counts[0]), failed + int(counts[2])
        else:
            print(lines[-1])
            failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if os.environ.get("JUDGE_INSIDE"):
        sys.exit(inside(os.environ["JUDGE_INSIDE"], os.environ["JUDGE_SEED"]))
    sys.exit(main())
