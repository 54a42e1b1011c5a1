#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that are short of descriptors, of memory, of room for their states.

    short.py WARPSOCK SHORT LIBRARY

short.c is the script. Descriptors: at each count from none to enough, over TCP for reference and
over DDP. Memory: each kind of allocation that the library has (BASE_FAILS of base/point.h) fails
once, the first time, the second, until the script comes to its end without. Room: the folder of
the states is a small tmpfs, full before or after connections are made.

All of it again in mode auto, where no connection fails for it: it is plain TCP, and the report says
why.
"""
import ctypes
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent),
                str(Path(__file__).resolve().parent.parent / "e2e")]
import tap  # noqa: E402
from launch import Stage  # noqa: E402

ROOM = 26
MOST = 200
AT_ONCE = 3
LIMIT = 90
CLONE_NEWNS = 0x20000
# A child counts for itself, and a relay; two steps start programs, the script being played twice
MAY_FAIL = {"process": 2, "SHORT_EXEC_FAIL": 4}
MAY_FAIL_WITH_RELAYS = 3
# What is needed only where there is no folder for states, or there for other things, too
FOLDERS = {"map_shared": ["/dev/null"], "process": ["/dev/null"], "map": [None, "/dev/null"]}
# A worker thread begins when something is left to do behind a call, which is not so in each run
AGAIN = {"thread": 9}
# Nothing comes late for a busy host's sake, and a port is another listener's soon
PATIENT = {"WARPSOCK_PROBE_TIMEOUT": "10000", "WARPSOCK_FORGET_PLAIN": "1"}
HOST_REASONS = {"NO_MEMORY", "RUNTIME_DIR"}
# Who has no descriptor to look into a program's file by believes that it cannot load us
UNSEEN = {"NOT_LOADED"}
# What only DDP needs fails these in mode on
ONLY_ON = re.compile("connect: |accept(, now)?: ECONNABORTED")


class Short:
    def __init__(self, stage, program, mode):
        self.stage, self.program, self.mode = stage, program, mode
        self.plain = 0  # connections in mode auto that were plain for want of something
        self.helper = stage.start(f"helper-{mode}", [program, "helper"], mode=mode, env=PATIENT)
        self.port = stage.wait_text(f"helper-{mode}", limit=LIMIT).split()[0]

    def run(self, name, room=(), env=None, script="calls"):
        """What it says, and problems."""
        name = f"{self.mode}-{name}"
        status = self.stage.run(name, [self.program, script, self.port, *map(str, room)],
                                mode=self.mode, env={**PATIENT, **(env or {})}, limit=LIMIT)
        said = self.stage.text(name).splitlines()
        problems = [f"{name}: {line}" for line in said if line.startswith("BAD")]
        if status != 0 and not problems:
            problems = [f"{name}: ended with {status} after {said[-1:]}"]
        if self.mode:
            problems += [f"{name}: {line}" for line in self.unexplained(name, said)]
        if problems:
            problems += [f"{name}: {line}" for line in self.stage.text(name, "err").splitlines()]
        return said, problems

    def unexplained(self, name, said):
        """What the report does not say, or a failure that mode auto has no business with."""
        report = self.stage.report(name) or {}
        plain = report.get("connections", {}).get("tcp", -1)
        reasons = report.get("fallbacks", {})
        if self.mode == "auto":
            self.plain += plain
            yield from filter(ONLY_ON.match, said)
        elif plain:
            yield f"a plain connection in mode on: {report}"
        # Whom a plain server cannot answer comes again as a plain client
        known = HOST_REASONS | UNSEEN | ({"PEER_NOT_MPA"} if "NO_MEMORY" in reasons else set())
        relayed = sum(reasons.get(reason, 0) for reason in {"RUNTIME_DIR"} | UNSEEN)
        if set(reasons) - known or plain > sum(reasons.values()) - relayed:
            yield f"the report: {report}"
        if any(line.endswith(": EPIPE") for line in said) and "NO_MEMORY" not in reasons:
            yield f"a new program without its connection, and no reason for it: {report}"

    def at_room(self, room, folder=None):
        env = {"WARPSOCK_RUNTIME_DIR": folder} if folder else None
        return self.run(f"room-{room}-{bool(folder)}", [room], env=env)

    def at_nth(self, kind, nth, folder=None, variable="WARPSOCK_TEST_FAIL"):
        """Also: did it fail at all?"""
        name = f"{kind}-{nth}-{variable}-{bool(folder)}"
        env = {variable: f"{kind}:{nth}"}
        if folder:
            env["WARPSOCK_RUNTIME_DIR"] = folder
        said, problems = self.run(name, env=env)
        may = MAY_FAIL.get(kind if variable == "WARPSOCK_TEST_FAIL" else variable, 1)
        if len(said) - 1 > max(may, MAY_FAIL_WITH_RELAYS if folder else 0):
            problems.append(f"{name}: more calls fail: {said}")
        return said, problems, f"failed at {kind}" in self.stage.text(f"{self.mode}-{name}", "err")

    def usual(self):
        return self.run("usual")


def of_descriptors(short, writer, pool, folder=None):
    told = f"over DDP ({short.mode})" if short.mode else "over TCP"
    told += " without a folder for states" if folder else ""
    tries = pool.map(lambda room: short.at_room(room, folder), range(ROOM))
    for room, (said, problems) in enumerate(tries):
        writer.case(f"{room} descriptors {told}: {len(said) - 1} calls fail", problems)
        if room == ROOM - 1 and len(said) > 1:
            writer.case("that is enough", said)


def each_time(short, pool, kind, folder, variable):
    """Lets it fail the first time, the second: problems, and how often it is asked for."""
    found, count = [], 0
    while count < MOST:
        batch = list(pool.map(lambda nth: short.at_nth(kind, nth, folder, variable),
                              range(count + 1, count + 1 + AT_ONCE)))
        failed = [case for case in batch if case[2]]
        found += [problem for case in batch for problem in case[1]]
        count += len(failed)
        if len(failed) < AT_ONCE:
            break
    return found, count


def of_memory(short, writer, pool, kinds):
    for kind, folder in [(kind, folder) for kind in kinds for folder in FOLDERS.get(kind, [None])]:
        told = f"({short.mode}{', without a folder for states' if folder else ''})"
        found, count = each_time(short, pool, kind, folder, "WARPSOCK_TEST_FAIL")
        for _ in range(AGAIN.get(kind, 0)):
            if not found and not count:
                found, count = each_time(short, pool, kind, folder, "WARPSOCK_TEST_FAIL")
        writer.case(f"{kind} fails, each of {count} times {told}",
                    found if count else ["it is never asked for"])
        found, count = each_time(short, pool, kind, folder, "SHORT_EXEC_FAIL")
        writer.case(f"{kind} fails in a new program, each of {count} times {told}", found)


def unshare():
    """From here on mounts are our own. Why not, if it cannot be."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        return os.strerror(ctypes.get_errno())
    done = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True,
                          check=False)
    return done.stderr


