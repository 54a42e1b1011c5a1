# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Has plots.py draw results, by an interpreter that has matplotlib."""
import os
import subprocess
import sys
from pathlib import Path

NO_MATPLOTLIB = 3  # an exit status of plots.py
PLOTTERS = (sys.executable, "/usr/bin/python3")  # Debian's has Debian's matplotlib


def draw(path, folder):
    """Of a file of results; returns why there is no plot."""
    for python in filter(os.path.exists, dict.fromkeys(PLOTTERS)):
        done = subprocess.run([python, str(Path(__file__).resolve().parent / "plots.py"),
                               str(path), str(folder)], text=True, capture_output=True,
                              timeout=120, check=False)
        if done.returncode != NO_MATPLOTLIB:
            return done.stderr.strip() if done.returncode else None
    return "no matplotlib here (Debian: python3-matplotlib)"
