#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""doc.py PROGRAM: docs/conformance.md has the table that PROGRAM prints.

With --write after it, the table is put there.
"""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402  (found through the line above)

PAGE = ROOT / "docs" / "conformance.md"


def main():
    table = subprocess.run([sys.argv[1], "table"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    text = PAGE.read_text()
    if sys.argv[2:] == ["--write"]:
        PAGE.write_text(text[:text.index("| case |")] + table)
        return
    writer = tap.Writer()
    writer.case("docs/conformance.md has every case", [] if text.endswith(table) else
                ["it differs: doc.py PROGRAM --write"])
    writer.finish()


main()
