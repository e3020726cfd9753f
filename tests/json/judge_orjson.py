#!/usr/bin/env python3
"""Lets orjson judge the scanner: the same records accepted, the same values read.

    judge_orjson.py JSON_DUMP [--count N] [--seed S]

JSON_DUMP is the executable made of json_dump.c. It is given thousands of records: chosen edges,
generated ones in every spelling the grammar has, and both of them with bytes changed. Each is
asked of both scanners, which must say the same. Differences from orjson that are meant:

  D1  a document that is no object is refused (not_object), however good it is;
  D2  integers beyond int64 keep their digits; orjson rounds those beyond 64 bits to doubles;
  D3  nested values come as text: numbers and duplicate names inside are as sent. The text is
      compared with a compaction made here by Python's own json module;
  D4  more than 1,024 levels are refused; old versions of orjson have no such limit.

The last line is "N passed, N failed".
"""
import argparse
import json
import random
import struct
import subprocess
import sys

import orjson

SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
SPACES = ["", "", "", " ", "  ", "\n", "\t", "\r\n", " " * 70]


def counts_levels():
    try:
        orjson.loads("[" * 1025 + "]" * 1025)
        return False
    except orjson.JSONDecodeError:
        return True


ORJSON_COUNTS_LEVELS = counts_levels()


# --- what compact text should be, by Python's json module (D3)

class Raw(str):
    """A number as it was spelled."""


def compact_string(text):
    out = []
    for c in text:
        out.append(SHORT_ESCAPES.get(c) or (c if ord(c) >= 0x20 else "\\u%04x" % ord(c)))
    return '"' + "".join(out) + '"'


def compact(value):
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return compact_string(value)
    if isinstance(value, tuple):  # the pairs of an object
        return "{" + ",".join(compact_string(k) + ":" + compact(v) for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return {None: "null", True: "true", False: "false"}[value]


def read_raw(record):
    return json.loads(record.decode("utf-8"), parse_int=Raw, parse_float=Raw,
                      object_pairs_hook=tuple)


# --- records

def spell_string(rng, text):
    """A spelling of the text, escapes chosen at random."""
    out = []
    for c in text:
        how = rng.random()
        code = ord(c)
        if how < 0.15:
            units = [code] if code < 0x10000 else [0xd800 + (code - 0x10000 >> 10), 0xdc00 + (code & 0x3ff)]
            form = rng.choice(["\\u%04x", "\\u%04X"])
            out.append("".join(form % u for u in units))
        elif c == "/" and how < 0.5:
            out.append("\\/")
        elif c in SHORT_ESCAPES and (how < 0.6 or code >= 0x20):
            out.append(SHORT_ESCAPES[c])
        elif code < 0x20:
            out.append("\\u%04x" % code)
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def any_text(rng):
    kinds = ["ascii", "ascii", "ascii", "short", "wide", "control", "long"]
    kind = rng.choice(kinds)
    if kind == "short":
        return rng.choice(["", "a", "b", "/", '"', "\\", "\x7f", "é", "東", "😀", "\0"])
    size = rng.randrange(200) if kind == "long" else rng.randrange(20)
    out = []
    for _ in range(size):
        if kind == "wide" or (kind == "long" and rng.random() < 0.1):
            low, high = rng.choice([(0x80, 0x7ff), (0x800, 0xd7ff), (0xe000, 0xffff), (0x10000, 0x10ffff)])
            out.append(chr(rng.randint(low, high)))
        elif kind == "control":
            out.append(chr(rng.randrange(0x20)))
        else:
            out.append(chr(rng.randrange(0x20, 0x7f)))
    return "".join(out)


def any_digits(rng, most):
    return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, most)))