def of_folder(shorts, writer):
    """The states' folder is full before anything is opened, or afterwards."""
    name = "a full folder for the states"
    reason = unshare()
    if reason:
        writer.skip(name, f"no mount of our own: {reason}")
        return
    folder = shorts[0].stage.dir / "states"
    folder.mkdir()
    for size, script, room in [(f"{pages * 4}k", "calls", []) for pages in (1, 2, 3, 8, 180)] + \
            [("16m", "full", [folder])]:
        for short in shorts:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs",
                            folder], check=True)
            said, problems = short.run(f"folder-{size}", room, script=script,
                                       env={"WARPSOCK_RUNTIME_DIR": str(folder)})
            subprocess.run(["umount", "-l", folder], check=True)
            writer.case(f"{name}: {size}, {script} ({short.mode}): {len(said) - 1} calls fail",
                        problems)


def main():
    warpsock, program, library = sys.argv[1], os.path.abspath(sys.argv[2]), Path(sys.argv[3])
    marks = re.findall(rb"warpsock-fails:(\w+)\0", library.read_bytes())
    writer = tap.Writer()
    kinds = sorted({mark.decode() for mark in marks})
    with Stage(warpsock) as stage, ThreadPoolExecutor(AT_ONCE) as pool:
        plain, *ddp = [Short(stage, program, mode) for mode in (None, "on", "auto")]
        for short in (plain, *ddp):
            said, problems = short.usual()
            writer.case(f"nothing is short ({short.mode})", problems + said[:-1])
            of_descriptors(short, writer, pool)
        for short in ddp:
            of_descriptors(short, writer, pool, "/dev/null")
            of_memory(short, writer, pool, kinds)
        writer.case("what is short makes connections plain in mode auto",
                    [] if ddp[-1].plain else ["none"])
        of_folder(ddp, writer)
    writer.finish()


if __name__ == "__main__":
    main()
