# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The servers under pressure: how each is started, and what its clients speak."""
from dataclasses import dataclass

from protocols import BIG, pattern

NGINX = """
daemon off; worker_processes 2; user root; pid {dir}/nginx.pid; error_log {dir}/error.log crit;
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
	access_log off; keepalive_requests 1000000; keepalive_timeout 600;
	client_header_timeout 600;
	client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	server {{ listen 127.0.0.1:{port}; root {dir}; }}
}}
"""


@dataclass
class Program:
    name: str
    protocol: str
    command: object  # (server.c's program, a folder of its own, port, descriptors): arguments
    needs: str = ""
    processes: bool = False  # one for each connection, which is dear


def lines(kind):
    return lambda server, folder, port, files: [server, kind, port]


def redis(_server, folder, port, files):
    (folder / "big").write_bytes(pattern(BIG))
    return ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", folder,
            "--logfile", folder / "log", "--maxclients", max(files - 32, 1),
            "--client-output-buffer-limit", "normal", "0", "0", "0"]


# Descriptors of a worker besides its connections: ten over TCP, and nine more of the interposer's
# (three eventfds, two epoll sets, four sockets), as counted under "descriptors" when all are in use
NGINX_OWN = 24


def nginx(_server, folder, port, files):
    for name in "small", "big":
        (folder / name).write_bytes(pattern(BIG))
    conf = folder / "nginx.conf"
    conf.write_text(NGINX.format(dir=folder, port=port, files=files,
                                 connections=max(files - NGINX_OWN, 8)))
    return ["nginx", "-p", folder, "-c", conf, "-e", folder / "error.log"]


PROGRAMS = (
    Program("redis", "redis", redis, needs="redis-server"),
    Program("nginx", "http", nginx, needs="nginx"),
    Program("thread", "lines", lines("thread")),
    Program("event", "lines", lines("event")),
    Program("fork", "lines", lines("fork"), processes=True),
)
