# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""nginx: files, ranges, kept connections and uploads with curl, load with wrk and ab, a reload."""
import shutil
import signal

from play import MIB, until

NEEDS = ("nginx", "curl", "wrk", "ab")
VERSION = ("nginx", "-v")
BIG = 500 * MIB
ROUND = 0x10000
SETTINGS = {"workers": {"master": "on", "sendfile": "on", "accept": ""},
            "single": {"master": "off", "sendfile": "off", "accept": "multi_accept on;"}}
CONFIG = """
daemon off; master_process {master}; worker_processes 4; user root; pid {dir}/nginx.pid;
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
    play.case("curl fetches a large file", problems + play.same("big", "got"))
    problems = fetch(play, "upload", f"{url}up/big", "-T", play.dir / "big")
    play.case("curl uploads it", problems + play.same("big", "up/big"))


def ranges(play, url):
    """Pieces, over one connection, that are the file when put together."""
    cuts = [0, 1, 1000, ROUND, ROUND + 1, MIB]
    args = []
    for number, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        args += ["--next"] if number else []
        args += ["-sSf", "-r", f"{begin}-{end - 1}", "-o", f"piece{number}", f"{url}big"]
    problems = play.client("ranges", ["curl", *args])
    report = play.report("ranges")
    if report and sum(report["connections"].values()) != 1:
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


def workers(play):
    return (play.dir / "error.log").read_bytes().count(b"start worker process ")


def reload(play, server, url):
    """Who was accepted by the old workers gets the file to its end; the new ones accept; and of
    those who come and go meanwhile none fails."""
    size, number = play.some(20) * MIB, play.some(4000)
    slow = play.begin("slow", ["curl", "-sSf", "--limit-rate", play.some(20 * MIB), "-r",
                               f"0-{size - 1}", "-o", "slowly", f"{url}big"])
    busy = play.begin("busy", ["ab", "-q", "-n", number, "-c", "10", f"{url}page"])
    until((play.dir / "slowly").exists)
    for _ in range(3):
        before = workers(play)
        server.send_signal(signal.SIGHUP)
        until(lambda: workers(play) > before)
    problems = fetch(play, "new", f"{url}{play.marker}", "-o", "new") + play.same(play.marker,
                                                                                 "new")
    problems += play.account("slow", slow)
    with open(play.dir / "big", "rb") as file:
        (play.dir / "begin").write_bytes(file.read(size))
    play.case("new configurations while a file is fetched", problems + play.same(
        "begin", "slowly"))
    play.case("and under load", play.account("busy", busy) + all_served(play, "busy", number))


def all_served(play, name, number):
    return play.says(name, f"Complete requests:      {number}\n") + play.says(
        name, "Failed requests:        0")


def load(play, url):
    problems = play.client("wrk", ["wrk", "-t", "2", "-c", "50", "-d", f"{play.some(2)}s",
                                   f"{url}page"])
    if "Non-2xx" in play.text("wrk") or "Socket errors" in play.text("wrk"):
        problems += play.both("wrk")
    play.case("wrk with 50 connections", problems + play.says("wrk", "Requests/sec"))
    number = play.some(2000)
    problems = play.client("ab", ["ab", "-q", "-n", number, "-c", "20", f"{url}page"])
    play.case("ab, a connection for each request", problems + all_served(play, "ab", number))
    number = play.some(5000)
    problems = play.client("kept", ["ab", "-q", "-k", "-n", number, "-c", "20", f"{url}page"])
    play.case("ab -k", problems + all_served(play, "kept", number) + play.says(
        "kept", f"Keep-Alive requests:    {number}\n"))


def play(play):
    play.blob("big", BIG // 10 if play.way.resplit else BIG)
    for name, settings in list(SETTINGS.items())[:2 if play.way.whole else 1]:
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
