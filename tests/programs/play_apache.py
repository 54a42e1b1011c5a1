# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""apache: its three ways to serve, by events, threads and processes, with curl and ab."""
from play import MIB

NEEDS = ("apache2", "curl", "ab")
VERSION = ("apache2", "-v")
SERVED = {"PEER_NOT_MPA", "PEER_CLOSED"}  # ab leaves a connection that it has begun
ASKED = {"PROBE_TIMEOUT", "PEER_NOT_MPA"}  # it answers once there is an end of line
CONFIG = """
ServerRoot /usr/lib/apache2
LoadModule mpm_{way}_module /usr/lib/apache2/modules/mod_mpm_{way}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
Listen 127.0.0.1:{port}
ServerName localhost
User nobody
Group nogroup
PidFile {dir}/{way}.pid
ErrorLog {dir}/{way}.error
DefaultRuntimeDir {dir}
DocumentRoot {dir}/files
<Directory {dir}/files>
Require all granted
</Directory>
"""


def serve(play, way):
    port = play.port()
    (play.dir / f"{way}.conf").write_text(CONFIG.format(dir=play.dir, way=way, port=port))
    # At its end it sends a signal to its whole process group
    # and prefork calls itself up
    server = play.serve(way, ["apache2", "-D", "FOREGROUND", "-f", play.dir / f"{way}.conf"], port,
                        leg="mostly", start_new_session=True)
    if play.way.server:  # its children are another user's, who write to the same report
        report = play.dir / f"{way}.json"
        report.touch()
        report.chmod(0o666)
    return port, server


def play(play):
    files = play.dir / "files"
    files.mkdir()
    play.dir.chmod(0o777)
    play.blob("files/big", play.some(30) * MIB)
    (files / "page").write_text(play.marker * 20)
    for way in ("event", "worker", "prefork"):
        port, server = serve(play, way)
        url = f"http://127.0.0.1:{port}/"
        with play.wire(way, port):
            problems = play.client(f"page-{way}", ["curl", "-sSf", "-o", "got-page", f"{url}page"])
        play.case(f"{way}: a page", problems + play.same("files/page", "got-page"))
        problems = play.client(f"big-{way}", ["curl", "-sSf", "-o", f"got-{way}", f"{url}big"])
        play.case(f"{way}: a large file", problems + play.same("files/big", f"got-{way}"))
        for kept in ((), ("-k",)):
            name = "".join(("ab", *kept, "-", way))
            problems = play.client(name, ["ab", "-q", *kept, "-n", play.some(1000), "-c", "20",
                                          f"{url}page"])
            play.case(name, problems + play.says(name, "Failed requests:        0"))
        play.stop(way, server)
