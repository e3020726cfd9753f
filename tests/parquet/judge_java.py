#!/usr/bin/env python3
"""judge_java.py PARQUET_RANDOM [FIRST_SEED [COUNT]] - lets parquet-java judge Parquet files of ours.

Makes random files (parquet_random.c), then runs java/ParquetJudge over all of them with Maven, which
fetches parquet-java. Ends with its line "N passed, N failed".
"""
import os
import re
import subprocess
import sys
import tempfile

import judge_tools


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    with tempfile.TemporaryDirectory() as directory:
        for seed in range(first, first + count):
            subprocess.run([os.path.abspath(sys.argv[1]), directory, str(seed)], check=True)
        code, output = judge_tools.maven("ParquetJudge", directory)
    text = re.sub("\x1b\\[[0-9;]*m", "", output)  # Maven colours even a pipe
    counts = re.findall(r"^\d+ passed, \d+ failed$", text, re.MULTILINE)
    print(text.strip())
    print(counts[-1] if counts else "0 passed, 1 failed")
    sys.exit(code if counts else 1)


if __name__ == "__main__":
    main()
