#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-rping with itself over loopback: roles, options, sizes, many at once, and peers that fail.

    rping.py WARP-RPING [ADDRESS PROVIDER]    what a device can do, too, at its address
"""
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from example import Server, finish, run, start  # noqa: E402

RPING = sys.argv[1]
HOST = sys.argv[2] if sys.argv[2:] else "127.0.0.1"
PROVIDER = ("--provider", sys.argv[3]) if sys.argv[2:] else ()


def text(number, size):
    """What ping number looks like."""
    head = f"rdma-ping-{number}: "
    letters = "".join(chr(65 + (number + i) % 58) for i in range(size))
    return (head + letters)[:size - 1]


def server(*options, host=HOST):
    return Server(RPING, "-s", "-a", host, "-p", "0", "-t", "10", *PROVIDER, *options)


def client(port, *options, host=HOST):
    return run(RPING, "-c", "-a", host, "-p", port, "-t", "10", *PROVIDER, *options)


def once(server_options=(), client_options=("-C", "3", "-V"), host=HOST):
    """One server and one client: what is wrong with how they end."""
    with server(*server_options, host=host) as s:
        c = client(s.port, *client_options, host=host)
        return [f"client: {p}" for p in c.problems()] + [f"server: {p}" for p in
                                                         s.wait().problems()]


# --- cases --------------------------------------------------------------------------------------


def command_line(writer):
    writer.case("--help", run(RPING, "--help").problems())
    writer.case("--version", run(RPING, "--version").problems())
    for options, words in (
            ((), "one of -s and -c"), (("-s", "-c"), "one of -s and -c"), (("-c",), "needs -a"),
            (("-c", "-a", HOST, "-P"), "-P is for"), (("-s", "-I", HOST), "-I is for"),
            (("-s", "-S", "25"), "25 is no value"), (("-s", "-S", "65536"), "no value"),
            (("-s", "-p", "65536"), "no value"), (("-s", "-C", "-1"), "no value"),
            (("-s", "-t", "0"), "no value"), (("-s", "--rtr", "x"), "no value"),
            (("-s", "-a", "no such host."), "no such host"), (("-s", "-x"), "x"),
            (("-s", "word"), "what is word")):
        writer.case(f"refused: {' '.join(options) or 'nothing'}",
                    run(RPING, *options).problems(2, "", words))
    writer.case("refused: a provider that is none",
                run(RPING, "-s", "--provider", "none").problems(1, "", "No such device"))


def output(writer):
    with server("-v") as s:
        c = client(s.port, "-C", "3", "-v", "-S", "40")
        want = "".join(f"ping data: {text(i, 40)}\n" for i in range(3))
        writer.case("the client shows what came back", c.problems(0, want))
        want = "".join(f"server ping data: {text(i, 40)}\n" for i in range(3))
        writer.case("the server shows what it has read", s.wait().problems(0, want))


def sizes(writer):
    for size in ("26", "27", "64", "1000", "65535"):
        writer.case(f"size {size}", once(client_options=("-C", "20", "-V", "-S", size)))
    writer.case("five hundred pings", once(client_options=("-C", "500", "-V")))


def options(writer):
    for option in (("--no-crc",), ("--markers",), ("--rev1",), ("--no-p2p",), ("--rtr", "read"),
                   ("--rtr", "write"), ("--rtr", "read", "--rtr", "write"), ("-q",), ("-d",)):
        name = " ".join(option)
        writer.case(f"client {name}", once(client_options=("-C", "3", "-V", *option)))
        writer.case(f"server {name}", once(option))
    rtr = ("--rtr", "send")
    writer.case("both --rtr send", once(rtr, ("-C", "3", "-V", *rtr)))
    both = ("--no-crc", "--markers")
    writer.case("both --no-crc --markers", once(both, ("-C", "30", "-V", "-S", "5000", *both)))
    writer.case("from an address of its own",
                once(client_options=("-C", "3", "-V", "-I", "127.0.0.2")))
    if socket.has_ipv6 and Path("/proc/net/if_inet6").exists():
        writer.case("IPv6", once(host="::1"))
    else:
        writer.skip("IPv6", "this machine has no IPv6")


def many(writer):
    with server("-P") as s:
        clients = [start(RPING, "-c", "-a", HOST, "-p", s.port, "-C", "50", "-V", "-S",
                         str(100 + 1000 * i), *PROVIDER) for i in range(8)]
        problems = [p for c in clients for p in finish(c).problems()]
        writer.case("eight clients at once", problems)
        problems = [p for _ in range(10) for p in client(s.port, "-C", "1").problems()]
        writer.case("ten clients one after the other", problems)
        writer.case("a persistent server ends by a signal", s.stop().problems())


def too_long(writer):
    with server("-S", "100") as s:
        c = client(s.port, "-C", "1", "-S", "101")
        writer.case("a ping too long for the server: client", c.problems(1))
        writer.case("a ping too long for the server: server",
                    s.wait().problems(1, None, "too long"))


def failures(writer):
    with socket.socket() as free:
        free.bind((HOST, 0))
        port = str(free.getsockname()[1])
        writer.case("nobody listens", client(port).problems(1, "", "refused"))
    with server("-P") as s:
        doomed = start(RPING, "-c", "-a", HOST, "-p", s.port)
        time.sleep(0.3)
        doomed.kill()
        doomed.communicate()
        writer.case("a client that dies does not disturb the next",
                    client(s.port, "-C", "3", "-V").problems())
        with socket.create_connection((HOST, int(s.port))) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n" + b" " * 40)
            plain.settimeout(20)
            problems = [] if no_answer(plain) else ["it was answered"]
        writer.case("a peer that speaks something else is disconnected", problems)
        writer.case("and does not disturb the next", client(s.port, "-C", "3", "-V").problems())
        writer.case("the server still ends in order", s.stop().problems())


def no_answer(plain):
    try:
        return plain.recv(1) == b""
    except ConnectionResetError:
        return True


def silent_peer(writer):
    """A listener that accepts TCP and says nothing, or goes away."""
    with socket.create_server((HOST, 0)) as listener:
        port = str(listener.getsockname()[1])
        began = time.monotonic()
        done = run(RPING, "-c", "-a", HOST, "-p", port, "-t", "2")
        took = time.monotonic() - began
        writer.case("a peer that says nothing", done.problems(1, "", "timed out")
                    + ([] if 1 < took < 8 else [f"it took {took:.1f} s"]))

        def hang_up():
            connection, _ = listener.accept()
            connection.recv(1)
            connection.close()

        listener.accept()[0].close()
        thread = threading.Thread(target=hang_up)
        thread.start()
        writer.case("a peer that hangs up", client(port).problems(1, ""))
        thread.join()


def main():
    writer = tap.Writer()
    for cases in (output, sizes, many, too_long):
        cases(writer)
    # no device has these options, and faults of start-up are siw's affair
    for cases in () if PROVIDER else (command_line, options, failures, silent_peer):
        cases(writer)
    writer.finish()


if __name__ == "__main__":
    main()
