# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Messages of our own tool, by size, and those of UCX and libfabric beside them."""
import json
import re

from arms import BASE, Foreign
from ends import Failed, free_port
from session import LESS, MORE, Figure

LATENCY = [
    Figure("us", "round trip", "us", LESS, axis="latency"),
    Figure("p99", "round trip, p99", "us", LESS),
    Figure("cpu", "CPU per million messages", "s", LESS, axis="cpu by messages"),
]
BANDWIDTH = [
    Figure("mb_s", "bandwidth", "MB/s", MORE, axis="bandwidth"),
    Figure("cpu", "CPU per GB", "s", LESS, axis="cpu by bytes"),
]
SIZES = {"pingpong": {"full": (1, 64, 256, 1024, 4096, 16384, 65536, 262144),
                      "quick": (64, 1024, 16384), "short": (64, 4096)},
         "stream": {"full": (64, 256, 1024, 4096, 16384, 65536, 262144, 1 << 20),
                    "targets": (1024, 65536, 1 << 20), "quick": (1024, 16384, 262144),
                "short": (1024, 65536)}}
WARM_UP = 200
UCX_GET, UCX_GETS = "ucp_get", 500  # over tcp it is done in software, some 500 a second


class Servers:
    """A server of each arm, started when it is first asked for."""

    def __init__(self, session, place, args):
        self.session, self.place, self.args = session, place, args
        self.found = {}

    def of(self, arm):
        if arm.key not in self.found:
            port = free_port()
            args = [str(arg).replace("{port}", str(port)) for arg in self.args]
            self.found[arm.key] = port, self.session.ends.serve(arm, self.place, args, port)
        return self.found[arm.key][0]