def any_number(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return str(rng.choice([0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -2**63, -2**63 - 1,
                               2**64 - 1, 2**64, 10**18, 10**19]) + rng.randrange(-1, 2))
    if kind == 1:
        return str(rng.randrange(-10**rng.randrange(1, 40), 10**rng.randrange(1, 40)))
    if kind == 2:
        return repr(rng.uniform(-1000, 1000))
    if kind == 3:
        value = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
        return repr(value) if value == value and abs(value) != float("inf") else "0.0"
    sign = rng.choice(["", "", "-"])
    whole = rng.choice(["0", str(rng.randint(1, 9)) + (any_digits(rng, 25) if rng.random() < 0.7 else "")])
    tail = "." + any_digits(rng, rng.choice([3, 20, 60])) if rng.random() < 0.7 else ""
    power = rng.choice(["e", "E"]) + rng.choice(["", "+", "-"]) + any_digits(rng, rng.choice([1, 2, 3])) \
        if rng.random() < 0.6 else ""
    return sign + whole + tail + power


def spell_value(rng, depth, gap):
    kind = rng.randrange(10 if depth < 6 else 7)
    if kind < 2:
        return spell_string(rng, any_text(rng))
    if kind < 5:
        return any_number(rng)
    if kind < 7:
        return rng.choice(["true", "false", "null"])
    return spell_nested(rng, depth, gap, kind == 9)


def spell_nested(rng, depth, gap, is_object):
    items = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8])):
        value = gap() + spell_value(rng, depth + 1, gap) + gap()
        if is_object:
            name = rng.choice(["a", "b", "key", "event", "ключ", any_text(rng)])
            value = gap() + spell_string(rng, name) + gap() + ":" + value
        items.append(value)
    inside = ",".join(items) or gap()
    return ("{%s}" if is_object else "[%s]") % inside


def any_record(rng):
    gap = (lambda: "") if rng.random() < 0.4 else (lambda: rng.choice(SPACES))
    body = spell_nested(rng, 0, gap, True) if rng.random() < 0.97 else spell_value(rng, 0, gap)
    return (gap() + body + gap()).encode("utf-8")


def mutate(rng, record):
    """Some bytes changed, taken out, put in or repeated."""
    out = bytearray(record)
    chosen = b'"\\{}[]:, \n\t0123456789-+.eEtrufalsn/\x00\x1f\x7f\x80\xbf\xc3\xe0\xed\xf0\xf4\xff'
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        byte = rng.choice(chosen) if rng.random() < 0.8 else rng.randrange(256)
        how = rng.randrange(4)
        if how == 0 and at < len(out):
            out[at] = byte
        elif how == 1:
            out.insert(at, byte)
        elif how == 2:
            del out[at:at + rng.randint(1, 4)]
        else:
            out[at:at] = out[max(0, at - rng.randint(1, 8)):at]
    return bytes(out)


