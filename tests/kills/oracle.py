# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What must be true when somebody was killed.

The peer of the killed one gets a prefix of the octets that send() had accepted, which ends where a
message ended; then the end of the stream if that is all of them, else ECONNRESET. Of two processes
that share a connection the other one goes on and ends it in order, unless the killed one held a
lock of it: then it is reset on both sides, and what waited for a reader who shared it is lost, so
he ends where his last buffer did. Nothing else suffers, and nobody waits for ever. A process of the
library's that finishes what was closed is the sender in its program's place.
"""
import errno

STREAM_END = 1
RESET = 1000 + errno.ECONNRESET
GONE = {0, RESET, 1000 + errno.EPIPE}
LIVING = ("connect", "listen", "child", "side", "others")
# Points of a helper process that has streams to finish
FINISHING = ("preload_helper_process_begun", "preload_worker_handed_off")


def accepted(way):
    """At most so many octets: a call may have been under way."""
    return max(way.sent, way.upto)


def is_bound(way, at):
    """Did a message end there? Where writes are short each is one."""
    return at in (0, way.sent) or at > way.sent or at in way.end_at[:min(way.ends + 1,
                                                                        len(way.end_at))]


def was_outside(case):
    """Of locks, for certain: of who is killed at any time, or beside other threads, it is not"""
    return case.locks == 0 and case.threads <= 1


def is_end(number, way, case):
    """Of a long write each message has one, which the library has noted before it sent it."""
    if "g" in case.shape[0] or (way.doubt_to and way.got > way.doubt_from):
        return True  # TCP has none; or positions are others behind what was left out
    if "l" not in case.shape[0]:
        return way.end != RESET or is_bound(way, way.got)
    return way.got == 0 or way.got in case.ends[("connect", "listen")[number]]


def is_forgotten(number, way, case):
    """What waited behind a buffer that was filled, for one who shared it with the killed one?"""
    shared = number == 0 and case.victim in ("listen", "child")
    return shared and not was_outside(case) and way.got <= way.filled


def of_way(number, case, told, reset):
    """told: its reader lives, and has been told how it ended; reset: in sending already, which is
    told once."""
    name = f"octets by who {('connects', 'listens')[number]}"
    way = case.ledger.way[number]
    found = []
    if way.wrong:
        found.append(f"{name}: octets {way.got} and before are not those that were sent")
    if way.got > accepted(way):
        found.append(f"{name}: {way.got} octets came, {accepted(way)} were sent")
    if way.failed not in GONE:
        found.append(f"{name}: send() failed with {way.failed - 1000}")
    if not told:
        return found
    if way.end not in (STREAM_END, RESET):
        found.append(f"{name}: the reader was told {way.end}")
    if way.end == STREAM_END and way.got < way.sent and not reset:
        found.append(f"{name}: an orderly end after {way.got} of {way.sent} octets")
    if not is_forgotten(number, way, case) and not is_end(number, way, case):
        found.append(f"{name}: {way.got} octets, which is no message's end")
    return found


def of_side(number, side):
    if not side.opened:
        return []
    if side.wrong or not side.closed:
        return [f"the connection beside {number} has suffered: {side.wrong}, {side.pings} echoes"]
    return []


def is_all(way, case):
    unheard = "x" in case.shape[0] and not way.total  # nobody waits for its end
    return unheard or (way.end == STREAM_END and way.got == way.total)


def of_processes(case):
    found = []
    for who in LIVING:
        status = case.status[who]
        if status is None:
            found.append(f"{who} did not end")
        elif status and (who != case.victim or status != -9):
            found.append(f"{who} ended with {status}")
    return found


def survivors(case):
    return [number for number, who in enumerate(("connect", "listen"))
            if not (case.killed and who == case.victim)]


def was_reset(case, number):
    """The reader of these octets was told of it, in reading or in sending."""
    way = case.ledger.way[number]
    never = number and not way.end and not way.got  # connect() said so
    return never or RESET in (way.end, case.ledger.way[1 - number].failed)


def of_shared(case):
    """One of the two that share it was killed."""
    names = ("who connects", "who listens")
    if not case.locks and not was_outside(case):
        # Who knows where it was: it went on, or it was reset
        goes_on = all(is_all(way, case) for way in case.ledger.way)
        reset = any(RESET in (way.end, way.failed) for way in case.ledger.way)
        return [] if goes_on or reset else [f"{way_text(case)}: neither all of it nor a reset"]
    wanted = "is reset" if case.locks else "goes on"
    return [f"octets by {name}: the connection {wanted} on both sides: {way_text(case)}"
            for number, (name, way) in enumerate(zip(names, case.ledger.way))
            if not is_all(way, case) and (not case.locks or not was_reset(case, number))]


def way_text(case):
    return "; ".join(f"{way.got} got of {way.sent} sent of {way.total}, told {way.end}, "
                     f"sender {way.failed}" for way in case.ledger.way)


def may_be_left(case):
    """Names of states: the victim's file and two connections, where nobody had them any more; the
    same of a helper process that was to finish them."""
    outlived = case.ledger.alone == {"child": 1, "listen": 2}.get(case.victim)
    if "m" in case.shape[0] and not case.ledger.joined:
        outlived = False  # a descriptor that nobody will take any more counts for a while
    return 3 if case.helper in FINISHING or (case.killed and not outlived) else 0


def is_shared(case):
    """Two have it; one that was sent is had when it has come, one that was given away by one."""
    if "c" in case.shape[0]:
        return case.victim == "listen" and case.ledger.joined
    return (set("tf") & set(case.shape[0]) and case.ledger.child and
            ("m" not in case.shape[0] or case.ledger.joined))


def has_hurt_side(case):
    """A child's end is the end of its part of its parent's connection beside: did it die in
    there?"""
    return case.victim == "child" and case.ledger.done[2] and not was_outside(case)


def common(case):
    found = of_processes(case)
    if case.left > may_be_left(case):
        found.append(f"{case.left} states are left behind")
    for number in survivors(case):
        if number == 1 and has_hurt_side(case):
            continue
        found += of_side(number, case.ledger.side[number])
    if found or case.said:
        found = found + case.said.splitlines() if found else found
    return found


def whole(case):
    """Nobody was killed: everything is there."""
    found = common(case)
    if "g" in case.shape[0] and not (case.ledger.asked and case.ledger.fallen):
        found.append("nobody fell back")
    for name, way in zip(("connects", "listens"), case.ledger.way):
        if way.wrong or not is_all(way, case):
            found.append(f"octets by who {name}: {way_text(case)}")
    return found


def problems(case, at_rest=False):
    # Who makes a helper process in vain does its work
    if not case.killed and case.helper in ("", "preload_helper_process_middle"):
        return whole(case)
    found = common(case)
    for number, reader in enumerate(("listen", "connect")):
        way = case.ledger.way[number]
        told = way.end and (reader != case.victim or is_shared(case))
        reset = case.ledger.way[1 - number].failed == RESET
        found += of_way(number, case, told, reset)
        if at_rest and told and not is_all(way, case):
            found.append(f"at rest, but {way_text(case)}")
    if is_shared(case) and case.victim != "connect":
        found += of_shared(case)
    return found + [way_text(case)] if found else found
