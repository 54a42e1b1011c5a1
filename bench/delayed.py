# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Some of the benchmarks over a network that is 50 us away.

    clients --- tap near --- bench_delay, which holds each frame back --- tap far --- servers
    one network namespace                                                another one

Loopback rewards a call that looks for input itself more than any network does: there an answer
never takes long.
"""
import contextlib
import ctypes
import fcntl
import os
import struct
import subprocess

import connections
import message
import programs

CLIENT, SERVER = "10.9.0.1", "10.9.0.2"
DELAY = 50  # us, each way
CLONE_NEWNET = 0x40000000
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
TAP = 0x0002 | 0x1000 | 0x4000  # a device of frames, without a header of its own, with virtio-net's
OFFLOAD = 0x01 | 0x02 | 0x04  # sums, and segments of IPv4 and IPv6: a frame of 64 KiB stays one
libc = ctypes.CDLL(None, use_errno=True)


def checked(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


def tap(name, address):
    """In the network namespace that this process is in."""
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP))
    fcntl.ioctl(fd, TUNSETOFFLOAD, OFFLOAD)
    for words in (["addr", "add", address + "/24", "dev", name], ["link", "set", name, "up"],
                  ["link", "set", "lo", "up"]):
        subprocess.run(["ip", *words], check=True)
    with open("/proc/sys/net/ipv4/tcp_tw_reuse", "w", encoding="ascii") as file:
        file.write("1")  # as loopback does by itself: ports of a client come again
    return fd


def network(name, address):
    """A new network namespace and the TAP device in it."""
    checked(libc.unshare(CLONE_NEWNET), "a network namespace")
    return os.open("/proc/self/ns/net", os.O_RDONLY), tap(name, address)


@contextlib.contextmanager
def far(session):
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    fds = [here]
    try:
        try:
            near_ns, near = network("near", CLIENT)
            fds += [near_ns, near]
            far_ns, away = network("far", SERVER)
            fds += [far_ns, away]
        finally:
            checked(libc.setns(here, CLONE_NEWNET), "the network namespace")
        session.ends.enter = lambda: checked(libc.setns(far_ns, CLONE_NEWNET), "the far network")
        session.ends.leave = lambda: checked(libc.setns(near_ns, CLONE_NEWNET), "the near network")
        session.host = SERVER
        forwarder = subprocess.Popen([session.tool("delay"), str(near), str(away), str(DELAY)],
                                     pass_fds=(near, away))
        try:
            yield
        finally:
            session.ends.stop()
            forwarder.terminate()
            forwarder.wait(10)
    finally:
        session.host, session.prefix = "127.0.0.1", ""
        session.ends.enter, session.ends.leave = None, None
        for fd in fds:
            os.close(fd)


def messages(session, place):
    for kind, figures, sizes in (("pingpong", message.LATENCY, (64, 4096, 65536)),
                                 ("stream", message.BANDWIDTH, (1024, 65536, 1 << 20))):
        servers = message.Servers(session, place, [session.tool("message"), "serve", session.host,
                                                   "{port}"])
        for size in sizes if session.scale.whole else sizes[:1 if session.scale.short else 2]:
            session.compare(message.named(size), place.title, figures,
                            message.own(session, servers, place, kind, size), size=size)
        session.ends.stop()


def rates(session, place):
    for kind, (_, title) in connections.KINDS.items():
        session.compare(title, place.title, [connections.RATE],
                        lambda arm, kind=kind: connections.rate(session, place, kind, 0, arm))


def redis(session, _place):
    program = programs.redis_program(session)
    slower = {1: 10, 50: 3}
    program.compare([programs.redis_load(session, clients, 64, slower=slower[clients])
                     for clients in ((1,) if session.scale.short else (1, 50))])


def delayed(session):
    place = session.places.get("two") or session.places["one"]
    if os.geteuid():
        session.skip("all of it", "no network namespaces without root")
        return
    try:
        with far(session):
            session.notes[session.bench] = f"{DELAY} us each way between two TAP devices"
            for title, part in (("message", messages), ("connections", rates), ("redis", redis)):
                session.prefix = f"{title}, "
                part(session, place)
    except OSError as error:
        session.skip("all of it", f"no network namespace with a TUN device is to be had: {error}")
