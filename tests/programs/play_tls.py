# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tls: curl and openssl with nginx over TLS 1.2 and 1.3, a certificate of our own."""
import subprocess

from play import MIB

NEEDS = ("nginx", "curl", "openssl")
VERSION = ("openssl", "version")
CONFIG = """
daemon off; worker_processes 2; user root; pid {dir}/nginx.pid; error_log {dir}/error.log info;
events {{ worker_connections 512; }}
http {{
	access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
	client_max_body_size 0;
	server {{
		listen 127.0.0.1:{port} ssl http2; root {dir};
		ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
		ssl_protocols TLSv1.2 TLSv1.3;
		location /up/ {{ dav_methods PUT; create_full_put_path on; }}
	}}
}}
"""


def certificate(play):
    """For the marker's name, which TLS shows in its hello."""
    name = f"{play.marker}.test"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=warpsock", "-addext", f"subjectAltName=DNS:{name}", "-keyout",
                    play.dir / "key.pem", "-out", play.dir / "cert.pem"], check=True, timeout=60,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return name


def play(play):
    name, port = certificate(play), play.port()
    play.blob("big", play.some(30) * MIB)
    play.blob("small", 1000)
    conf = play.dir / "tls.conf"
    conf.write_text(CONFIG.format(dir=play.dir, port=port))
    server = play.serve("nginx", ["nginx", "-p", play.dir, "-c", conf, "-e",
                                  play.dir / "error.log"], port)
    curl = ["curl", "-sSf", "--cacert", play.dir / "cert.pem", "--resolve",
            f"{name}:{port}:127.0.0.1"]
    url = f"https://{name}:{port}/"
    with play.wire("tls", port):
        problems = play.client("first", [*curl, "-o", "first", f"{url}small"])
        play.case("curl fetches a page", problems + play.same("small", "first"))
    for version in ("1.2", "1.3"):
        for http in ("--http1.1", "--http2"):
            one = f"{version}{http}"
            problems = play.client(one, [*curl, f"--tlsv{version}", "--tls-max", version, http,
                                         "-o", "got", f"{url}big"])
            play.case(f"a large file over TLS {one}", problems + play.same("big", "got"))
            (play.dir / "got").unlink(missing_ok=True)
    problems = play.client("put", [*curl, "-T", play.dir / "big", f"{url}up/big"])
    play.case("and up again", problems + play.same("big", "up/big"))
    problems = play.client("s_client", ["openssl", "s_client", "-brief", "-connect",
                                        f"127.0.0.1:{port}", "-servername", name, "-CAfile",
                                        play.dir / "cert.pem", "-verify_return_error"])
    play.case("openssl s_client", problems)
    play.stop("nginx", server)
    play.balance("nginx", set(play.commands) - {"nginx"})
