# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""nginx: files, ranges, kept connections and uploads with curl, load with wrk and ab, a reload."""
import shutil
import signal

from play import MIB, until

NEEDS = ("nginx", "curl", "wrk", "ab")
VERSION = ("nginx", "-v")
BIG = 100 * MIB
SLOW = 20 * MIB
ROUND = 0x10000
CONFIG = """
daemon off; master_process {master}; worker_processes 2; user root; pid {dir}/nginx.pid;
error_log {dir}/error.log info;
events {{ worker_connections 512; {accept} }}
http {{
	access_log off; sendfile {sendfile}; client_max_body_size 0; keepalive_requests 1000000;
	client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	server {{
		listen 127.0.0.1:{port}; root {dir};
		location /up/ {{ dav_methods PUT; create_full_put_path on; }}
	}}
}}
"""


def start(play, name, port, **settings):
    conf = play.dir / f"{name}.conf"
    conf.write_text(CONFIG.format(dir=play.dir, port=port, **settings))
    return play.serve(name, ["nginx", "-p", play.dir, "-c", conf, "-e", play.dir / "error.log"],
                      port)


def fetch(play, name, url, *args):
    return play.client(name, ["curl", "-sSf", *args, url])


def small(play, url):
    """What the capture holds: a page with the marker, asked for by the marker's name."""
    (play.dir / play.marker).write_text(play.marker * 50)
    problems = fetch(play, "page", f"{url}{play.marker}", "-o", "page")
    play.case("curl fetches a page", problems + play.same(play.marker, "page"))
    text = [play.dir / "sent", play.dir / "up" / "sent"]
    text[0].write_text(play.marker * 7)
    problems = fetch(play, "put", f"{url}up/sent", "-T", text[0])
    play.case("curl sends one", problems + play.same(*text))


def large(play, url):
    problems = fetch(play, "get", f"{url}big", "-o", "got")
    play.case("curl fetches 100 MiB", problems + play.same("big", "got"))
    problems = fetch(play, "upload", f"{url}up/big", "-T", play.dir / "big")
    play.case("curl uploads 100 MiB", problems + play.same("big", "up/big"))


def ranges(play, url):
    """Pieces, over one connection, that are the file when put together."""
    cuts = [0, 1, 1000, ROUND, ROUND + 1, MIB]
    args = []
    for number, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        args += ["--next"] if number else []
        args += ["-sSf", "-r", f"{begin}-{end - 1}", "-o", f"piece{number}", f"{url}big"]
    problems = play.client("ranges", ["curl", *args])
    if play.report("ranges")["connections"]["software"] != 1:
        problems.append("not over one connection")
    pieces = b"".join((play.dir / f"piece{n}").read_bytes() for n in range(len(cuts) - 1))
    (play.dir / "pieces").write_bytes(pieces)
    (play.dir / "head").write_bytes((play.dir / "big").read_bytes()[:MIB])
    play.case("five ranges over one connection", problems + play.same("pieces", "head"))


def many(play, url):
    """Files of many sizes, eight connections at a time, and one after the other."""
    names = [f"file{n}" for n in range(24)]
    for number, name in enumerate(names):
        play.blob(name, 1 + 7919 * number * number)
    for name, how in (("parallel", ("-Z", "--parallel-max", "8", "--parallel-immediate")),
                      ("kept", ())):
        problems = play.client(name, ["curl", "-sSf", *how, "--create-dirs", "-o", f"{name}/#1",
                                      f"{url}{{{','.join(names)}}}"])
        for file in names:
            problems += play.same(file, f"{name}/{file}")
        play.case(f"curl fetches 24 files, {name}", problems)


def reload(play, server, url):
    """Who was accepted by the old workers gets the file to its end; the new ones accept."""
    slow = play.begin("slow", ["curl", "-sSf", "--limit-rate", "20M", "-r", f"0-{SLOW - 1}", "-o",
                               "slowly", f"{url}big"])
    until((play.dir / "slowly").exists)
    server.send_signal(signal.SIGHUP)
    until(lambda: "gracefully shutting down" in (play.dir / "error.log").read_text())
    problems = fetch(play, "new", f"{url}{play.marker}", "-o", "page") + play.same(play.marker,
                                                                                  "page")
    problems += play.account("slow", slow)
    with open(play.dir / "big", "rb") as file:
        (play.dir / "begin").write_bytes(file.read(SLOW))
    play.case("a new configuration while a file is fetched", problems + play.same(
        "begin", "slowly"))


def load(play, url):
    problems = play.client("wrk", ["wrk", "-t", "2", "-c", "50", "-d", "2s", f"{url}page"])
    if "Non-2xx" in play.text("wrk") or "Socket errors" in play.text("wrk"):
        problems += play.both("wrk")
    play.case("wrk with 50 connections", problems + play.says("wrk", "Requests/sec"))
    problems = play.client("ab", ["ab", "-q", "-n", "2000", "-c", "20", f"{url}page"])
    play.case("ab, a connection for each request", problems + play.says(
        "ab", "Complete requests:      2000") + play.says("ab", "Failed requests:        0"))
    problems = play.client("ab-kept", ["ab", "-q", "-k", "-n", "5000", "-c", "20", f"{url}page"])
    play.case("ab -k", problems + play.says("ab-kept", "Keep-Alive requests:    5000") +
              play.says("ab-kept", "Failed requests:        0"))


def play(play):
    play.blob("big", BIG)
    for name, settings in (
            ("workers", {"master": "on", "sendfile": "on", "accept": ""}),
            ("single", {"master": "off", "sendfile": "off", "accept": "multi_accept on;"})):
        port = play.port()
        url = f"http://127.0.0.1:{port}/"
        shutil.rmtree(play.dir / "up", ignore_errors=True)
        server = start(play, name, port, **settings)
        with play.wire(name, port):
            small(play, url)
        for part in (large, ranges, many, load):
            part(play, url)
        if settings["master"] == "on":
            reload(play, server, url)
        play.stop(name, server, signal.SIGQUIT)
