#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who can read a job's secret while its workers start: watch.py COMMAND...

COMMAND is a worker's, as %C of CSPAWN_CMD or ssh has it (ssh: a machine and words for a shell, and
the secret comes by standard input). All command lines of the machine are looked through.
"""
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

words = sys.argv[1:]
text = " ".join(words)
given = re.search(r"AMUDP_SLAVE_SECRET=([^ ']+)", text).group(1)


def lines_with(secret):
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += secret in path.read_bytes()
        except OSError:  # it has just ended
            continue
    return found


if given == "-":
    secret = sys.stdin.buffer.readline()
    how = "by standard input"
else:
    secret = Path(given).read_bytes() if given[0] == "/" else given.encode()
    how = f"mode {stat.S_IMODE(os.stat(given).st_mode):o}" if given[0] == "/" else "as it is"
print(f"{how}: {len(secret.strip())} characters, on {lines_with(secret.strip())} command lines",
      file=sys.stderr, flush=True)
command = ["sh", "-c", " ".join(words[1:])] if given == "-" else words
sys.exit(subprocess.run(command, input=secret if given == "-" else None).returncode)
