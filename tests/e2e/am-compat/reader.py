#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command whose standard output does not block, and reads it late: reader.py COMMAND..."""
import os
import subprocess
import sys
import time

ours, theirs = os.pipe()
os.set_blocking(theirs, False)
child = subprocess.Popen(sys.argv[1:], stdout=theirs)
os.close(theirs)
time.sleep(0.5)
octets = 0
while data := os.read(ours, 1 << 16):
    octets += len(data)
print(f"{octets} octets, code {child.wait()}")
