/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every reason for which a packet or a request leaves the walk. One list: it makes the counters,
 * and the names that the CLI and metrics print. Each lcore counts for itself.
 */
#ifndef LB_DROP_H
#define LB_DROP_H

/* X(symbol, "name", "what it means") */
#define LB_DROP_LIST(X)                                                                            \
	X(NOT_OUR_MAC, "not_our_mac", "frame for another station")                                 \
	X(TRUNCATED, "truncated", "frame ends inside a header")                                    \
	X(ETHERTYPE, "ethertype", "neither IPv4, IPv6 nor ARP")                                    \
	X(ARP_OTHER, "arp_other", "ARP that asks for none of our addresses")                       \
	X(ND_OTHER, "nd_other", "neighbour discovery that asks for none of our addresses")         \
	X(NEIGHBOUR_KEPT, "neighbour_kept", "claims an address that its old holder answers for")   \
	X(IP_HEADER, "ip_header", "bad IP version, header length or total length")                 \
	X(IP_CHECKSUM, "ip_checksum", "wrong IPv4 header checksum")                                \
	X(IP_EXTENSION, "ip_extension", "IPv6 extension header")                                   \
	X(FRAGMENT, "fragment", "IP fragment of what is never put together: fabric, RoCE, ND")     \
	X(FRAGMENT_MALFORMED, "fragment_malformed", "empty, odd or beyond the end: all refused")   \
	X(FRAGMENT_OVERLAP, "fragment_overlap", "overlaps another: all of the datagram refused")   \
	X(FRAGMENT_DUPLICATE, "fragment_duplicate", "came twice; the first counts")                \
	X(FRAGMENT_TOO_LARGE, "fragment_too_large", "of a datagram beyond the clients' MTU")       \
	X(FRAGMENT_TOO_MANY, "fragment_too_many", "of a datagram in more than 32 pieces")          \
	X(FRAGMENT_SOURCE, "fragment_source", "its source began too many datagrams after it")      \
	X(FRAGMENT_FULL, "fragment_full", "made room for other sources' fragments")                \
	X(FRAGMENT_TIMEOUT, "fragment_timeout", "the rest did not come within a second")           \
	X(NOT_OUR_ADDRESS, "not_our_address", "IP packet for none of our addresses")               \
	X(L4_PROTOCOL, "l4_protocol", "neither UDP nor ICMP")                                      \
	X(UDP_LENGTH, "udp_length", "UDP length disagrees with the IP length")                     \
	X(UDP_CHECKSUM, "udp_checksum", "wrong UDP checksum")                                      \
	X(ICMP_OTHER, "icmp_other", "ICMP that is neither a ping nor an error about UDP")          \
	X(ICMP_CHECKSUM, "icmp_checksum", "wrong ICMP checksum")                                   \
	X(ICMP_NO_FLOW, "icmp_no_flow", "error about a packet of no flow of ours")                 \
	X(ICMP_PORT, "icmp_port_unreachable", "error about a reply: the client has gone")          \
	X(ICMP_UNREACHABLE, "icmp_unreachable", "error about a reply: no way to the client")       \
	X(ICMP_TOO_BIG, "icmp_too_big", "a reply did not fit the way; lower max_reply")            \
	X(ICMP_TIME, "icmp_time_exceeded", "error about a reply: too many hops, or pieces lost")   \
	X(ICMP_PARAMETER, "icmp_parameter", "error about a reply: a header was not liked")         \
	X(BAD_SOURCE, "bad_source", "source address or port that cannot be answered")              \
	X(SOURCE_PORT, "source_port", "from a port below min_source_port: it may answer answers")  \
	X(LOOP, "loop", "its TTL or hop limit is used up: it may go around between servers")       \
	X(UNKNOWN_SERVICE, "unknown_service", "no service on this address and port")               \
	X(NOTICE_RECEIVED, "notice_received", "a notice of another load balancer; never answered") \
	X(EMPTY_REQUEST, "empty_request", "datagram without payload")                              \
	X(REQUEST_TOO_LARGE, "request_too_large", "longer than the service allows; told so")       \
	X(NOTICE_LIMIT, "notice_limit", "a notice too many for a source of refused requests")      \
	X(FLOW_TABLE_FULL, "flow_table_full", "no room for a new flow")                            \
	X(SOURCE_LIMIT, "source_limit", "its source opens new flows faster than allowed")          \
	X(NO_WORKER, "no_worker", "no active worker; busy reply sent")                             \
	X(QUEUE_FULL, "queue_full", "no credit and the queue is full; busy reply sent")            \
	X(QUEUE_TIMEOUT, "queue_timeout", "waited too long for a credit; busy reply sent")         \
	X(DEADLINE, "deadline", "not to be answered by its deadline, or not in time; told so")     \
	X(CANCELLED, "cancelled", "its client asked to; cancelled reply sent")                     \
	X(CANCEL_UNKNOWN, "cancel_unknown", "cancels a request that is over or was never there")   \
	X(CANCEL_LIMIT, "cancel_limit", "more cancels than an lcore looks at in a ms")             \
	X(CANCEL_UNSENT, "cancel_unsent",                                                          \
	  "its worker, which was behind, answered before it could be told")                        \
	X(FRAMING, "framing", "not a request of the service's framing; malformed reply sent")      \
	X(REQUEST_TIMEOUT, "request_timeout", "the worker did not answer in time; timeout reply")  \
	X(WORKER_LOST, "worker_lost", "in flight on a worker that died; error reply sent")         \
	X(STOPPING, "stopping", "the load balancer is told to stop; stopping reply sent")          \
	X(STOP_TIMEOUT, "stop_timeout", "in flight when stop_timeout_ms was over; timeout reply")  \
	X(NO_MBUF, "no_mbuf", "packet memory exhausted")                                           \
	X(NO_TX, "no_tx", "transmit queue stayed full")                                            \
	X(TX_REFUSED, "tx_refused", "the port's driver refuses to send it")                        \
	X(HANDOVER_FULL, "handover_full", "the lcore that owns the flow or queue pair was behind") \
	X(ROCE_CNP, "roce_cnp", "congestion notification, and congestion control is off")          \
	X(ROCE_CLIENT_PORT, "roce_client_port", "RoCE packet on a port that is not fabric")        \
	X(ROCE_MALFORMED, "roce_malformed", "RoCE packet with bad version, P_Key, length or pad")  \
	X(ROCE_ICRC, "roce_icrc", "wrong ICRC")                                                    \
	X(ROCE_QPN, "roce_qpn", "no such queue pair")                                              \
	X(ROCE_SOURCE, "roce_source", "not from the queue pair's peer")                            \
	X(ROCE_MAC, "roce_mac", "not from the worker's MAC address")                               \
	X(ROCE_OPCODE, "roce_opcode", "opcode that this end does not take, or out of sequence")    \
	X(ROCE_PSN_AHEAD, "roce_psn_ahead", "gap in the packet sequence; NAK sent once")           \
	X(ROCE_PSN_DUPLICATE, "roce_psn_duplicate", "packet seen before; acknowledged again")      \
	X(ROCE_ACCESS, "roce_access", "wrong rkey or outside the region; queue pair stopped")      \
	X(ROCE_ACK_WINDOW, "roce_ack_window", "acknowledges what was not sent")                    \
	X(ROCE_LINK_DOWN, "roce_link_down", "for a queue pair in error")                           \
	X(REPLY_UNANNOUNCED, "reply_unannounced", "reply bytes without an immediate")              \
	X(REPLY_STALE, "reply_stale", "answers a request that is over")                            \
	X(REPLY_NO_FLOW, "reply_no_flow", "the client's flow has expired")                         \
	X(REPLY_TOO_LARGE, "reply_too_large", "does not fit one datagram of the service")          \
	X(REPLY_MALFORMED, "reply_malformed", "reply header disagrees with the message")

enum lb_drop {
#define LB_DROP_ENUM(symbol, name, text) LB_DROP_##symbol,
	LB_DROP_LIST(LB_DROP_ENUM)
#undef LB_DROP_ENUM
		LB_DROPS,
};

const char *lb_drop_name(enum lb_drop reason);
const char *lb_drop_text(enum lb_drop reason);

#endif
