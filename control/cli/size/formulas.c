/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "cli/size/size.h"

/* Bytes per frame: preamble and start 8, Ethernet 14, checksum 4, gap 12. */
#define FRAME 38
#define IP    20
#define UDP   8
/* Bytes. RoCEv2, IB specification volume 1, annex A17 and chapter 9: BTH, RETH, immediate, ICRC. */
#define BTH  12
#define RETH 16
#define IMM  4
#define ICRC 4
#define AETH 4
/* bytes; workers/ring.h */
#define DESCRIPTOR   64
#define REPLY_HEADER 40

double size_run_us(const struct size_question *q, double n)
{
	return q->batch_us + n * q->each_us;
}

double size_capacity(const struct size_question *q)
{
	return (double)q->max_batch / size_run_us(q, (double)q->max_batch) * 1e6;
}

uint64_t size_workers_least(const struct size_question *q)
{
	/*
	 * A worker that is busy all the time has an endless queue, so more than rate / capacity are
	 * needed.
	 */
	return (uint64_t)floor(q->rate / size_capacity(q)) + 1;
}

double size_load(const struct size_question *q, uint64_t workers)
{
	return q->rate / ((double)workers * size_capacity(q));
}

/* --- bytes on wires --------------------------------------------------------------------------- */

/* RoCE's path MTU: the largest power of two, up to 4096, that fits in the MTU with its headers. */
static double path_mtu(const struct size_question *q)
{
	double mtu = 4096;

	while (mtu > 256 && mtu + IP + UDP + BTH + RETH + IMM + ICRC > (double)q->mtu)
		mtu /= 2;
	return mtu;
}

double size_client_bytes(const struct size_question *q, uint64_t payload)
{
	double datagram = (double)payload + UDP;
	double frames = ceil(datagram / ((double)q->mtu - IP));

	return datagram + frames * (IP + FRAME);
}

/*
 * Bytes on the wire of one message of RDMA WRITE packets; <first> is the headers that only one
 * packet has.
 */
static double write_bytes(const struct size_question *q, double payload, double first)
{
	double packets = payload > 0 ? ceil(payload / path_mtu(q)) : 1;

	return payload + first + packets * (FRAME + IP + UDP + BTH + ICRC);
}

double size_fabric_request_bytes(const struct size_question *q)
{
	return write_bytes(q, (double)q->request_bytes, RETH) + write_bytes(q, DESCRIPTOR, RETH);
}

double size_fabric_reply_bytes(const struct size_question *q)
{
	/* Acknowledgements of requests travel in the direction of the replies. */
	return write_bytes(q, (double)q->reply_bytes + REPLY_HEADER, RETH + IMM) +
	       write_bytes(q, 0, AETH);
}

uint64_t size_links(const struct size_question *q, double bytes, double gbps)
{
	return (uint64_t)ceil(q->rate * bytes * 8 / (gbps * 1e9 * SIZE_LINK_FILL));
}

/* --- windows ---------------------------------------------------------------------------------- */

double size_window_rate(double outstanding_bytes, double rtt_us)
{
	return outstanding_bytes / rtt_us * 1e6;
}

double size_slot_rate(const struct size_question *q, double held_us)
{
	return size_window_rate((double)(q->slots * q->lcores), held_us);
}

double size_window_bytes(double gbps, double rtt_us)
{
	return gbps * 1e9 / 8 * rtt_us / 1e6;
}

/* --- the cost of being remote ----------------------------------------------------------------- */

static double wire_us(const struct size_question *q)
{
	return (size_client_bytes(q, q->request_bytes) + size_client_bytes(q, q->reply_bytes)) * 8 /
		       q->client_gbps / 1e3 +
	       (size_fabric_request_bytes(q) + size_fabric_reply_bytes(q)) * 8 / q->fabric_gbps /
		       1e3;
}

double size_cost(const struct size_question *q)
{
	return (q->rtt_us + wire_us(q)) / size_run_us(q, 1);
}

double size_cost_rtt_us(const struct size_question *q)
{
	double left = q->epsilon * size_run_us(q, 1) - wire_us(q);

	return left > 0 ? left : 0;
}
