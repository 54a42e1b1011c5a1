# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two network namespaces, for clients and for servers, as long as some benchmarks run."""
import contextlib
import ctypes
import os
import subprocess

CLIENT, SERVER = "10.9.0.1", "10.9.0.2"
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def enter(namespace, what):
    checked(libc.setns(namespace, CLONE_NEWNET), what)


def up(name, address):
    """Of the network namespace that this process is in."""
    for words in (["addr", "add", address + "/24", "dev", name], ["link", "set", name, "up"],
                  ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *words], check=True)
    with open("/proc/sys/net/ipv4/tcp_tw_reuse", "w", encoding="ascii") as file:
        file.write("1")  # as loopback does by itself: ports of a client come again


@contextlib.contextmanager
def two(session, make):
    """make(near, far) gives them a link, and is a context; both are descriptors."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    fds = [here]
    try:
        try:
            for _ in range(2):
                checked(libc.unshare(CLONE_NEWNET), "a network namespace")
                fds.append(os.open("/proc/self/ns/net", os.O_RDONLY))
        finally:
            enter(here, "the network namespace")
        near, far = fds[1:]
        with make(near, far):
            enter(here, "the network namespace")
            session.ends.enter = lambda: enter(far, "the servers' network")
            session.ends.leave = lambda: enter(near, "the clients' network")
            session.host = SERVER
            try:
                yield
            finally:
                session.ends.stop()
    finally:
        session.host, session.prefix = "127.0.0.1", ""
        session.ends.enter, session.ends.leave = None, None
        enter(here, "the network namespace")
        for fd in fds:
            os.close(fd)
