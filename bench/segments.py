# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Streams over a network of 1500 octets a frame: an FPDU for each TCP segment.

    clients --- veth near --- veth far --- servers
    one network namespace     another one
"""
import contextlib
import os
import subprocess

import message
import networks

MTU = 1500
SIZES = (1024, 65536)


@contextlib.contextmanager
def link(near, far):
    networks.enter(far, "the servers' network")
    subprocess.run(["ip", "link", "add", "far", "mtu", str(MTU), "type", "veth", "peer", "name",
                    "near", "mtu", str(MTU), "netns", f"/proc/{os.getpid()}/fd/{near}"], check=True)
    networks.up("far", networks.SERVER)
    networks.enter(near, "the clients' network")
    networks.up("near", networks.CLIENT)
    yield


def segments(session):
    place = session.places.get("two") or session.places["one"]
    if os.geteuid():
        session.skip("all of it", "no network namespaces without root")
        return
    try:
        with networks.two(session, link):
            session.notes[session.bench] = f"a pair of veth devices, MTU {MTU}"
            servers = message.Servers(session, place, [session.tool("message"), "serve",
                                                       session.host, "{port}"])
            for size in SIZES[-1:] if session.scale.short else SIZES:
                session.compare(message.named(size), place.title, message.BANDWIDTH,
                                message.own(session, servers, place, "stream", size), size=size)
    except (OSError, subprocess.CalledProcessError) as error:
        session.skip("all of it", f"no network namespaces with a veth pair are to be had: {error}")
