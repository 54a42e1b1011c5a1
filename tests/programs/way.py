# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ways in which programs meet: who of them is under the launcher, and what reports then say.

A server's peers are clients. What stands between, such as a proxy, is in the middle: it serves
some and is another one's client; under the launcher it speaks DDP to each that does, too, for
mode auto knows what listens for DDP on this host.
"""
from dataclasses import dataclass

ON = ("--all", "--mode", "on")
AUTO = ("--all", "--mode", "auto")
ASKS = ("--use", "auto client * 127.0.0.0/8:*", *AUTO)
LEGS = {"plain": {"tcp"}, "ddp": {"software"}, "both": {"software", "tcp"}, "mostly": {"tcp"},
        "ruled": {"software", "tcp"}}
MAY_BE = {("software", "mostly")}


@dataclass(frozen=True)
class Way:
    """Arguments of `warpsock run` for each role; none: the program runs without it."""
    name: str
    about: str
    server: tuple = ()
    middle: tuple = ()
    client: tuple = ()
    resplit: bool = False  # through the proxy that cuts the stream anew

    @property
    def on(self):
        return self.server == ON

    @property
    def whole(self):
        """All of a scenario is played, at its full size."""
        return self.on and not self.resplit

    def reasons(self, scenario):
        """Why connections may be plain TCP. Whoever is asked may be known the next time. ALSO: by
        ways, what a scenario has besides."""
        also = getattr(scenario, "ALSO", {}).get(self.name, set())
        if self.name == "client":
            return {"PEER_UNKNOWN"} | also
        if self.name == "asking":
            return {"PEER_KNOWN_PLAIN"} | getattr(scenario, "ASKED", {"PEER_NOT_MPA"}) | also
        if self.name == "server":
            return getattr(scenario, "SERVED", {"PEER_NOT_MPA"})
        return also

    def env(self, scenario):
        """Who answers a Request, be it with what it has for such input, may take its time."""
        patient = "PROBE_TIMEOUT" not in self.reasons(scenario)
        return {"WARPSOCK_PROBE_TIMEOUT": "10s"} if patient else {}

    def problems(self, report, scenario, leg="plain"):
        """What a report should not say. leg: what the peers are where not all are under the
        launcher: plain, ddp, both; or mostly plain. ruled: where they are, some are plain by a
        rule."""
        if report is None:
            return ["there is no report"]
        found, fallbacks = report["connections"], report["fallbacks"]
        wanted = LEGS["ddp" if self.on and leg != "ruled" else leg]
        problems = [f"{found[kind]} connections: {kind}" for kind in found
                    if bool(found[kind]) != (kind in wanted) and (kind, leg) not in MAY_BE]
        allowed = self.reasons(scenario)
        if set(fallbacks) - allowed or sum(fallbacks.values()) != found["tcp"]:
            problems.append(f"{found['tcp']} on TCP, fallbacks {fallbacks}, not of {allowed}")
        return problems


WAYS = {way.name: way for way in (
    Way("both", "both ends under warpsock, mode on", ON, ON, ON),
    Way("resplit", "the same through a proxy that cuts, joins and delays", ON, ON, ON, True),
    Way("server", "the server alone, mode auto", AUTO, AUTO),
    Way("client", "the client alone, mode auto", (), AUTO, AUTO),
    Way("asking", "the client alone, and a rule by which it asks", (), ASKS, ASKS),
    Way("neither", "neither, for reference"),
)}
