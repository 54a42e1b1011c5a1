# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two network namespaces, and a long way between them.

    programs --- tun near --- a process that holds each packet back --- tun far --- servers
    one network namespace                                               another one
"""
import ctypes
import fcntl
import heapq
import os
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

CLIENT, SERVER = "10.9.0.1", "10.9.0.2"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
libc = ctypes.CDLL(None, use_errno=True)


def inside():
    """Is this process in a namespace of its own? It is begun again in one, or says that there is
    none."""
    if sys.argv[-1] == "inside":
        return True
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*unshare, sys.executable, "-c", "open('/dev/net/tun', 'r+b', 0)"],
                      capture_output=True, check=False).returncode:
        print("1..0 # SKIP no network namespace with a TUN device is to be had")
        return False
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv, "inside"])


def tun(name, address):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    for words in (["addr", "add", address + "/24", "dev", name], ["link", "set", name, "up"],
                  ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *words], check=True)
    return fd


def hold_back(near, far, way):
    """Takes packets from one end to the other, each after so many seconds."""
    packets, number = [], 0
    while True:
        left = max(packets[0][0] - time.monotonic(), 0) if packets else None
        for fd in select.select([near, far], [], [], left)[0]:
            number += 1
            heapq.heappush(packets, (time.monotonic() + way, number,
                                     far if fd == near else near, os.read(fd, 65536)))
        while packets and packets[0][0] <= time.monotonic():
            os.write(*packets[0][2:])
            heapq.heappop(packets)


class Far:
    """This process's namespace, and the one in which servers are started."""

    def __init__(self, way):
        near = tun("near", CLIENT)
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        far = tun("far", SERVER)
        self.there = os.open("/proc/self/ns/net", os.O_RDONLY)
        libc.setns(here, CLONE_NEWNET)
        self.pid = os.fork()
        if not self.pid:
            try:
                hold_back(near, far, way)
            finally:
                os._exit(1)

    def enter(self):
        if libc.setns(self.there, CLONE_NEWNET):
            os._exit(1)

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = 0


def main(way, cases):
    """@cases: takes the launcher, a tap.Writer and a Far, whose way is that long."""
    warpsock = os.path.abspath(sys.argv[1])
    if not inside():
        return
    writer, far = tap.Writer(), Far(way)
    try:
        cases(warpsock, writer, far)
    finally:
        far.end()
    writer.finish()
