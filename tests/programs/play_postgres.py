# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""postgres: psql, COPY in both directions, NOTIFY, and pgbench with its consistency checked."""
import signal
import subprocess
from pathlib import Path

from play import until

BIN = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql/bin"))
NEEDS = (str(BIN / "postgres"), "psql", "pgbench")
VERSION = (str(BIN / "postgres"), "--version")
ASKED = {"PEER_CLOSED"}
USER = "postgres"  # it does not run as root


def sql(play, name, port, *statements, **kwargs):
    args = [part for statement in statements for part in ("-c", statement)]
    return play.client(name, ["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", port, "-U", USER,
                              "-v", "ON_ERROR_STOP=1", *args, USER], **kwargs)


def copy(play, port):
    """Rows in and out again, and the text compared."""
    rows = "".join(f"{n}\t{play.marker} {n * n}\n" for n in range(play.some(50000)))
    (play.dir / "rows").write_text(rows)
    problems = sql(play, "copy-in", port, "CREATE TABLE t (n int, s text)",
                   f"\\copy t from '{play.dir}/rows'")
    problems += sql(play, "copy-out", port, f"\\copy (table t order by n) to '{play.dir}/back'")
    play.case("COPY in and out", problems + play.same("rows", "back"))


def pgbench(play, port):
    args = ["-h", "127.0.0.1", "-p", port, "-U", USER]
    play.case("pgbench -i", play.client("init", ["pgbench", "-i", "-q", *args, USER]))
    each = play.some(100)
    problems = play.client("pgbench", ["pgbench", "-c", "10", "-j", "2", "-t", each, *args, USER])
    play.case("pgbench -c 10", problems + play.says(
        "pgbench", f"number of transactions actually processed: {10 * each}/{10 * each}"))
    problems = sql(play, "sums", port, "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = "
                   "(SELECT sum(delta) FROM pgbench_history), count(*) FROM pgbench_history")
    play.case("its sums agree", problems + play.says("sums", f"t|{10 * each}\n"))


def play(play):
    port, data = play.port(), play.dir / "data"
    play.dir.chmod(0o777)
    subprocess.run([BIN / "initdb", "-D", data, "-A", "trust", "--no-sync", "-U", USER], check=True,
                   timeout=60, user=USER, cwd=play.dir, stdout=subprocess.DEVNULL)
    server = play.serve("server", ["postgres", "-D", data, "-c", "listen_addresses=127.0.0.1",
                                   "-p", port, "-k", play.dir, "-c", "fsync=off"], port, user=USER,
                        env={"PATH": f"{BIN}:/usr/bin:/bin"})
    # It listens before it serves: who comes meanwhile is refused
    until(lambda: "ready to accept connections" in play.text("server", "err"))
    with play.wire("postgres", port):
        problems = sql(play, "select", port, f"SELECT '{play.marker}'")
        play.case("psql", problems + play.says("select", f"{play.marker}\n"))
    problems = sql(play, "notify", port, "LISTEN c", f"NOTIFY c, '{play.marker}'")
    play.case("NOTIFY", problems + play.says(
        "notify", f'Asynchronous notification "c" with payload "{play.marker}"'))
    copy(play, port)
    pgbench(play, port)
    play.stop("server", server, signal.SIGINT)
