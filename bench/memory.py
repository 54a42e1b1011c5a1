# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What memory a program takes, with what the kernel and shared memory keep for it.

Best by memory.current of a cgroup of version 2. Where the kernel's memory controller belongs to
version 1, by its memory.usage_in_bytes, which has the kernel's memory in it, too, and the buffers
of TCP beside it. Else by Pss, and what the whole machine's slabs and shared memory have grown by.
"""
import contextlib
import os
import time
from pathlib import Path

from ends import family

V2 = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
V1 = Path("/sys/fs/cgroup/memory")
NAME = "warpsock-bench-{pid}-{number}"


def v2():
    """The folder of a hierarchy whose children can have memory.current, or None."""
    for top in V2:
        try:
            if "memory" not in (top / "cgroup.controllers").read_text().split():
                continue
            (top / "cgroup.subtree_control").write_text("+memory")
            return top
        except OSError:
            continue
    return None


class Group:
    """A cgroup of its own for a program that is about to start."""
    number = 0

    def __init__(self, top, files):
        Group.number += 1
        self.path = top / NAME.format(pid=os.getpid(), number=Group.number)
        self.files = files
        self.path.mkdir()

    def join(self):
        """In the program's process, before it is executed."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def bytes(self, _proc):
        return sum(int((self.path / name).read_text()) for name in self.files
                   if (self.path / name).exists())

    def end(self):
        """It is empty when the last of its processes has been waited for."""
        for _ in range(100):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.05)


class Pss:
    """Without a cgroup: the process by itself, and half of what the machine's kernel has taken."""

    def join(self):
        pass

    def bytes(self, proc):
        fields = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
        total = (int(fields["Slab:"]) + int(fields["Shmem:"])) * 1024 // 2
        for pid in family(proc.pid):
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) * 1024 for line in lines
                             if line.startswith(("Pss_Anon:", "Pss_File:")))
        return total

    def end(self):
        pass


def kind():
    """How memory can be measured here: what makes a group, and how that is told."""
    top = v2()
    if top:
        return (lambda: Group(top, ["memory.current"])), "memory.current"
    if os.access(V1 / "memory.usage_in_bytes", os.R_OK) and os.access(V1, os.W_OK):
        files = ["memory.usage_in_bytes", "memory.kmem.tcp.usage_in_bytes"]
        return (lambda: Group(V1, files)), (
            "memory.usage_in_bytes of cgroup v1, for no cgroup v2 has the memory controller")
    return Pss, "Pss and slabs, for no cgroup's memory controller is to be had"
