# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the style checks have in common: which files are ours, and their command line."""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402  (found through the line above)

ROOT = Path(__file__).resolve().parent.parent.parent


def ours(root, *suffixes):
    """Files below root with these suffixes, without hidden ones and what is made, sorted."""
    def walk(folder):
        for path in sorted(folder.iterdir()):
            hidden = path.name.startswith(".") or path.name == "__pycache__"
            made = folder == root and path.name.startswith(("build", "bench-results"))
            if path.is_symlink() or hidden or made:
                continue
            if path.is_dir():
                yield from walk(path)
            elif path.name.endswith(suffixes):
                yield path
    return list(walk(root))


def open_check(description):
    """Returns the root that is to be checked, and the writer of cases."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=Path, default=ROOT)
    return parser.parse_args().root.resolve(), tap.Writer()


def lines(path):
    return path.read_text(errors="replace").split("\n")
