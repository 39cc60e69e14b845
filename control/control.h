/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control protocol: JSON-RPC 2.0, one message per line (LF), UTF-8. Operators speak it on a
 * UNIX socket, agents on TCP. Includes nothing of ours: the CLI and tests use only this.
 *
 * Errors: JSON-RPC's own codes for broken messages, and CONTROL_ERROR_* with a sentence that says
 * what to change.
 *
 * Operators (UNIX socket, mode 0660)
 *   version        {}                                       -> {version, protocol, dpdk}
 *   flows.list     {service?, worker?, client?, limit?, cursor?}
 *                                                           -> {flows: [...], cursor, done}
 *   flows.count    {service?, worker?, client?, cursor?}    -> {count, cursor, done}
 *   workers.list   {}                                       -> {workers: [...]}
 *   workers.show   {name}                                   -> {worker}
 *   workers.drain  {name}                                   -> {worker}
 *   services.list  {}                                       -> {services: [...]}
 *   services.show  {name}                                   -> {service}
 *   stats.show     {}                                       -> {lcores: [...], uptime_s}
 * One flows.* call looks at a bounded number of table entries, so that the control thread never
 * stalls; the client calls again with the returned cursor until done is true.
 *
 * Agents (TCP)
 *   agent.hello    {version, model, address}                -> struct lb_hello's fields
 *   agent.register {version, name, model, instance, slots, max_request, max_reply, max_batch,
 *                   weight, heartbeat_ms, address, path_mtu,
 *                   links: [{lcore, qpn, psn, rkey, descriptors, slots, cancels, stride}]}
 *                                                           -> {worker, path_mtu, links:
 *                   [{lcore, qpn, psn, reply_rkey, reply_address, reply_stride}]}
 *   agent.ready    {}                                       -> {}
 *   agent.drain    {}                                       -> {}
 *   worker.state   notification to the agent: {state, reason}; state is one of joining, active,
 *                  draining, drained, gone
 * All numbers are JSON integers; instance is 16 hexadecimal digits. Closing the connection takes the
 * worker out at once.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_PROTOCOL 1
#define CONTROL_SOCKET	 "/run/doorbell/control.sock"

/* Longest line taken from an operator and from an agent, bytes. */
#define CONTROL_LINE_MAX 65536

#define CONTROL_ERROR_NOT_FOUND	 (-32001) /* no such worker or service */
#define CONTROL_ERROR_REFUSED	 (-32002) /* a registration that cannot be served */
#define CONTROL_ERROR_STATE	 (-32003) /* not now, or not on this connection */
#define CONTROL_ERROR_PARAMS	 (-32602) /* JSON-RPC: invalid params */

#endif
