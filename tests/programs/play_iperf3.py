# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""iperf3: one stream, the other way, both ways, four streams, and small blocks."""
import json


NEEDS = ("iperf3",)
VERSION = ("iperf3", "--version")
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


def run(play, name, *args):
    """A server for one run and its client, of which the server has the marker."""
    port = play.port()
    server = play.serve(f"{name}-server", ["iperf3", "-s", "-1", "-J", "-B", "127.0.0.1", "-p",
                                           port], port)
    problems = play.client(name, ["iperf3", "-c", "127.0.0.1", "-p", port, "-J",
                                  *(args if "-n" in args else ("-t", "1.5", *args))])
    problems += play.account(f"{name}-server", server) + summary(play, name)
    return problems


def titled(play):
    port = play.port()
    with play.wire("iperf3", port):
        server = play.serve("titled-server", ["iperf3", "-s", "-1", "-J", "-B", "127.0.0.1",
                                              "-p", port], port)
        problems = play.client("titled", ["iperf3", "-c", "127.0.0.1", "-p", port, "-J", "-n",
                                          "4M", "--extra-data", play.marker])
        problems += play.account("titled-server", server) + summary(play, "titled")
    play.case("iperf3 -n 4M", problems)
    play.case("the server was told of the marker", play.says("titled-server", play.marker))


def play(play):
    titled(play)
    for name, args in RUNS.items():
        play.case(f"iperf3 {' '.join(args)}".strip(), run(play, name, *args))
