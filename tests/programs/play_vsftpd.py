# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""vsftpd: files by curl; a session is three processes of three users, one that may open nothing.

An FTP connection of a file is accepted late: a client of a passive server connects before it says
what it wants, upon which the server accepts; a server that connects waits for that before it says
150, upon which curl accepts. A client in mode on would wait for an answer that the server cannot
give yet, and one in mode auto asks in vain, so a rule has these as plain TCP, also where the server
is one process (one_process_model). By default it would not have them on DDP either: the process of
another user, to which they are passed, has no way to their state. In their chroots they can write
no report: that the server speaks DDP is in its clients'.
"""
import shutil

from play import MIB

NEEDS = ("vsftpd", "curl")
VERSION = ("sh", "-c", "vsftpd -v 0>&1")
ANSWERED = {"GRACE_EXPIRED", "PEER_NOT_MPA"}  # a client that listens for the file
ALSO = {"both": {"RULE_TCP"}, "resplit": {"RULE_TCP"}, "client": ANSWERED,
        "asking": {"RULE_TCP"} | ANSWERED}
UNDONE = {"joins"}  # on its control connections each waits for the other; files go past the proxy
CONFIG = """
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
anon_root={dir}/root
anon_upload_enable=YES
anon_other_write_enable=YES
write_enable=YES
no_anon_password=YES
anon_umask=022
port_enable=YES
pasv_enable=YES
pasv_min_port={passive}
pasv_max_port={passive}
secure_chroot_dir={dir}/empty
xferlog_enable=NO
"""
SIZE = 20 * MIB


def play(play):
    port, passive, active = play.port(), play.port(), play.port()
    if play.way.on or play.way.name == "asking":
        play.rules = [f"tcp * * 127.0.0.1:{data}" for data in (passive, active)]
    how = {"leg": "ruled" if play.way.on else "plain"}
    play.dir.chmod(0o755)
    for name in ("empty", "root", "root/up"):
        (play.dir / name).mkdir()
    shutil.chown(play.dir / "root/up", "ftp")
    play.blob("root/big", play.some(SIZE))
    (play.dir / "root" / play.marker).write_text(play.marker * 30)
    conf = play.dir / "vsftpd.conf"
    conf.write_text(CONFIG.format(dir=play.dir, port=port, passive=passive))
    server = play.serve("vsftpd", ["vsftpd", conf], port, **how)
    how["own"] = (passive, active)
    url = f"ftp://127.0.0.1:{port}/"
    with play.wire("vsftpd", port):
        problems = play.client("page", ["curl", "-sSf", "-o", "page", f"{url}{play.marker}"], **how)
    play.case("a page", problems + play.same("page", f"root/{play.marker}"))
    for name, words in (("passive", ()), ("active", ("--ftp-port", f"127.0.0.1:{active}"))):
        curl = ["curl", "-sSf", *words]
        problems = play.client(f"get-{name}", [*curl, "-o", "got", f"{url}big"], **how)
        play.case(f"{name}: a large file", problems + play.same("got", "root/big"))
        problems = play.client(f"put-{name}", [*curl, "-T", "root/big", f"{url}up/{name}"], **how)
        play.case(f"{name}: and up", problems + play.same("root/big", f"root/up/{name}"))
    server.terminate()
    status = play.end(server)
    play.case("vsftpd ended", [] if status == -15 else [f"status {status}", *play.both("vsftpd")])