def edges():
    """Records worth asking by name."""
    numbers = ["0", "-0", "-0.0", "0.0", "1e400", "-1e400", "1e-400", "5e-324", "2e-324", "3e-324", "1e308",
               "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "01", "-", "+1",
               "1.", ".1", "1e", "1e+", "0e999", "9223372036854775807", "9223372036854775808",
               "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
               "2.2250738585072011e-308", "9007199254740993.0", "9007199254740992.99999999999999999999",
               "1" + "0" * 308, "1" + "0" * 309, "1" + "0" * 400, "0." + "3" * 800, "123456789012345678901234567890",
               str(2**1024 - 2**970), str(2**1024 - 2**970 - 1), "NaN", "Infinity", "-Infinity", "0x10", "1_0",
               "1e99999999999999999999", "1e-99999999999999999999", "0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400"]
    for text in numbers:
        yield ('{"a":%s}' % text).encode()
        yield ('{"a":[%s]}' % text).encode()
        yield text.encode()
    for text in ["", " ", "{}", "[]", "null", "true", '"x"', "{} {}", "{},", "{}x", "\ufeff{}", '{"a":1,}', "[1,]",
                 '{"a":1}//', '{"a":1,"a":2,"b":3,"a":4}', '{"a":1,"\\u0061":2}', '{"a":"\\ud800"}',
                 '{"a":"\\udc00\\ud800"}', '{"a":"\\ud83d\\ude00"}', '{"a":"\t"}', '{"a":"\\x"}', '{"a":"\\u00"}',
                 '{"a":"\\u0000"}', '{"a":{"b":1,"b": 2}}']:
        yield text.encode("utf-8")
    for raw in [b"\xff", b"\xc0\x80", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80", b"\x7f"]:
        yield b'{"a":"' + raw + b'"}'
        yield b'{"' + raw + b'":1}'
        yield b'{"a":[{"b":"' + raw + b'"}]}'
    for levels in (1, 2, 1023, 1024, 1025, 1026):
        yield b'{"k":' * (levels - 1) + b"{}" + b"}" * (levels - 1)
        yield b'{"k":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}" if levels > 1 else b"{}"


# --- asking and comparing

NO_SCANNER = 3


def ask(dump, records, scanner):
    """The lines of scanner number `scanner`, False where there are not so many, None where it failed."""
    sent = b"".join(struct.pack("<I", len(r)) + r for r in records)
    done = subprocess.run([dump, str(scanner)], input=sent, stdout=subprocess.PIPE, check=False)
    if done.returncode == NO_SCANNER:
        return False
    lines = done.stdout.split(b"\n")
    if done.returncode != 0 or len(lines) != len(records) + 1:
        print("%s ended with %d after %d of %d records" %
              (dump, done.returncode, len(lines) - 1, len(records)))
        return None
    return lines[:-1]


def check_field(field, name, value, raw):
    """What is wrong with a field, or None."""
    key, kind, text, extra = field
    if key != name:
        return "name %r, not %r" % (key, name)
    if isinstance(raw, (list, tuple)) and not isinstance(raw, str):
        if kind != "nested" or extra != ("object" if isinstance(raw, tuple) else "array"):
            return "%s %s for a nested value" % (kind, extra)
        if text != compact(raw):
            return "nested text %r, not %r" % (text, compact(raw))
        if len(text) < 3000 and orjson.loads(text) != value:
            return "nested value %r, not %r" % (text, value)
        return None
    if isinstance(raw, Raw):
        if text != raw:
            return "number text %r, not %r" % (text, raw)
        if not isinstance(value, int) and ("." in raw or "e" in raw or "E" in raw):
            want = struct.pack(">d", value).hex()
            return None if (kind, extra) == ("double", want) else "%s %s, not %s" % (kind, extra, want)
        whole = int(raw)
        if -2**63 <= whole < 2**63:
            return None if (kind, extra) == ("int", str(value)) and whole == value else "%s %s" % (kind, extra)
        return None if kind == "bigint" and float(value) == float(whole) else "%s of %s" % (kind, raw)  # D2
    if isinstance(raw, str):
        return None if kind == "string" and text == value else "%s %r, not %r" % (kind, text, value)
    want = {None: "null", True: "true", False: "false"}[value]
    return None if kind == want else "%s, not %s" % (kind, want)


def check(record, line):
    """What is wrong with the answer, or None."""
    answer = json.loads(line)
    try:
        value = orjson.loads(record)
        accepted = True
    except orjson.JSONDecodeError:
        accepted = False
    if answer.get("fault") == "depth" and not ORJSON_COUNTS_LEVELS:
        return None  # D4
    if "fault" in answer:
        if not accepted:
            return None if answer["fault"] != "not_object" else "not_object, but orjson refuses"
        if isinstance(value, dict):
            return "refused (%s), orjson accepts" % answer["fault"]
        return None if answer["fault"] == "not_object" else answer["fault"] + ", not not_object"  # D1
    if not accepted:
        return "accepted, orjson refuses"
    if not isinstance(value, dict):
        return "accepted, no object"
    raw = dict(read_raw(record))  # the last of a name, at the place of the first
    if len(answer["fields"]) != len(value):
        return "%d fields, not %d" % (len(answer["fields"]), len(value))
    for field, name in zip(answer["fields"], value):
        wrong = check_field(field, name, value[name], raw[name])
        if wrong:
            return wrong
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dump")
    ap.add_argument("--count", type=int, default=20000)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    sys.setrecursionlimit(20000)
    rng = random.Random(args.seed)

    records = list(edges())
    for _ in range(args.count):
        record = any_record(rng)
        records += [record, mutate(rng, record)]
    answers = []
    while answers[-1:] not in ([None], [False]):
        answers.append(ask(args.dump, records, len(answers)))
    if answers.pop() is None or not answers:
        print("0 passed, 1 failed")
        return 1

    passed = failed = accepted = 0
    for record, *lines in zip(records, *answers):
        line = lines[0]
        wrong = "the scanners differ: %r" % lines if len(set(lines)) > 1 else check(record, line)
        accepted += line.startswith(b'{"fields"')
        if not wrong:
            passed += 1
            continue
        failed += 1
        if failed <= 20:
            print("FAILED %r: %s" % (record[:300], wrong))
    print("%d records accepted, %d refused" % (accepted, len(records) - accepted))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
