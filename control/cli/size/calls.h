/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time of a program whose CUDA calls go to a GPU behind a network: the cost model of Wang et
 * al., "Characterizing Network Requirements for GPU API Remoting in AI Applications" (arXiv
 * 2401.13354), over a trace. With the times of call i
 *
 *   issued   = end of call i-1 + gap
 *   arrives  = issued + send + RTT/2 + sent bytes / bandwidth
 *   done     = arrives + receive + call; of a call that waits for the GPU: not before its queue
 *   queue    = end of the GPU's work: max(done, queue) + gpu
 *   end      = issued                                of a local call
 *              issued + send                         of an async call: it is outstanding
 *              done + send + RTT/2 + received bytes / bandwidth + receive      of the others
 *
 * and beside the GPU without send, receive and network. The cost is (remote - local) / local.
 *
 * The published model has no queues: a server that is still busy with the call before, and a link
 * that still carries its bytes, delay nothing. <queues> adds both, in the order of the calls, and
 * <outstanding>: so many calls may be under way that the server has not begun. Pure.
 */
#ifndef SIZE_CALLS_H
#define SIZE_CALLS_H

#include <stdbool.h>

#include "cli/size/trace.h"

struct calls_network {
	double rtt_us, gbps;
	double send_us, receive_us; /* CPU time of one message: of its sender, of its receiver */
	bool queues;
	unsigned int outstanding; /* with <queues>; 0: no limit */
};

struct calls_cost {
	double local_us, remote_us;
	double cost; /* (remote - local) / local; negative: faster than beside the GPU; infinite:
		      * local is 0 */
	size_t calls[TRACE_KINDS];
	double sent, received; /* bytes */
};

/* Returns 0, or -ENOMEM. */
int size_calls_cost(const struct trace *trace, const struct calls_network *network,
		    struct calls_cost *cost);
/*
 * The longest round trip with which the cost is at most <epsilon>, us, to 0.1 %; 0 if there is
 * none; <most_us> if that is not too long. Returns 0, or -ENOMEM.
 */
int size_calls_rtt_us(const struct trace *trace, const struct calls_network *network,
		      double epsilon, double most_us, double *rtt_us);

#endif
