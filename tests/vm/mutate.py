#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plants the faults of faults.txt in a copy, one at a time: the lab's checks they name must fail.

    mutate.py [WORD...]     only faults whose file or name contains a WORD; prints TAP

Patterns are those of a shell, with ? for a blank. The checks run in the copy without a fault
first. It takes a boot for each fault.
"""
import argparse
import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mutate")]
import mutate as table  # noqa: E402
import tap  # noqa: E402

LIMIT = 900
# What the lab runs of ours
BUILT = ["apps/warpsock", "apps/examples/warp-rping", "preload/libwarpsock-preload.so",
         "tests/vm/script_warp"]


class Lab:
    """A copy of the source with a build and a guest of its own."""

    def __init__(self):
        self.source = ROOT / "build-vm" / "faulty"
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.copytree(ROOT, self.source, symlinks=True,
                        ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))
        guest = self.source / "build-vm"
        guest.mkdir()
        for name in ("vmlinuz", "initramfs.gz", "stamp"):
            shutil.copy(ROOT / "build-vm" / name, guest / name)
        self.command(["meson", "setup", "build", "-Dwerror=false"])

    def command(self, args):
        done = subprocess.run(args, cwd=self.source, text=True, timeout=LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise table.BadFault("\n".join(done.stdout.splitlines()[-20:]))

    def red(self, wanted):
        """Which of these patterns CASE/PATTERN have a check that fails."""
        self.command(["nice", "ninja", "-j2", "-C", "build", *BUILT])
        names = sorted({one.split("/")[0] for one in wanted})
        args = [part for one in wanted for part in ("--only", one.split("/", 1)[1])]
        done = subprocess.run([self.source / "tests/vm/run.py", *args, *names], text=True,
                              cwd=self.source, timeout=LIMIT, stdout=subprocess.PIPE)
        dead = set(re.findall(r"^not ok \d+ - (\w+): the guest$", done.stdout, re.M))
        if dead:  # siw did not survive the fault
            return {one for one in wanted if one.split("/")[0] in dead}
        failed = re.findall(r"^not ok \d+ - (\w+): (.*)$", done.stdout, re.M)
        ran = re.findall(r"^(?:not )?ok \d+ - (\w+): (.*)$", done.stdout, re.M)
        if not all(any(match(one, *check) for check in ran) for one in wanted):
            raise table.BadFault(f"a pattern without a check: {wanted}\n{done.stdout}")
        return {one for one in wanted if any(match(one, *check) for check in failed)}

    def try_fault(self, fault):
        path = self.source / fault["file"]
        good = path.read_text()
        try:
            path.write_text(table.plant(good, fault))
            return self.red(fault["red"].split())
        finally:
            path.write_text(good)


def match(wanted, case, name):
    return fnmatch.fnmatchcase(f"{case}/{name}", wanted)


def main():
    parser = argparse.ArgumentParser(description="Plant faults that the lab must find.")
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    path = HERE / "faults.txt"
    faults = [fault for fault in table.parse(path.read_text(), path.name)
              if not words or any(w in fault["file"] or w in fault["fault"] for w in words)]
    writer, lab = tap.Writer(), Lab()
    stale = lab.red(sorted({one for fault in faults for one in fault["red"].split()}))
    for fault in faults:
        wanted = set(fault["red"].split())
        try:
            green = sorted(wanted - lab.try_fault(fault))
            problems = [f"green: {' '.join(green)}"] if green else []
        except table.BadFault as why:
            problems = str(why).splitlines()
        if stale & wanted:
            problems.append(f"red without the fault: {' '.join(stale & wanted)}")
        writer.case(fault["fault"], problems)
    writer.finish()


if __name__ == "__main__":
    main()
