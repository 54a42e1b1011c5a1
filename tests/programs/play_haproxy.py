# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""haproxy: one proxy by HTTP and one by octets, in front of nginx."""
import signal

from play import MIB, connected, until

NEEDS = ("haproxy", "nginx", "curl", "ab")
VERSION = ("haproxy", "-v")
NGINX = """
daemon off; worker_processes 1; user root; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
	access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	server {{ listen 127.0.0.1:{port}; root {dir}; }}
}}
"""
HAPROXY = """
global
	maxconn 200
	nbthread 2
defaults
	timeout connect 5s
	timeout client 20s
	timeout server 20s
listen web
	mode http
	bind 127.0.0.1:{http}
	server one 127.0.0.1:{door} pool-purge-delay 50ms
listen octets
	mode tcp
	bind 127.0.0.1:{tcp}
	server one 127.0.0.1:{door}
"""


def play(play):
    ports = {"port": play.port(), "http": play.port(), "tcp": play.port()}
    ports["door"] = play.doors[ports["port"]]
    play.blob("big", play.some(30) * MIB)
    (play.dir / "page").write_text(play.marker * 20)
    for name, text in (("nginx.conf", NGINX), ("haproxy.cfg", HAPROXY)):
        (play.dir / name).write_text(text.format(dir=play.dir, **ports))
    nginx = play.serve("nginx", ["nginx", "-p", play.dir, "-c", play.dir / "nginx.conf", "-e",
                                 play.dir / "error.log"], ports["port"], leg="ddp")
    haproxy = play.serve("haproxy", ["haproxy", "-db", "-f", play.dir / "haproxy.cfg"],
                         ports["http"], ports["tcp"], role="middle", leg="both")
    with play.wire("haproxy", ports["port"], ports["http"]):
        problems = play.client("page", ["curl", "-sSf", "-o", "got-page",
                                        f"http://127.0.0.1:{ports['http']}/page"], leg="ddp")
        play.case("a page through it", problems + play.same("page", "got-page"))
    for kind in ("http", "tcp"):
        problems = play.client(f"big-{kind}", ["curl", "-sSf", "-o", f"got-{kind}",
                                               f"http://127.0.0.1:{ports[kind]}/big"],
                               leg="ddp")
        play.case(f"a large file through its mode {kind}",
                  problems + play.same("big", f"got-{kind}"))
        problems = play.client(f"ab-{kind}", ["ab", "-q", "-k", "-n", play.some(2000), "-c", "20",
                                              f"http://127.0.0.1:{ports[kind]}/page"], leg="ddp")
        play.case(f"ab through its mode {kind}", problems + play.says(
            f"ab-{kind}", "Failed requests:        0"))
    # With one that nobody uses this version may end by SIGSEGV, over TCP too
    play.case("it closes what nobody uses",
              [] if until(lambda: not connected(ports["door"])) else play.both("haproxy"))
    play.stop("haproxy", haproxy, signal.SIGUSR1)
    play.stop("nginx", nginx)
