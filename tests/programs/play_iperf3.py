# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""iperf3: one stream, the other way, both ways, four streams, and small blocks."""
import json

NEEDS = ("iperf3",)
VERSION = ("iperf3", "--version")
NOT = {"asking": "its server takes a Request for a client's cookie, and is busy with it"}
RUNS = {"one": (), "reverse": ("-R",), "both": ("--bidir",), "four": ("-P", "4"),
        "four-reverse": ("-P", "4", "-R"), "small": ("-l", "1000", "-n", "20M")}


def summary(play, name):
    """What is wrong with what the client says of the run."""
    try:
        found = json.loads(play.text(name))
    except ValueError:
        return [f"{name} prints no JSON", *play.both(name)]
    if "error" in found:
        return [found["error"]]
    sent, got = (found["end"][key]["bytes"] for key in ("sum_sent", "sum_received"))
    return [] if sent > 1 << 20 and got else [f"{sent} octets sent, {got} received"]


def length(play, args):
    if "-n" in args:
        return []
    return ["-t", "1"] if play.way.whole else ["-n", "20M"]


def serve(play, name):
    """A server for one run."""
    port = play.port()
    return port, play.serve(f"{name}-server", ["iperf3", "-s", "-1", "-J", "-B", "127.0.0.1", "-p",
                                               port], port)


def run(play, name, *args):
    port, server = serve(play, name)
    problems = play.client(name, ["iperf3", "-c", "127.0.0.1", "-p", port, "-J",
                                  *length(play, args), *args])
    return problems + play.account(f"{name}-server", server) + summary(play, name)


def titled(play):
    """The server has the marker."""
    port, server = serve(play, "titled")
    with play.wire("iperf3", port):
        problems = play.client("titled", ["iperf3", "-c", "127.0.0.1", "-p", port, "-J", "-n",
                                          "4M", "--extra-data", play.marker])
        problems += play.account("titled-server", server) + summary(play, "titled")
    play.case("iperf3 -n 4M", problems)
    play.case("the server was told of the marker", play.says("titled-server", play.marker))


def play(play):
    titled(play)
    for name, args in RUNS.items():
        play.case(f"iperf3 {' '.join(args)}".strip(), run(play, name, *args))
