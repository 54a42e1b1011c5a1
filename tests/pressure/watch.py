# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a server has: descriptors, processes, memory, and names on its tmpfs."""
import os
import time
from pathlib import Path

GONE = 20  # seconds for what a stress left; mostly it is gone at once
# A process keeps up to sixteen wakeup fds for threads that sleep
SLACK = {"descriptors": 20, "processes": 1, "names": 2, "zombies": 0}
# Bytes by which it may grow beyond what a server on TCP does. A long run has 5,000 connections at
# once, and records of threads and sockets stay for the next ones: 8 KiB for each
MEMORY = (16 << 20) + (5000 * 8192 if os.environ.get("WARPSOCK_LONG") else 0)


def stat_of(pid):
    """State and parent; nothing, if there is no such process"""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[0], int(fields[1])
    except OSError:
        return None


def family(pid):
    """The process and all that descend from it, with their states"""
    found = {int(name): stat_of(name) for name in os.listdir("/proc") if name.isdigit()}
    members = {pid: found.get(pid)} if found.get(pid) else {}
    grown = True
    while grown:
        grown = [other for other, stat in found.items()
                 if stat and stat[1] in members and other not in members]
        members.update((other, found[other]) for other in grown)
    return {member: stat[0] for member, stat in members.items()}


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def memory(pid):
    """Its own part of what it has, in bytes"""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) << 10


def names_in(folder):
    """Of connections and processes: a folder keeps pages of leases and of what is promised."""
    try:
        return sum(1 for path in Path(folder).rglob("*")
                   if not path.is_dir() and not path.name.startswith(("leases-", "promised-")))
    except OSError:
        return 0


def left_in(folder):
    """Names that are there for long behind the end of their processes"""
    end = time.monotonic() + GONE
    while names_in(folder) and time.monotonic() < end:
        time.sleep(0.1)
    return names_in(folder)


def snapshot(pid, folder):
    members = family(pid)
    return {"descriptors": sum(map(descriptors, members)), "processes": len(members),
            "zombies": sum(state == "Z" for state in members.values()),
            "names": names_in(folder), "memory": sum(map(memory, members))}


def more(before, after):
    """What is more than it was, but for memory"""
    return [f"{name}: {after[name]}, before {before[name]}" for name, slack in SLACK.items()
            if after[name] > before[name] + slack]


def settled(pid, folder, before, grown):
    """Waits until nothing is left of a stress; returns what is, and by how much memory has grown"""
    end = time.monotonic() + GONE
    while True:
        after = snapshot(pid, folder)
        left, growth = more(before, after), after["memory"] - before["memory"]
        if growth > grown + MEMORY:
            left.append(f"memory: {growth >> 10} KiB more, over TCP {grown >> 10} KiB")
        if not left or time.monotonic() > end:
            return left, growth
        time.sleep(0.2)
