#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks that clang-format would change nothing; a case for each folder."""
import subprocess
from collections import defaultdict

import tree


def main():
    root, writer = tree.open_check(__doc__)
    folders = defaultdict(list)
    for file in tree.ours(root, ".c", ".h"):
        folders[file.relative_to(root).parts[0]].append(file)
    for folder, files in sorted(folders.items()):
        style = f"--style=file:{tree.ROOT}/.clang-format"
        done = subprocess.run(["clang-format", style, "--dry-run", "-Werror", *map(str, files)],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        errors = [line for line in done.stdout.splitlines() if "error:" in line]
        writer.case(f"format of {folder}", errors or ([done.stdout] if done.returncode else []))
    writer.finish()


if __name__ == "__main__":
    main()
