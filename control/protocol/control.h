/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control protocol: JSON-RPC 2.0, one message per line (LF), UTF-8. Operators speak it on a
 * UNIX socket, agents on TCP. Includes nothing of ours: the CLI and tests use only this.
 *
 * Errors: JSON-RPC's own codes for broken messages, and CONTROL_ERROR_* with a sentence that says
 * what to change. Batches are not supported. Members that a method does not know are an error.
 *
 * Operators (UNIX socket, mode 0660)
 *   version        {}                                       -> {version, protocol, dpdk}
 *   flows.list     {<filters>, limit?, compact?, cursor?}
 *                                                           -> {flows, columns?, cursor, done}
 *   flows.top      {<filters>, by?, limit?, above?, cursor?}
 *                                                           -> {flows, cursor, done}
 *   flows.count    {<filters>, by?, cursor?}                -> {count, groups?, cursor, done}
 *   workers.list   {}                                       -> {workers: [...]}
 *   workers.show   {name}                                   -> {worker}
 *   workers.drain  {name, absent?}                          -> {worker, setting}
 *   workers.resume {name, absent?}                          -> {worker, setting}
 *   workers.replace {name, successor, partly?, again?}      -> {worker, setting} or {waits}
 *   workers.assign {name, services: [name, ...]}            -> {worker}
 *   workers.release {name, services: [name, ...]}           -> {worker}
 *   workers.table  {}                                       -> {workers: [...]}
 *   workers.set    {name, weight, absent?}                  -> {worker, setting}
 *   workers.forget {name}                                   -> {worker, setting}
 *   workers.refused {}                                      -> {total, refused: [row, ...]}
 *   workers.settings {}                                     -> {settings: [setting, ...]}
 *                  setting: {name, state, reason, lost, drain, successor, weight, assigned,
 *                  released}.
 *                  control.state_file keeps the settings of a name. worker is null when no worker
 *                  has the name; lost is then how many requests the last one had when it went. A
 *                  name that is neither registered nor has a setting needs absent: true. Weight 0
 *                  is the agent's own; forget removes all settings of a name.
 *                  replace drains the worker <name> if <successor> is active at that moment. Else
 *                  nothing changes, and waits is a sentence on what to wait for before the next
 *                  call. An error: it cannot succeed as things are; with partly: true the
 *                  successor need not serve all services of the worker. If the successor goes
 *                  before the worker is drained, the worker is resumed. Until then setting has the
 *                  successor, also over a restart: the worker then serves until the successor
 *                  does, 10 s at most, and the same call goes on with it; with again: true not if
 *                  it was taken back meanwhile, which worker and setting then show. Load balancers
 *                  that do not know the method cannot check and drain in one step.
 *   models.list    {}                                       -> {models: [...]}
 *   models.show    {name}                                   -> {model}
 *   services.list  {}                                       -> {services: [...]}
 *   services.show  {name}                                   -> {service}
 *   stats.show     {all?}                 -> {lcores: [...], ports: [...], uptime_s, reasons?}
 *   trace.start    {flow}                                   -> {trace}
 *   trace.read     {trace}                                  -> {events, lost}
 *   trace.stop     {trace}                                  -> {}
 *                  flow: "CLIENT:PORT" or "CLIENT:PORT,VIP:PORT"; events: [{at_ns, lcore, request,
 *                  step, what}]. One trace at a time; one that is not read for 10 s ends.
 *   capture.start  {port, filter?, program?, direction?, snaplen?, count?, seconds?, file?}
 *                                                           -> {capture}
 *   capture.data   {capture}                                no reply: the file, see below
 *   capture.read   {capture}    -> {state, done, captured, filtered, dropped, bytes}
 *   capture.stop   {capture}                                -> {}
 *                  direction: "in" or "out", else both; program: libpcap's program of filter for
 *                  Ethernet, "N,code jt jf k,..."; file: the file's name, only to be shown. One
 *                  capture at a time. It begins when another connection sends capture.data. That
 *                  connection then carries the bytes of the pcapng file, and is closed when the
 *                  capture is over. A capture ends by itself, with capture.stop, and with either
 *                  connection.
 *   log.show       {}                                       -> {modules: [{module, level}]}
 *   log.level      {module?, level}                         -> {modules: those that changed}
 *                  module: one of ours (lb, control), or a pattern with a dot or a star
 *   config.check   {file?}                                  -> {file, changes, applies, reason}
 *   config.diff    {file?}                                  -> {file, changes}
 *   config.apply   {file?}                                  -> {file, changes}
 *                  file is an absolute path that the daemon reads, or else the one that it was
 *                  started with; changes: [{key, from, to, effect}], effect is live, replace or
 *                  restart. A bad file, or a change that apply cannot make, is
 *                  CONTROL_ERROR_CONFIG.
 *   status.show    {}                                       -> {status: {services, workers,
 *                   lcores, uptime_ms, window_ms, version}}
 * The fields of flows, workers, models, services and lcores are listed in doorbell-json(5). A count
 * that does not exist yet is null.
 *
 * One flows.* call works for a millisecond or so and then returns, so that the control thread never
 * stalls; the client calls again with the returned cursor (an opaque integer) until done is true,
 * and puts the parts together. The filters are service?, worker?, client? (an address or
 * address/prefix), state?, min_bytes? (both directions) and min_idle_s?; a flow must match all.
 *   list   limit is 1 to 16384, else 1000. With compact, each of flows is an array of values, and
 *          columns has their names.
 *   top    the largest by "bytes" (default) or "packets", each of both directions, or "requests";
 *          limit is 1 to 1000, else 20. Each flow has one more field, value, by which it is
 *          ranked. A call ranks only the flows that it looked at, so the client merges the
 *          replies. Once it has limit flows, it gives the smallest value as above: later calls
 *          then return only flows with a larger one.
 *   count  by "service", "worker" or "state" adds groups: [{name, count}]; add them up by name.
 *
 * Agents (TCP, with TLS 1.3 where control.tls or control.token_file is set: secure/secure.h)
 *   agent.hello    {version, model, address, min_request?}  -> struct lb_hello's fields, describe
 *   agent.register {version, name, model, instance, slots, min_request?, max_request, max_reply,
 *                   max_chunks?, max_batch, weight, heartbeat_ms, max_run_ms?,
 *                   labels?: {key: value, ...}, address, path_mtu, description?: {version,
 *                   platform?, batch, inputs: [tensor, ...], outputs: [tensor, ...]},
 *                   links: [{lcore, qpn, psn, rkey, descriptors, payloads, cancels, stride, room,
 *                   entry}]}
 *                                                           -> {worker, generation, path_mtu,
 *                   lease_ms,
 *                   links: [{lcore, qpn, psn, reply_rkey, reply_address, reply_stride, chunk}]}
 *   agent.ready    {}                                       -> {}
 *   agent.drain    {}                                       -> {}
 *   agent.renew    {report?: {batches: [{rows, batches, run_us}], gpu?: {...}}}
 *                                                           -> {lease_ms, refused?}
 *   agent.attach   {version, name, instance, worker, generation} -> {lease_ms, state}
 *   worker.state   notification to the agent: {state, reason}; state is one of joining, active,
 *                  draining, drained, gone
 * version is CONTROL_PROTOCOL; an agent with another is refused, as it has another ring contract. A
 * link's fields are what ring.h says of it: descriptors, payloads and cancels are addresses, the
 * others are bytes. A reply of the worker has up to max_chunks (1 to 4096, else 1) chunks. All
 * numbers are JSON integers; instance is 16 random hexadecimal digits, a secret of the agent; the
 * worker in a reply is its number.
 *
 * A description says what a model's requests and replies are made of (workers/description.h): 1 to
 * 16 inputs and outputs, each a tensor {name, datatype, shape}, whose shape has up to 8 dimensions,
 * -1 where they are free. All workers of a model that are described have the same tensors; one that
 * disagrees is refused. An agent gives it if the answer to its hello has describe: true: load
 * balancers without that member do not know it. A worker without description is undescribed.
 *
 * A report says what the worker has done (workers/report.h): batches by their size, 8 at most, with
 * the model's run time of all of them, and its GPU: utilization, memory_used, memory_total,
 * temperature, power_mw, ecc_corrected, ecc_uncorrected, xids, each an integer or left out, and
 * notice. An agent sends it if the answer to its hello has report: true. A wrong report is not
 * kept, and refused says why; the lease is renewed. (Load balancers of before 2026-11-26 refuse the
 * renewal with CONTROL_ERROR_PARAMS.) An agent that serves goes on after that, and after
 * CONTROL_ERROR_INTERNAL; any other error says that the load balancer does not have its worker.
 *
 * One connection owns at most one worker. An agent is disconnected unless it sends a message within
 * CONTROL_HELLO_S of connecting, and registers within CONTROL_REGISTER_S of its hello (or of losing
 * its worker). From agent.ready on a registration is a lease: an agent that does not call
 * agent.renew for lease_ms is not heard any more. An agent that calls it every third of lease_ms
 * may lose one call. An agent that registers its former name with its former instance takes over;
 * another instance is refused while the name's worker is heard. An agent whose certificate is not
 * for the name is told so and disconnected.
 *
 * A worker whose agent is not heard, or whose connection closed, stays as long as its loop sends
 * heartbeats. A closed connection makes the worker suspect until the next heartbeat. The agent goes
 * on with its worker over another connection: it calls agent.attach instead of agent.hello, with
 * the reply of agent.register and a certificate that allows the worker's name, address and model.
 * When that fails the agent registers again. A worker that was not active yet, was drained, or
 * whose agent had called agent.drain is removed with its connection.
 *
 * A notification may arrive before the reply of the call that caused it.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define CONTROL_PROTOCOL 3
#define CONTROL_SOCKET   "/run/doorbell/control.sock"

/* Longest line that is taken from an operator or an agent, bytes. */
#define CONTROL_LINE_MAX 65536

/* Time limits of an agent, s: to say hello, and then to register. */
#define CONTROL_HELLO_S    10
#define CONTROL_REGISTER_S 300

#define CONTROL_ERROR_PARSE     (-32700) /* JSON-RPC: not JSON */
#define CONTROL_ERROR_REQUEST   (-32600) /* JSON-RPC: not a request */
#define CONTROL_ERROR_METHOD    (-32601) /* JSON-RPC: no such method */
#define CONTROL_ERROR_PARAMS    (-32602) /* JSON-RPC: invalid params */
#define CONTROL_ERROR_INTERNAL  (-32603) /* JSON-RPC: no memory for the answer */
#define CONTROL_ERROR_NOT_FOUND (-32001) /* no such worker or service */
#define CONTROL_ERROR_REFUSED   (-32002) /* a registration that cannot be served */
#define CONTROL_ERROR_STATE     (-32003) /* not now, or not on this connection */
#define CONTROL_ERROR_CONFIG    (-32004) /* a configuration that is wrong, or cannot be applied */

#endif