def named(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def own(session, servers, place, kind, size):
    """One run of bench_message."""
    def one(arm):
        done = session.ends.client(arm, place, [
            session.tool("message"), kind, session.host, servers.of(arm), size,
            session.scale.seconds])
        found = json.loads(done.text)
        cpu = found["cpu_client"] + found["cpu_server"]
        if kind == "stream":
            return {"mb_s": found["mb_s"], "cpu": cpu / found["bytes"] * 1e9}
        quantiles = found["quantiles"]
        # a message goes each way
        return {"us": found["us"], "p99": dict(map(tuple, quantiles))[0.99],
                "cpu": cpu / found["messages"] / 2 * 1e6, "quantiles": {"us": quantiles}}
    return one


# --- others -----------------------------------------------------------------------------------


def ucx(session, place, test, size, count, window):
    """UCX tells the time of one way, or of a get, which is there and back; and MB/s in 2^20."""
    env = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
    port = free_port()
    server = session.ends.serve(None, place, ["ucx_perftest", "-p", port], port, env)
    done = session.ends.client(None, place, [
        "ucx_perftest", session.host, "-p", port, "-t", test, "-s", size, "-n", count, "-w",
        min(WARM_UP, count), "-O", window, "-f", "-v"], env=env)
    session.ends.end(server)
    rows = [line.split(",") for line in done.text.splitlines() if line.strip()[:1].isdigit()]
    if not rows:
        raise Failed(f"ucx_perftest printed no figure: {done.text[-200:]}")
    return {"us": float(rows[-1][3]) * (1 if test == UCX_GET else 2),
            "mb_s": float(rows[-1][5]) * (1 << 20) / 1e6}


def fi(session, place, kind, size, count):
    """libfabric tells the time of one way."""
    port = free_port()
    words = ["fi_pingpong", "-p", "tcp", "-e", kind, "-I", count, "-S", size]
    server = session.ends.serve(None, place, [*words, "-B", port], port)
    done = session.ends.client(None, place, [*words, "-P", port, session.host])
    session.ends.end(server)
    line = done.text.strip().splitlines()[-1].split()
    if not re.fullmatch(r"[\d.]+", line[-2]):
        raise Failed(f"fi_pingpong printed no figure: {done.text[-200:]}")
    return {"us": float(line[-2]) * 2}


def either(session, mine, place, kind, size):
    """A run of an arm, or of a foreign one."""
    def one(arm):
        if not isinstance(arm, Foreign):
            return mine(arm)
        if arm.program == "fi_pingpong":
            return fi(session, place, arm.latency, size, session.scale.count(20000))
        trips = kind == "pingpong"
        test = arm.latency if trips else arm.bandwidth
        rate = UCX_GETS if test == UCX_GET else 20000 if trips else min(1.5e9 / size, 500000)
        return ucx(session, place, test, size, session.scale.count(rate, 20), 1 if trips else 0)
    return one


def by_size(session, kind, figures):
    for place in session.places.values():
        scale = session.scale.name if session.only is None else "targets"
        sizes = SIZES[kind].get(scale, SIZES[kind]["full"])
        if place.key != "two" and "two" in session.places:
            sizes = (64,) if kind == "pingpong" else (65536,)
            sizes = () if session.scale.short and place.key == "free" else sizes
        servers = Servers(session, place, [session.tool("message"), "serve", session.host,
                                           "{port}"])
        others = [arm for arm in session.foreign
                  if place.key == "two" and getattr(arm, "latency" if kind == "pingpong"
                                                    else "bandwidth")]
        for size in sizes:
            one = either(session, own(session, servers, place, kind, size), place, kind, size)
            beside = others if size == sizes[0] or session.scale.whole else []
            session.compare(named(size), place.title, figures, one, [*session.arms, *beside], size)
        session.ends.stop()


def latency(session):
    by_size(session, "pingpong", LATENCY)


def bandwidth(session):
    by_size(session, "stream", BANDWIDTH)


# --- at a pace --------------------------------------------------------------------------------

PACED = {"oneway": "one way", "ask": "ask and answer"}


def steady(session):
    """The processor time of both ends at 1,000 messages a second."""
    place = session.places.get("two") or session.places["one"]
    figures = [Figure("share", "CPU of both ends", "% of a core", LESS)]
    servers = Servers(session, place, [session.tool("message"), "serve", session.host, "{port}"])
    seconds = max(session.scale.seconds * 2, 0.1)
    for kind, title in PACED.items():
        def one(arm, kind=kind):
            found = json.loads(session.ends.client(arm, place, [
                session.tool("message"), kind, session.host, servers.of(arm), 64, seconds]).text)
            return {"share": (found["cpu_client"] + found["cpu_server"]) / found["seconds"] * 100}
        session.compare(title, place.title, figures, one)



# --- the native API ---------------------------------------------------------------------------


def native_run(session, kind, size, place):
    """`warpsock bench` takes turns itself; of our arms it has two."""
    done = session.ends.client(None, place, [
        session.ends.warpsock, "bench", kind, "--json", "--size", size, "--seconds",
        session.scale.seconds, "--rounds", session.scale.rounds, "--cpus",
        f"{place.server[0]},{place.client[0]}"], own_cpus=True)
    return json.loads(done.text)


def native(session):
    """RDMA Writes and Reads against the same bytes over TCP, and those of UCX."""
    place = session.places.get("two") or session.places["one"]
    mine = [arm for arm in session.arms if arm.key in ("tcp", "ddp")]
    ucx_arms = [arm for arm in session.foreign if arm.program == "ucx_perftest"]
    strikes(session, place, mine, ucx_arms)
    figure = Figure("rate", "", "MB/s", MORE)
    for kind in ("rdma-write", "rdma-read"):
        for size in (1 << 20,) if session.scale.short else (65536, 1 << 20):
            found = {}

            def own_rate(arm, kind=kind, size=size, found=found):
                if not found:
                    found.update(native_run(session, kind, size, place))
                return {"rate": found[arm.key]["runs"].pop(0)}

            def one(arm, size=size, own_rate=own_rate):
                if not isinstance(arm, Foreign):
                    return own_rate(arm)
                rate = UCX_GETS if arm.bandwidth == UCX_GET else 1.5e9 / size
                found = ucx(session, place, arm.bandwidth, size, session.scale.count(rate, 20), 0)
                return {"rate": found["mb_s"]}
            others = ucx_arms if size == 1 << 20 else []
            session.compare(f"{kind}, {named(size)}", place.title, [figure], one,
                            [*mine, *others])


def strikes(session, place, mine, others):
    """A Write of 64 B there and one back, between ends that look at their memory all the time."""
    servers = Servers(session, place, [session.tool("message"), "serve", session.host, "{port}"])
    plain = own(session, servers, place, "pingpong", 64)

    def one(arm):
        if isinstance(arm, Foreign):
            return ucx(session, place, arm.latency, 64, session.scale.count(20000), 1)
        return plain(arm) if arm is BASE else {"us": strikes_run(session, place)}
    figure = Figure("us", "round trip", "us", LESS)
    session.compare("Write, 64 B", place.title, [figure], one,
                    [*mine, *(arm for arm in others if arm.key == "ucx-tag")], 64)
    session.ends.stop()


def strikes_run(session, place):
    """Microseconds of a round trip; without the launcher, which the native API has no need of."""
    port = free_port()
    tool = session.tool("native")
    server = session.ends.serve(None, place, [tool, "serve", "pingpong", session.host, port, 1, 64],
                                port)
    found = json.loads(session.ends.client(None, place, [
        tool, "pingpong", session.host, port, 1, 64, session.scale.seconds, server.pid]).text)
    session.ends.end(server)
    return found["seconds"] / found["requests"] * 1e6
