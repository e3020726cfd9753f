#!/usr/bin/env python3
"""Is docs/metrics.md what the table of metrics gives?"""
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.exit(subprocess.run([sys.executable, os.path.join(TOP, "tools/metrics-doc"), "--check"]).returncode)
