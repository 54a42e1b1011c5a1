# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""sshd: ssh with a key, commands and a shell, scp and sftp; its sandbox and chroot as they are."""
import os
import re
import subprocess

from play import MIB

SSHD = "/usr/sbin/sshd"
NEEDS = (SSHD, "ssh", "scp", "sftp", "ssh-keygen")
VERSION = ("ssh", "-V")
SERVED = {"PEER_NOT_MPA", "GRACE_EXPIRED"}  # both ends speak at once
SIZE = 20 * MIB
SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {dir}/host
AuthorizedKeysFile {dir}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
Subsystem sftp {sftp}
LogLevel VERBOSE
"""
CLIENT = """
Host *
	Port {port}
	IdentityFile {dir}/user
	IdentitiesOnly yes
	UserKnownHostsFile {dir}/known
	BatchMode yes
	LogLevel ERROR
"""
SHELL = """echo {marker}
for i in 1 2 3; do echo "line $i"; done
exit 7
"""


def keys(play, port):
    """The host's and the user's, made for this run; the client knows the host by its key."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", play.dir / name],
                       check=True, timeout=60)
    known = (play.dir / "host.pub").read_text()
    door = play.doors[port]
    (play.dir / "known").write_text(f"[127.0.0.1]:{door} {known}")
    sftp = "/usr/lib/openssh/sftp-server"
    (play.dir / "sshd_config").write_text(SERVER.format(port=port, dir=play.dir, sftp=sftp))
    (play.dir / "ssh_config").write_text(CLIENT.format(port=door, dir=play.dir))
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)


def commands(play, ssh):
    problems = play.client("command", [*ssh, f"echo {play.marker} as $(id -un)"])
    play.case("a command", problems + play.says("command", f"{play.marker} as root\n"))
    (play.dir / "words").write_text(SHELL.format(marker=play.marker))
    with open(play.dir / "words", "rb") as file:
        problems = play.client("shell", [*ssh, "sh -s"], stdin=file, statuses=(7,))
    play.case("a shell, and its status", problems + play.says(
        "shell", f"{play.marker}\nline 1\nline 2\nline 3\n"))
    with open(play.dir / "words", "rb") as file:
        problems = play.client("terminal", [*ssh, "-tt", "tty; stty size; exit 3"], stdin=file,
                               statuses=(3,))
    play.case("a terminal", problems + play.says("terminal", "/dev/pts/"))


def files(play, options):
    play.blob("sent", play.some(SIZE))
    for name, more in (("scp", []), ("scp-rcp", ["-O"])):
        problems = play.client(f"{name}-up", ["scp", "-q", *more, *options, play.dir / "sent",
                                              f"127.0.0.1:{play.dir}/{name}.up"])
        problems += play.client(f"{name}-down", ["scp", "-q", *more, *options,
                                                 f"127.0.0.1:{play.dir}/{name}.up",
                                                 play.dir / f"{name}.down"])
        play.case(f"a file there and back, {' '.join(['scp', *more])}",
                  problems + play.same("sent", f"{name}.up") + play.same("sent", f"{name}.down"))
    (play.dir / "batch").write_text(f"get {play.dir}/sent {play.dir}/sftp.down\n")
    problems = play.client("sftp", ["sftp", "-q", *options, "-b", play.dir / "batch", "127.0.0.1"])
    play.case("a file by sftp", problems + play.same("sent", "sftp.down"))


def logged(play):
    """Each connection was let in, and none of its processes was killed."""
    said = play.text("sshd", "err")
    problems = [] if said.count("Accepted publickey for root") == 8 else ["not 8 were accepted"]
    if play.way.name == "asking":  # whose first connection is reset when sshd has answered
        said = said.replace("send_error:", "")
    problems += re.findall(r".*(?:signal \d+|fatal|error:).*", said.replace("signal 15", ""))
    play.case("its log has nothing to complain of", problems)


def play(play):
    port = play.port()
    keys(play, port)
    options = ["-F", play.dir / "ssh_config"]
    server = play.serve("sshd", [SSHD, "-D", "-e", "-f", play.dir / "sshd_config"], port)
    with play.wire("sshd", port, marker_of=lambda _: b"SSH-2.0-OpenSSH_"):
        commands(play, ["ssh", *options, "127.0.0.1"])
    files(play, options)
    play.stop("sshd", server)
    logged(play)
