#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that waits in recv(), and a server that replies to its Request and is silent then.

    overlooked.py WARPSOCK

The server may have overlooked the client's first words, as siw does: the client goes on with
Writes of no octets, and sleeps in between.
"""
import os
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "captures")]
import decode  # noqa: E402
import tap  # noqa: E402
from launch import Stage  # noqa: E402
from reasons import CONN_DATA, Raw  # noqa: E402

WRITE_RETRIES = 6  # rnic/write_retry.h
# All retry Writes are due in 20 ms * (1 + 2 + 4 + ... + 32), in which it works as long as a start
# takes
WORK = 0.3
SECONDS = 2.5
CLIENT = """
import signal, socket, struct, sys, time
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def ring(*_):
    raise TimeoutError
before = time.process_time()
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, SECONDS)
try:
    print("got", CALL)
except TimeoutError:
    print("nothing", time.process_time() - before, flush=True)
"""
CALLS = {"recv": "sock.recv(100)", "recv of all": "sock.recv(100, socket.MSG_WAITALL)",
         "peek": "sock.recv(100, socket.MSG_PEEK)",
         "recv with a time-out": "(sock.settimeout(30), sock.recv(100))",
         "recv with SO_RCVTIMEO": "(sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, "
                                  "struct.pack('ll', 30, 0)), sock.recv(100))"}


@dataclass
class Heard:
    """One direction of a connection that nobody captured."""
    octets: bytes

    def packet_of(self, _):
        return 0


def is_empty_write(ulpdu):
    return ulpdu[:2] == b"\xc1\x40" and len(ulpdu) == 14


def waits(warpsock, call):
    server = Raw(CONN_DATA)
    program = CLIENT.replace("SECONDS", str(SECONDS)).replace("CALL", call)
    with Stage(warpsock) as stage:
        status = stage.run("client", [sys.executable, "-c", program, server.port],
                           rules=[f"ddp client * 127.0.0.1:{server.port}"])
        said = stage.text("client").split()
        problems = [] if status == 0 and said[:1] == ["nothing"] else \
            [f"status {status}: {said} {stage.text('client', 'err')}"]
    server.listener.close()
    if not problems and float(said[1]) > WORK:
        problems.append(f"it worked {said[1]} s while nothing came")
    fpdus = decode.FpduReader(Heard(server.heard), 0, False, True, problems).all()
    writes = sum(is_empty_write(fpdu.ulpdu) for fpdu in fpdus)
    if writes != WRITE_RETRIES:
        problems.append(f"{writes} Writes of no octets, not {WRITE_RETRIES}")
    return problems


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    for name, call in CALLS.items():
        writer.case(name, waits(warpsock, call))
    writer.finish()


if __name__ == "__main__":
    main()
