# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""rsync: a folder down from a daemon, changed, and up again; each connection is a process."""
import random

NEEDS = ("rsync",)
VERSION = ("rsync", "--version")
SERVED = {"PEER_NOT_MPA", "GRACE_EXPIRED"}  # both ends speak at once
CONFIG = """
use chroot = no
log file = {dir}/daemon.log
[module]
path = {dir}/there
read only = no
uid = root
gid = root
"""
FILES = 60


def differences(play, one, other):
    names = {path.name for folder in (one, other) for path in (play.dir / folder).iterdir()}
    return [problem for name in sorted(names)
            for problem in play.same(f"{one}/{name}", f"{other}/{name}")]


def play(play):
    port = play.port()
    for folder in ("there", "here"):
        (play.dir / folder).mkdir()
    for number in range(FILES):
        play.blob(f"there/file{number}", 997 * number * number)
    (play.dir / "there" / play.marker).write_text(play.marker * 10)
    conf = play.dir / "rsync.conf"
    conf.write_text(CONFIG.format(dir=play.dir))
    server = play.serve("daemon", ["rsync", "--daemon", "--no-detach", "--address", "127.0.0.1",
                                   "--port", port, "--config", conf], port)
    url = f"rsync://127.0.0.1:{port}/module/"
    with play.wire("rsync", port):
        problems = play.client("one", ["rsync", f"{url}{play.marker}", "here/"])
    play.case("one file", problems)
    problems = play.client("down", ["rsync", "-a", url, "here/"])
    play.case("a folder down", problems + differences(play, "there", "here"))
    with open(play.dir / "here" / f"file{FILES - 1}", "r+b") as file:
        for _ in range(20):
            file.seek(random.randrange(997 * (FILES - 1) ** 2 - 10))
            file.write(b"changed")
    (play.dir / "here" / "file1").unlink()
    problems = play.client("up", ["rsync", "-a", "--checksum", "--delete", "here/", url])
    play.case("its changes up", problems + differences(play, "there", "here"))
    play.stop("daemon", server)
    play.balance("daemon", ["one", "down", "up"])
