# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""processes: Python's servers that fork for a connection, or send it to a worker by SCM_RIGHTS."""
from play import HERE

NEEDS = ("python3", "socat")
VERSION = ("python3", "--version")
ASKED = {"PEER_NOT_MPA", "PEER_CLOSED"}
SIZE = 5_000_000


def play(play):
    for how in ("fork", "pass", "spawn"):
        port = play.port()
        server = play.serve(how, ["python3", HERE / "py_pass.py", how, port], port)
        (play.dir / "sent").write_text(play.marker * 100)
        with play.wire(how, port):
            play.case(f"{how}: a few octets", play.echoed(f"few-{how}", port))
        play.blob("sent", play.some(SIZE))
        for number in range(3):
            play.case(f"{how}: many, {number}", play.echoed(f"many-{how}{number}", port))
        play.stop(how, server)
