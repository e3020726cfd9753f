#!/usr/bin/env python3
"""judge_variant_java.py - lets parquet-java judge VARIANT companions.

Loads the texts of tests/e2e/test_variant.py with millpond, their members whole and apart, runs
java/VariantDump over the files with Maven, which fetches parquet-java, and compares what it finds in
every row with what Python's json module says of the text. Ends with "N passed, N failed".

A value in letters: n null, t true, f false, i an integer, d a double by the bits, s a string, [ ] an
array and { } an object by name; strings and names in hexadecimal.
"""
import json
import os
import pathlib
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("e2e", "services", "data"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import judge_tools
import lakes
import test_variant


def letters(value):
    if value is None:
        return "n"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, int):
        return "i%d" % value
    if isinstance(value, float):
        return "d" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return "s" + value.encode().hex()
    if isinstance(value, list):
        return "[" + "".join(letters(inner) + "," for inner in value) + "]"
    members = sorted((key.encode(), inner) for key, inner in value.items())
    return "{" + "".join(key.hex() + ":" + letters(inner) + "," for key, inner in members) + "}"


def judge(shape, folder):
    fitting = list(test_variant.texts(seed=21, count=3000, share_of_events=0.8))
    given = fitting + test_variant.UNFIT
    lines = list(test_variant.lines_of(fitting, True))
    lines += ['{"id":%d,"p":%s}' % (n, json.dumps(given[n])) for n in range(len(fitting), len(given))]
    lake = lakes.Lake("sqlite:%s/lake.sqlite" % folder, "%s/data/" % folder)
    lakes.load(lake, lines, folder, MILLPOND_VARIANT_COLUMNS="p", **test_variant.SHAPES[shape])
    output = os.path.join(folder, "found")
    code, told = judge_tools.maven("VariantDump", output, *lake.file_paths(), MAVEN_OPTS="-Xss64m")
    if code:
        print(told[-4000:])
        return False
    with open(output, encoding="ascii") as lines:
        found = dict(line.rstrip("\n").split(" ", 1) for line in lines)
    wrong = 0
    for n, text in enumerate(given):
        try:
            want = letters(test_variant.read(text)) if n < len(fitting) else "-"
        except test_variant.Unfit:
            want = "-"
        if found.pop(str(n), None) != want:
            wrong += 1
            print("%s: row %d is not as %.200r says" % (shape, n, text))
    return not wrong and not found


def main():
    passed = 0
    for shape in test_variant.SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "data").mkdir()
            passed += judge(shape, folder)
    print("%d passed, %d failed" % (passed, len(test_variant.SHAPES) - passed))
    sys.exit(passed != len(test_variant.SHAPES))


if __name__ == "__main__":
    main()
