/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every reason for which a packet or a request leaves the walk. One list makes the counters and the
 * names that the CLI and metrics print. Each lcore has its own counters.
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
	X(NEIGHBOUR_KEPT, "neighbour_kept", "claim of an address whose old holder still answers")  \
	X(IP_HEADER, "ip_header", "bad IP version, header length or total length")                 \
	X(IP_CHECKSUM, "ip_checksum", "wrong IPv4 header checksum")                                \
	X(IP_EXTENSION, "ip_extension", "IPv6 extension header")                                   \
	X(FRAGMENT, "fragment", "fragment of fabric, RoCE or ND traffic: never reassembled")       \
	X(FRAGMENT_MALFORMED, "fragment_malformed", "fragment empty, of odd length or past end")   \
	X(FRAGMENT_OVERLAP, "fragment_overlap", "fragment overlaps another; datagram refused")     \
	X(FRAGMENT_DUPLICATE, "fragment_duplicate", "fragment came twice; the first one counts")   \
	X(FRAGMENT_TOO_LARGE, "fragment_too_large", "fragment of a datagram above the MTU")        \
	X(FRAGMENT_TOO_MANY, "fragment_too_many", "fragment of a datagram in more than 32 pieces") \
	X(FRAGMENT_SOURCE, "fragment_source", "displaced: its source began too many datagrams")    \
	X(FRAGMENT_FULL, "fragment_full", "displaced by other sources' fragments: table full")     \
	X(FRAGMENT_TIMEOUT, "fragment_timeout", "the other fragments did not come in a second")    \
	X(NOT_OUR_ADDRESS, "not_our_address", "IP packet for none of our addresses")               \
	X(L4_PROTOCOL, "l4_protocol", "neither UDP nor ICMP, nor TCP where a service has it")      \
	X(UDP_LENGTH, "udp_length", "UDP length disagrees with the IP length")                     \
	X(UDP_CHECKSUM, "udp_checksum", "wrong UDP checksum")                                      \
	X(TCP_HEADER, "tcp_header", "TCP header too short, or longer than its packet")             \
	X(TCP_CHECKSUM, "tcp_checksum", "wrong TCP checksum")                                      \
	X(TCP_REFUSED, "tcp_refused", "segment that its connection does not accept")               \
	X(TCP_UNKNOWN, "tcp_unknown", "segment of no connection; reset sent")                      \
	X(TCP_EARLY, "tcp_early", "segment that overtook the first of its cookie; comes again")    \
	X(TCP_FULL, "tcp_full", "no room for another TCP connection")                              \
	X(TCP_CLIENT_FULL, "tcp_client_full",                                                      \
	  "handshake of a client that has its share of the TCP connections")                       \
	X(TCP_CLIENT, "tcp_client",                                                                \
	  "segment not taken: its client has used up its share of memory")                         \
	X(TCP_SLOW, "tcp_slow", "request came slower than it must; timeout notice or reset sent")  \
	X(TCP_TLS, "tcp_tls",                                                                      \
	  "connection ended: its handshake failed or took too long, or a record was not valid")    \
	X(HTTP2_FULL, "http2_full",                                                                \
	  "connection closed: its client, or all, have as many that speak HTTP/2 as may be")       \
	X(HTTP2_FAULT, "http2_fault",                                                              \
	  "connection closed: its frames of HTTP/2 are not valid, or too many")                    \
	X(TCP_READER, "tcp_reader", "connection reset: its client did not read its replies")       \
	X(TCP_LINGERED, "tcp_lingered",                                                            \
	  "connection reset: its client went on sending behind its end")                           \
	X(TCP_MEMORY, "tcp_memory", "segment not taken: memory for received bytes exhausted")      \
	X(ICMP_OTHER, "icmp_other", "ICMP that is neither a ping nor an error about UDP or TCP")   \
	X(ICMP_CHECKSUM, "icmp_checksum", "wrong ICMP checksum")                                   \
	X(ICMP_NO_FLOW, "icmp_no_flow", "ICMP error about a packet of no known flow")              \
	X(ICMP_PORT, "icmp_port_unreachable", "ICMP error about a reply: client's port closed")    \
	X(ICMP_UNREACHABLE, "icmp_unreachable", "ICMP error about a reply: client unreachable")    \
	X(ICMP_TOO_BIG, "icmp_too_big", "a reply exceeded the path's MTU; lower max_reply")        \
	X(ICMP_TIME, "icmp_time_exceeded", "ICMP error about a reply: time exceeded")              \
	X(ICMP_PARAMETER, "icmp_parameter", "ICMP error about a reply: header rejected")           \
	X(BAD_SOURCE, "bad_source", "source address or port that cannot be answered")              \
	X(SOURCE_PORT, "source_port", "source port below min_source_port: may answer replies")     \
	X(LOOP, "loop", "TTL or hop limit used up: may circulate between servers")                 \
	X(UNKNOWN_SERVICE, "unknown_service", "no service on this address and port")               \
	X(NOTICE_RECEIVED, "notice_received", "notice of another load balancer; never answered")   \
	X(EMPTY_REQUEST, "empty_request", "datagram without payload")                              \
	X(REQUEST_TOO_LARGE, "request_too_large", "longer than the service allows; notice sent")   \
	X(NOTICE_LIMIT, "notice_limit", "refused without a notice: its source had too many")       \
	X(FLOW_TABLE_FULL, "flow_table_full", "no room for a new flow")                            \
	X(SOURCE_LIMIT, "source_limit", "its source opens new flows faster than allowed")          \
	X(NO_WORKER, "no_worker", "no active worker; busy notice sent")                            \
	X(QUEUE_FULL, "queue_full", "no credit and the queue is full; busy notice sent")           \
	X(QUEUE_TIMEOUT, "queue_timeout", "waited too long for a credit; busy notice sent")        \
	X(DEADLINE, "deadline", "cannot be, or was not, answered by its deadline; notice sent")    \
	X(CANCELLED, "cancelled", "cancelled by its client; cancelled notice sent")                \
	X(CANCEL_UNKNOWN, "cancel_unknown", "cancel of a request that is over or never existed")   \
	X(CANCEL_LIMIT, "cancel_limit", "more cancels in a ms than an lcore searches for")         \
	X(CANCEL_UNSENT, "cancel_unsent", "request answered before its cancel could be sent")      \
	X(FRAMING, "framing", "not valid in the service's framing; malformed notice sent")         \
	X(REQUEST_TIMEOUT, "request_timeout", "worker did not answer in time; timeout notice")     \
	X(WORKER_LOST, "worker_lost", "in flight on a worker that died; worker-lost notice sent")  \
	X(STOPPING, "stopping", "the load balancer is stopping; notice or reset sent")             \
	X(STOP_TIMEOUT, "stop_timeout", "in flight when stop_timeout_ms ended; timeout notice")    \
	X(NO_MBUF, "no_mbuf", "packet memory exhausted")                                           \
	X(NO_TX, "no_tx", "transmit queue stayed full")                                            \
	X(TX_REFUSED, "tx_refused", "the port's driver refuses to send it")                        \
	X(HANDOVER_FULL, "handover_full", "the flow's or queue pair's lcore did not keep up")      \
	X(ROCE_CNP, "roce_cnp", "congestion notification while congestion control is off")         \
	X(ROCE_CLIENT_PORT, "roce_client_port", "RoCE packet on a port that is not fabric")        \
	X(ROCE_MALFORMED, "roce_malformed", "RoCE packet with bad version, P_Key, length or pad")  \
	X(ROCE_ICRC, "roce_icrc", "wrong ICRC")                                                    \
	X(ROCE_QPN, "roce_qpn", "no such queue pair")                                              \
	X(ROCE_SOURCE, "roce_source", "not from the queue pair's peer")                            \
	X(ROCE_MAC, "roce_mac", "not from the worker's MAC address")                               \
	X(ROCE_OPCODE, "roce_opcode", "opcode not supported here, or out of sequence")             \
	X(ROCE_PSN_AHEAD, "roce_psn_ahead", "gap in the packet sequence; NAK sent once")           \
	X(ROCE_PSN_DUPLICATE, "roce_psn_duplicate", "packet seen before; acknowledged again")      \
	X(ROCE_ACCESS, "roce_access", "wrong rkey or outside the region; queue pair stopped")      \
	X(ROCE_ACK_WINDOW, "roce_ack_window", "acknowledges a packet that was not sent")           \
	X(ROCE_LINK_DOWN, "roce_link_down", "for a queue pair in the error state")                 \
	X(REPLY_UNANNOUNCED, "reply_unannounced", "reply bytes without an immediate")              \
	X(REPLY_STALE, "reply_stale", "answers a request that is already over")                    \
	X(REPLY_NO_FLOW, "reply_no_flow", "the client's flow has expired")                         \
	X(REPLY_TOO_LARGE, "reply_too_large", "does not fit one datagram of the service")          \
	X(REPLY_MALFORMED, "reply_malformed", "reply header disagrees with the message")

enum lb_drop {
#define LB_DROP_ENUM(symbol, name, text) LB_DROP_##symbol,
	LB_DROP_LIST(LB_DROP_ENUM)
#undef LB_DROP_ENUM
		LB_DROPS,
	LB_DROP_NONE = LB_DROPS, /* not dropped */
};

const char *lb_drop_name(enum lb_drop reason);
const char *lb_drop_text(enum lb_drop reason);

#endif
