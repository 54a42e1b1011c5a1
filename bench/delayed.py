# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Some of the benchmarks over a network that is 50 us away.

    clients --- tap near --- bench_delay, which holds each frame back --- tap far --- servers
    one network namespace                                                another one

Loopback rewards a call that looks for input itself more than any network does: there an answer
never takes long.
"""
import contextlib
import fcntl
import os
import struct
import subprocess

import connections
import message
import networks
import programs

DELAY = 50  # us, each way
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
TAP = 0x0002 | 0x1000 | 0x4000  # a device of frames, without a header of its own, with virtio-net's
OFFLOAD = 0x01 | 0x02 | 0x04  # sums, and segments of IPv4 and IPv6: a frame of 64 KiB stays one


def tap(namespace, name, address):
    networks.enter(namespace, f"the {name} network")
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), TAP))
    fcntl.ioctl(fd, TUNSETOFFLOAD, OFFLOAD)
    networks.up(name, address)
    return fd


def link(session):
    @contextlib.contextmanager
    def make(near, far):
        fds = []
        try:
            fds.append(tap(near, "near", networks.CLIENT))
            fds.append(tap(far, "far", networks.SERVER))
            forwarder = subprocess.Popen([session.tool("delay"), *map(str, fds), str(DELAY)],
                                         pass_fds=fds)
            try:
                yield
            finally:
                forwarder.terminate()
                forwarder.wait(10)
        finally:
            for fd in fds:
                os.close(fd)
    return make


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
        with networks.two(session, link(session)):
            session.notes[session.bench] = f"{DELAY} us each way between two TAP devices"
            for title, part in (("message", messages), ("connections", rates), ("redis", redis)):
                session.prefix = f"{title}, "
                part(session, place)
    except OSError as error:
        session.skip("all of it", f"no network namespace with a TUN device is to be had: {error}")
