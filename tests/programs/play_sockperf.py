# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sockperf: ping-pong, messages under load, and throughput, over TCP with the data compared."""
import signal


NEEDS = ("sockperf",)
VERSION = ("sockperf", "--version")
ASKED = {"PEER_CLOSED"}
HEADER, MESSAGE = 14, 120  # octets of sockperf's header, and of a message with it
KINDS = {"": (("ping-pong", "-m", "64"), ("throughput", "-m", "1400")),
         "--nonblocked": (("under-load", "--mps", "5000"),)}


def body(sides):
    """Its random octets, which are the same in each message of a run, there and back."""
    size = MESSAGE.to_bytes(4, "big")
    at = sides[0].payload.find(size) + len(size)
    sent = bytes(sides[0].payload[at:at + MESSAGE - HEADER])
    return sent if sent in sides[1].payload else b""


def client(play, name, port, kind, *args):
    problems = play.client(name, ["sockperf", kind, "--tcp", "-i", "127.0.0.1", "-p", port, "-t",
                                  "1", *args])
    return problems + play.says(name, "Summary:")


def play(play):
    for how, kinds in list(KINDS.items())[:2 if play.way.whole else 1]:
        port = play.port()
        name = f"server{how}"
        server = play.serve(name, ["sockperf", "server", "--tcp", "-i", "127.0.0.1", "-p", port,
                                   *filter(None, [how])], port)
        with play.wire("sockperf", port, marker_of=body):
            problems = client(play, f"whole{how}", port, "ping-pong", "-m", str(MESSAGE), "--mps",
                              "200", "--data-integrity")
        play.case("ping-pong --data-integrity", problems)
        for number, args in enumerate(kinds if play.way.whole else kinds[1:]):
            play.case(args[0], client(play, f"client{number}{how}", port, *args))
        play.stop(name, server, signal.SIGINT)
