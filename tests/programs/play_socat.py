# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""socat: cat behind a connection, and a relay between two; each connection is a process."""

NEEDS = ("socat",)
VERSION = ("socat", "-V")
SIZE = 20_000_000


def through(play, name, port, leg):
    """What is sent to an echo, and half-closed, comes back."""
    with open(play.dir / "sent", "rb") as file:
        problems = play.client(name, ["socat", "-t", "20", "-", f"TCP:127.0.0.1:{port}"],
                               stdin=file, leg=leg)
    (play.dir / f"{name}.back").write_bytes((play.dir / f"{name}.out").read_bytes())
    return problems + play.same("sent", f"{name}.back")


def play(play):
    echo, relay = play.port(), play.port()
    listen = "bind=127.0.0.1,reuseaddr,fork"
    with open(play.dir / "sent", "wb") as file:
        file.write(play.marker.encode() * 100)
    servers = {"echo": play.serve("echo", ["socat", f"TCP-LISTEN:{echo},{listen}", "EXEC:cat"],
                                  echo, leg="both"),
               "relay": play.serve("relay", ["socat", f"TCP-LISTEN:{relay},{listen}",
                                             f"TCP:127.0.0.1:{echo}"], relay, role="middle",
                                   leg="both")}
    ways = (("direct", echo, "plain"), ("relayed", relay, "ddp"))
    with play.wire("socat", echo, relay):
        for name, port, leg in ways:
            play.case(f"socat to cat, {name}", through(play, name, port, leg))
    play.blob("sent", play.some(SIZE))
    for name, port, leg in ways:
        play.case(f"much to cat, {name}", through(play, f"much-{name}", port, leg))
    for name, command in (("nofork", "EXEC:cat,nofork"), ("system", "SYSTEM:cat")):
        port = play.port()
        servers[name] = play.serve(name, ["socat", f"TCP-LISTEN:{port},{listen}", command], port)
        play.case(f"much to {command}", through(play, f"much-{name}", port, "plain"))
    for name, proc in servers.items():
        play.stop(name, proc, statuses=(0, 143))
