/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CONFIG_REASON_LIST_H
#define CONFIG_REASON_LIST_H

/*
 * Why a connection is not on DDP, or ended: X(name, number, group, text, advice).
 *
 * Numbers are what DDP_INFO, logs of old versions and other programs hold: a number is never
 * changed and never used again; 6, 7, 105, 202 and 204 were in use. 1-99 local choice, 100-199
 * peer, 200-299 this host, 300-399 end.
 * docs/reasons.md is made from these rows (ninja docs).
 */
#define CONFIG_REASON_LIST(X)                                                                    \
	X(NONE, 0, CHOICE, "The connection is on DDP.", "")                                      \
	X(RULE_NONE, 1, CHOICE, "No rule matches the socket, and the program did not ask.",      \
	  "Add a rule, or use --all.")                                                           \
	X(RULE_TCP, 2, CHOICE, "The first rule that matches is a tcp rule.",                     \
	  "Change the rule, or put another one before it.")                                      \
	X(MODE_OFF, 3, CHOICE, "The program set DDP_MODE to OFF.", "")                           \
	X(PEER_UNKNOWN, 4, CHOICE,                                                               \
	  "Mode auto has no reason to believe that the peer speaks MPA: no rule gives its "      \
	  "address, no listener on this host has it, it never answered a Request, and its host " \
	  "is not near enough to be asked, or asking is off.",                                   \
	  "Give its address in a rule, or use mode on.")                                         \
	X(PEER_KNOWN_PLAIN, 5, CHOICE, "The peer did not speak MPA a short while ago.",          \
	  "The answer is forgotten after a minute.")                                             \
	X(PEER_NOT_MPA, 100, PEER, "The peer's first bytes are no MPA start-up.",                \
	  "Run the peer under warpsock, or name it in a tcp rule.")                              \
	X(PROBE_TIMEOUT, 101, PEER, "The peer did not answer the MPA Request in time.",          \
	  "Run the peer under warpsock; on a slow network raise WARPSOCK_PROBE_TIMEOUT (mode "   \
	  "auto) or WARPSOCK_START (mode on).")                                                  \
	X(REFUSED, 102, PEER, "The peer rejected the MPA Request.", "Read the peer's log.")      \
	X(GRACE_EXPIRED, 103, PEER,                                                              \
	  "The program wrote first, and no MPA Request had come by then.",                       \
	  "If the peer is under warpsock, raise WARPSOCK_GRACE.")                                \
	X(LATE_REQUEST, 104, PEER,                                                               \
	  "An MPA Request came after the connection had become plain TCP; it was reset.",        \
	  "Raise WARPSOCK_GRACE.")                                                               \
	X(PEER_PARAMETERS, 106, PEER,                                                            \
	  "The peer speaks MPA, but not the stream protocol, or with values out of range.",      \
	  "Streams need rsockets or warpsock at the other end.")                                 \
	X(PEER_CLOSED, 107, PEER, "The peer closed the connection during start-up.",             \
	  "Run the peer under warpsock, or name it in a tcp rule.")                              \
	X(UNREACHABLE, 108, PEER, "TCP could not connect.",                                      \
	  "See whether the server runs, its address and port, and the firewalls on the way.")    \
	X(ASK_NO, 109, PEER,                                                                     \
	  "The peer's host was asked, and has no listener for DDP at this address and port.",    \
	  "Run the server under warpsock. The answer is forgotten after a minute.")              \
	X(ASK_SILENT, 110, PEER,                                                                 \
	  "The peer's host was asked for a listener for DDP, and has not answered in time.",     \
	  "Run the server under warpsock, and let UDP port 5041 through (docs/firewalls.md).")   \
	X(ASK_WRONG, 111, PEER,                                                                  \
	  "The peer's host answered that there is a listener for DDP, but the connection "       \
	  "reached a program that does not speak MPA: a port may be forwarded, or an address "   \
	  "shared.",                                                                             \
	  "Name the peer in a rule with ask never, or in a tcp rule.")                           \
	X(PROVIDER_UNAVAILABLE, 200, HOST,                                                       \
	  "The provider that is asked for is not there, or a device could not begin a "          \
	  "connection; software serves it.",                                                     \
	  "warpsock doctor tells which providers there are, and why one cannot be used.")        \
	X(NO_MEMORY, 203, HOST, "There was no memory for the connection's state.", "")           \
	X(RUNTIME_DIR, 205, HOST,                                                                \
	  "The state of connections cannot be kept: the folder for it is missing, full, or not " \
	  "the user's own. Another program that is given one has a relay.",                      \
	  "See WARPSOCK_RUNTIME_DIR.")                                                           \
	X(FORKED, 206, HOST,                                                                     \
	  "The process forked, and a child does not get the provider's resources.",              \
	  "Use the provider soft.")                                                              \
	X(SANDBOXED, 207, HOST, "The process is in a sandbox that forbids the calls DDP needs.", \
	  "")                                                                                    \
	X(IO_URING, 208, HOST,                                                                   \
	  "The program uses io_uring, whose operations the interposer does not see.",            \
	  "Switch io_uring off in the program, and do not set WARPSOCK_URING=allow.")            \
	X(OTHER_USER, 209, HOST, "The socket came from another user's process.", "")             \
	X(NOT_OWNER, 210, HOST, "The connection's memory and queues belong to another process.", \
	  "")                                                                                    \
	X(NOT_LOADED, 211, HOST,                                                                 \
	  "The program cannot load the interposer (it is static or setuid); a relay serves it.", \
	  "")                                                                                    \
	X(CLOSED, 300, END, "Both ends finished in order.", "")                                  \
	X(PEER_RESET, 301, END, "The peer reset the TCP connection.", "")                        \
	X(PEER_CUT, 302, END, "The peer's TCP stream ended within a message.",                   \
	  "The peer's process was probably killed.")                                             \
	X(PEER_TERMINATED, 303, END, "The peer ended the stream with a Terminate message.",      \
	  "DDP_INFO has its layer, type and code.")                                              \
	X(FAULT, 304, END, "The peer broke the protocol; a Terminate message told it.",          \
	  "DDP_INFO has the fault's layer, type and code.")                                      \
	X(PEER_ABORTED, 305, END, "The peer's program aborted the connection.", "")              \
	X(ABORTED, 306, END, "The program aborted the connection.", "")                          \
	X(LINGER_EXPIRED, 307, END,                                                              \
	  "The program ended and its last bytes could not be delivered in time.",                \
	  "Raise WARPSOCK_LINGER.")                                                              \
	X(TIMED_OUT, 308, END, "TCP received nothing from the peer for too long.", "")           \
	X(SHARER_DIED, 309, END,                                                                 \
	  "A process that shares the connection died while it changed its state.", "")           \
	X(STATE_DAMAGED, 310, END, "The shared state of the connection is inconsistent.", "")    \
	X(FLOODED, 311, END,                                                                     \
	  "The peer sent messages that bring nothing, one after the other, and was reset.",      \
	  "The peer is faulty, or means harm.")                                                  \
	X(LINGER_CROWDED, 312, END,                                                              \
	  "Closed connections took too many descriptors: TCP alone went on with one, and its "   \
	  "last bytes may be lost.",                                                             \
	  "Raise the limit of open files (RLIMIT_NOFILE).")

#endif
