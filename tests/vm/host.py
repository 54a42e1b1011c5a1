#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boots a guest whose peer is this host, over a TAP, and runs here what it asks for.

    unshare --net tests/vm/host.py WORDS-FOR-BOOT.SH...

    +--- the guest ---------------+          +--- a namespace of this host ------------+
    |  rdma-core's programs, siw0 |          |  Warpsock's programs                    |
    |  eth0 10.7.0.1, fd07::1     |---TAP----|  up0 10.7.0.2, fd07::2                  |
    +-----------------------------+          +-----------------------------------------+

The namespace is that of unshare, so nothing stays when this ends. The guest leaves a command in
build-vm/out/host/ID.command (ask_host.py); its output and status come back in ID.out, ID.status;
with ID.stop the command is ended.
"""
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ASKED = HERE.parent.parent / "build-vm" / "out" / "host"
LIMIT = 300
NETWORK = [
    "ip tuntap add up0 mode tap", "ip addr add 10.7.0.2/24 dev up0",
    "ip addr add fd07::2/64 dev up0 nodad", "ip link set up0 up", "ip link set lo up",
]


def lacks():
    """Why this host cannot do it; None: it can"""
    if not Path("/dev/net/tun").exists():
        return "this host has no /dev/net/tun"
    done = subprocess.run(["unshare", "--net", *NETWORK[0].split()], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return f"no namespace or TAP: {done.stdout.strip()}" if done.returncode else None


class Asked:
    """A command of the guest's."""

    def __init__(self, path):
        self.path = path.with_suffix("")
        with open(self.path.with_suffix(".out"), "wb") as out:
            self.process = subprocess.Popen(
                ["timeout", "-k", "2", str(LIMIT), "bash", path], stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def goes_on(self):
        status = self.process.poll()
        if status is None:
            if self.path.with_suffix(".stop").exists():
                self.process.terminate()  # timeout passes it on
            return True
        status = 128 - status if status < 0 else status
        self.path.with_suffix(".new").write_text(str(status))
        self.path.with_suffix(".new").rename(self.path.with_suffix(".status"))
        return False


def serve(machine):
    taken, running = set(), []
    while machine.poll() is None:
        for path in sorted(set(ASKED.glob("*.command")) - taken):
            taken.add(path)
            running.append(Asked(path))
        running = [one for one in running if one.goes_on()]
        time.sleep(0.02)
    for one in running:
        one.process.terminate()


def main():
    for command in NETWORK:
        subprocess.run(command.split(), check=True)
    ASKED.mkdir(parents=True, exist_ok=True)
    machine = subprocess.Popen([HERE / "boot.sh", "-n", "up0", *sys.argv[1:]])
    try:
        serve(machine)
    finally:
        machine.terminate()
    sys.exit(machine.wait())


if __name__ == "__main__":
    main()
