# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a scenario's programs have on the wire."""
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "e2e")]

import fpdu_check  # noqa: E402


def tail(text, lines=6):
    return text.splitlines()[-lines:]


def until(condition, limit=20):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def sockets():
    """Local and remote address and state of each."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            yield line.split()[1:4]


def listens(port):
    """Looked up, not tried: a connection that says nothing would be a program's to count."""
    return any(state == "0A" and local.endswith(f":{port:04X}") for local, _, state in sockets())


def connected(port):
    """Is there a connection to it?"""
    return any(state == "01" and remote.endswith(f":{port:04X}") for _, remote, state in sockets())


def as_root():
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


class Wire:
    """A capture of some ports on loopback."""

    def __init__(self, folder, ports):
        self.ports = ports
        self.path = folder / f"wire-{ports[0]}.pcap"
        self.log = folder / f"wire-{ports[0]}.log"
        self.dump = None
        self.why = None  # why there is no capture

    def start(self):
        """Not in immediate mode, whose ring has room for 256 packets, however small they are."""
        what = " or ".join(f"tcp port {port}" for port in self.ports)
        with open(self.log, "wb") as log:
            self.dump = subprocess.Popen(
                [*as_root(), "tcpdump", "-i", "lo", "-s", "0", "-B", "65536", "-w",
                 str(self.path), what],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(lambda: "listening on" in self.said() or self.dump.poll() is not None)
        if self.dump.poll() is not None:
            self.why = f"no capture here: {' '.join(tail(self.said(), 1))}"

    def said(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        if self.dump and self.dump.poll() is None:
            time.sleep(1.3)  # what came last reaches tcpdump after a second
            subprocess.run([*as_root(), "kill", str(self.dump.pid)], check=True, timeout=20)
            self.dump.wait(20)

    def problems(self, marker_of):
        """Of a capture whose every octet has to be in FPDUs, and the marker in their payload.

        What tcpdump says that it dropped may be from before it had its filter: a gap in what is
        ours is found by the octets that are missing.
        """
        try:
            sides = [side for port in self.ports for walk in fpdu_check.check(self.path, port)
                     for side in walk]
        except fpdu_check.Wrong as wrong:
            return [str(wrong), *tail(self.said(), 3)]
        marker = marker_of(sides)
        if not marker or not any(marker in side.payload for side in sides):
            return ["the marker was not on the wire"]
        return ["the marker is outside of FPDU payload" for side in sides if marker in side.around]
