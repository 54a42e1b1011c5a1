# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""socat: a pipe through a connection, and a relay between two, each connection a process."""

NEEDS = ("socat",)
VERSION = ("socat", "-V")
SIZE = 20_000_000


def through(play, name, port):
    """What is sent to an echo, and half-closed, comes back."""
    with open(play.dir / "sent", "rb") as file:
        problems = play.client(name, ["socat", "-t", "20", "-", f"TCP:127.0.0.1:{port}"],
                               stdin=file)
    (play.dir / f"{name}.back").write_bytes((play.dir / f"{name}.out").read_bytes())
    return problems + play.same("sent", f"{name}.back")


def play(play):
    echo, relay = play.port(), play.port()
    listen = "bind=127.0.0.1,reuseaddr,fork"
    with open(play.dir / "sent", "wb") as file:
        file.write(play.marker.encode() * 100)
    servers = {"echo": play.serve("echo", ["socat", f"TCP-LISTEN:{echo},{listen}", "PIPE"], echo),
               "relay": play.serve("relay", ["socat", f"TCP-LISTEN:{relay},{listen}",
                                             f"TCP:127.0.0.1:{echo}"], relay)}
    with play.wire("socat", echo, relay):
        for name, port in (("direct", echo), ("relayed", relay)):
            play.case(f"socat to an echo, {name}", through(play, name, port))
    play.blob("sent", SIZE)
    play.case("20 MB to an echo", through(play, "large", echo))
    play.case("20 MB through a relay", through(play, "large-relayed", relay))
    for name, proc in servers.items():
        play.stop(name, proc, statuses=(0, 143))
