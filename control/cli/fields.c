/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of all that is printed with --json. */
#include "cli/reference.h"

static const struct cli_field flow[] = {
	{"lcore", "", "the data-plane core that owns the flow"},
	{"client", "", "address:port, or [address]:port for IPv6"},
	{"zone", "", "where it is: a configured zone or a port, and the VLAN id if there is one"},
	{"service", "", "its name; \"-\" when there is none any more"},
	{"worker", "",
	 "the last one's name, with affinity sticky its home's; \"-\" when there is none any more"},
	{"state", "", "of the connection"},
	{"age_s", "s", "since the first packet"},
	{"idle_s", "s", "since the last packet"},
	{"packets_in", "", "from the client"},
	{"bytes_in", "bytes", "of payload from the client"},
	{"requests", "", "cut from the flow and sent to workers"},
	{"packets_out", "", "to the client"},
	{"bytes_out", "bytes", "of payload to the client"},
	{NULL},
};

static const struct cli_field flow_rank[] = {
	{"value", "", "the number that it was ranked by"},
	{NULL},
};

static const struct cli_field flows[] = {
	{"flows", "", "an array; with --stream its objects only, one per line"},
	{NULL},
};

static const struct cli_field flow_count[] = {
	{"count", "", "of all"},
	{"groups", "", "with --by, an array, the largest first"},
	{NULL},
};

static const struct cli_field flow_group[] = {
	{"name", "", "of the service, the worker or the state"},
	{"count", "", "of its flows"},
	{NULL},
};

static const struct cli_field worker_list[] = {{"workers", "", "an array"}, {NULL}};
static const struct cli_field worker_one[] = {{"worker", "", "an object"}, {NULL}};

static const struct cli_field worker[] = {
	{"name", "", "as its agent registered"},
	{"model", "", "as its agent registered"},
	{"state", "", "joining, warming, active, suspect, draining, drained or gone"},
	{"reason", "", "why it is not active"},
	{"weight", "", "its share, for policies that use one"},
	{"agent_weight", "", "what its agent said; weight differs when an operator set another"},
	{"drain", "", "true when an operator drained it"},
	{"control_lost_ms", "ms", "since its agent was heard last; null while it is heard"},
	{"slots", "", "requests that fit into its memory, per data-plane core"},
	{"outstanding", "", "requests sent and not answered, now"},
	{"credits", "", "free slots, now"},
	{"requests", "", "sent to it"},
	{"replies", "", "of it"},
	{"errors", "", "replies with a status other than OK"},
	{"lost", "", "requests in flight when a link went down"},
	{"resent", "", "packets sent again"},
	{"timeouts", "", "acknowledgements that did not come in time"},
	{"heartbeat_age_ms", "ms", "since the last heartbeat of the slowest link"},
	{"mean_wait_us", "us", "per reply, in its memory until the model began"},
	{"mean_run_us", "us", "per reply, in the model"},
	{"mean_total_us", "us", "per reply, from sending to the last chunk"},
	{"labels", "", "an object of what its agent was started with"},
	{"services", "", "an array, the names of those that it serves now"},
	{NULL},
};

static const struct cli_field setting_list[] = {{"settings", "", "an array"}, {NULL}};

static const struct cli_field set_worker[] = {
	{"worker", "", "an object, or null when none of this name is registered"},
	{"setting", "", "an object: what is set for its name"},
	{NULL},
};

static const struct cli_field setting[] = {
	{"name", "", "of the worker"},
	{"state", "", "as of workers list; gone when none of this name is registered"},
	{"reason", "", "why it is not active, or why it went"},
	{"lost", "", "requests that it had in hand when it went"},
	{"drain", "", "true: it takes no new requests"},
	{"weight", "", "instead of what its agent says, or null"},
	{"assigned", "", "an array, the names of services that it was assigned to"},
	{"released", "", "an array, the names of services that it was released from"},
	{NULL},
};

static const struct cli_field worker_place[] = {
	{"host", "", "the label of this name, or null"},
	{"slot", "", "the label of this name, or null"},
	{"name", "", "as its agent registered"},
	{"model", "", "as its agent registered"},
	{"state", "", "as of workers list"},
	{"services", "", "an array, the names of those that it serves now"},
	{"labels", "", "an object of what its agent was started with"},
	{NULL},
};

static const struct cli_field worker_details[] = {
	{"number", "", "of its place in the pool"},
	{"generation", "", "of its place in the pool"},
	{"instance", "", "16 hexadecimal digits that differ for each start of the agent"},
	{"min_request", "bytes", "the smallest that its model takes"},
	{"max_request", "bytes", "the largest"},
	{"max_reply", "bytes", "the largest"},
	{"max_batch", "", "requests that the model takes at a time"},
	{"heartbeat_ms", "ms", "how often a heartbeat is due"},
	{"heartbeats", "", "received"},
	{"unacked", "", "packets sent and not acknowledged, now"},
	{"packets_sent", "", "on the fabric"},
	{"packets_received", "", "on the fabric"},
	{"acks_received", "", "of RDMA's reliable connection"},
	{"naks_received", "", "of RDMA's reliable connection"},
	{"naks_sent", "", "of RDMA's reliable connection"},
	{"rnr_naks_received", "", "the worker was not ready to receive"},
	{"duplicates", "", "packets received again"},
	{"out_of_order", "", "packets received behind a gap"},
	{"ecn_marked", "", "packets received with a switch's mark of congestion"},
	{"cnps_sent", "", "notifications sent because of such marks"},
	{"cnps_received", "", "notifications of congestion on the way to the worker"},
	{"rate_mbit", "Mbit/s", "of its slowest link that congestion limits; null while none is"},
	{NULL},
};

static const struct cli_field refused_list[] = {
	{"total", "", "tries that were refused since the load balancer started"},
	{"refused", "", "an array, the latest first; tries of one agent for one reason are one"},
	{NULL},
};

static const struct cli_field refused[] = {
	{"last_s", "s", "since the last try"},
	{"first_s", "s", "since the first one"},
	{"times", "", "how many there were"},
	{"peer", "", "the agent's address"},
	{"worker", "", "its name; null where it was refused before it said that"},
	{"model", "", "its model; null likewise"},
	{"reason", "", "as its agent was told"},
	{NULL},
};

static const struct cli_field service_list[] = {{"services", "", "an array"}, {NULL}};
static const struct cli_field service_one[] = {{"service", "", "an object"}, {NULL}};

static const struct cli_field service[] = {
	{"name", "", "as configured"},
	{"vip", "", "the address where it is reached"},
	{"port", "", "the port where it is reached"},
	{"protocol", "", "udp"},
	{"state", "",
	 "serving; down: no worker serves it; leaving: it was taken out of the configuration"},
	{"reason", "", "why it does not serve; null while it does"},
	{"model", "", "whose workers get its requests"},
	{"policy", "", "how they are chosen"},
	{"affinity", "", "request, flow or sticky: for how long"},
	{"sticky_load_percent", "percent",
	 "of the mean load: sticky flows leave who owes more; 0: only when it is full"},
	{"workers", "", "active ones that serve it"},
	{"members", "", "all of its model, or assigned"},
	{"min_workers", "", "below so many, spares step in"},
	{"spares", "", "how many may step in at most"},
	{"spares_in", "", "those that have, now"},
	{"placement", "", "where they are taken from: pack or spread"},
	{"requests", "", "sent to workers"},
	{"replies", "", "answered"},
	{"notices", "", "busy, timeout and error replies"},
	{"drops", "", "packets or requests that went no further"},
	{"queued", "", "requests that wait for a credit, now"},
	{"queue_places", "", "requests that may wait, all data-plane cores together"},
	{"replays", "", "requests sent again, to another worker"},
	{"went_home", "", "requests that went to the home of their flow; affinity sticky"},
	{"spilled", "", "requests that went elsewhere, as home was saturated; affinity sticky"},
	{"moved", "", "flows that got another home, as theirs no longer serves; affinity sticky"},
	{"bytes_in", "bytes", "of payload"},
	{"bytes_out", "bytes", "of payload"},
	{"max_request", "bytes", "the largest"},
	{"max_reply", "bytes", "the largest"},
	{"queue", "", "requests that may wait, per data-plane core"},
	{"queue_timeout_ms", "ms", "as configured"},
	{"request_timeout_ms", "ms", "as configured"},
	{"flow_timeout_ms", "ms", "as configured"},
	{"one_way_timeout_ms", "ms", "as configured"},
	{"payload_crc", "", "true or false"},
	{NULL},
};

static const struct cli_field stats[] = {
	{"uptime_s", "s", "of the daemon"},
	{"ports", "", "an array"},
	{"lcores", "", "an array"},
	{"reasons", "", "with --all: an object from each drop reason's name to its meaning"},
	{NULL},
};

static const struct cli_field port[] = {
	{"port", "", "its name"},
	{"link", "", "up or down: whether its cable carries a signal"},
	{NULL},
};

static const struct cli_field lcore[] = {
	{"lcore", "", "its number"},
	{"cpu", "", "where it runs"},
	{"packets_in", "", "on all ports"},
	{"bytes_in", "bytes", "on all ports"},
	{"packets_out", "", "on all ports"},
	{"bytes_out", "bytes", "on all ports"},
	{"reassembled", "", "datagrams that came in fragments"},
	{"handed_over", "", "packets received for other lcores, and given to them"},
	{"requests", "", "sent to workers"},
	{"replies", "", "sent to clients"},
	{"notices", "", "busy, timeout and error replies"},
	{"payload_copies", "", "payloads that had to be copied"},
	{"turns", "", "of its loop"},
	{"idle_turns", "", "that found nothing to do"},
	{"sleeps", "", "of its loop"},
	{"window_held", "", "packets that workers have not acknowledged, now"},
	{"window_packets", "", "of those at most"},
	{"queued", "", "requests that wait for a credit, now"},
	{"queue_packets", "", "of those at most, but for requests that are sent again"},
	{"stages", "", "an object by stage of the walk"},
	{"drops", "", "an object from each reason that occurred to its count"},
	{"new_flows_per_s", "1/s", "over the last second"},
	{"flows", "", "an object, its table"},
	{NULL},
};

static const struct cli_field stage[] = {
	{"cycles", "", "of the CPU's time stamp counter"},
	{"items", "", "packets, requests or replies"},
	{"cycles_per_item", "", "a mean"},
	{NULL},
};

static const struct cli_field table[] = {
	{"live", "", "flows now"},
	{"capacity", "", "flows that there is room for"},
	{"inserted", "", "begun so far"},
	{"expired", "", "ended by timeout"},
	{"removed", "", "ended otherwise"},
	{"reclaimed", "", "ended early, because the table was full and a new one needed the place"},
	{"refused", "", "new ones refused: the table was full"},
	{"refused_source", "", "new ones refused: their source opened too many"},
	{"lag_ms", "ms", "how late the last look for flows to end was; 0 when it caught up"},
	{"load", "share", "of the table's places that are taken; made to stay below 0.9"},
	{"buckets_per_lookup", "", "a real number: the mean over all flows, 1 at best"},
	{NULL},
};

static const struct cli_field top[] = {
	{"version", "", "of the daemon"},
	{"uptime_ms", "ms", "of the daemon"},
	{"window_ms", "ms", "what rates, means and percentiles are of; 0 before the first second"},
	{"services", "", "an array"},
	{"workers", "", "an array"},
	{"lcores", "", "an array"},
	{NULL},
};

static const struct cli_field top_service[] = {
	{"name", "", "as configured"},
	{"vip", "", "the address where it is reached"},
	{"port", "", "the port where it is reached"},
	{"protocol", "", "udp"},
	{"model", "", "whose workers get its requests"},
	{"policy", "", "how they are chosen"},
	{"workers", "", "active ones that serve it"},
	{"requests", "", "sent to workers, so far"},
	{"replies", "", "answered, so far"},
	{"notices", "", "busy, timeout and error replies, so far"},
	{"drops", "", "packets or requests that went no further, so far"},
	{"queued", "", "requests that wait for a credit, now"},
	{"requests_per_s", "1/s", "in the last second"},
	{"replies_per_s", "1/s", "in the last second"},
	{"notices_per_s", "1/s", "in the last second"},
	{"drops_per_s", "1/s", "in the last second"},
	{"bytes_in_per_s", "bytes/s", "of payload"},
	{"bytes_out_per_s", "bytes/s", "of payload"},
	{"latency", "",
	 "an object by part of a request's time: queue, wire, wait, run, reply, total"},
	{NULL},
};

static const struct cli_field top_latency[] = {
	{"count", "", "replies in the last second"},
	{"mean_us", "us", "null without replies, as are the percentiles"},
	{"p50_us", "us", "at most 3.2 % off"},
	{"p90_us", "us", "at most 3.2 % off"},
	{"p99_us", "us", "at most 3.2 % off"},
	{NULL},
};

static const struct cli_field top_worker[] = {
	{"name", "", "as its agent registered"},
	{"model", "", "as its agent registered"},
	{"state", "", "as of workers list"},
	{"reason", "", "why it is not active"},
	{"weight", "", "its share, for policies that use one"},
	{"outstanding", "", "requests sent and not answered, now"},
	{"credits", "", "free slots, now"},
	{"requests", "", "so far"},
	{"replies", "", "so far"},
	{"errors", "", "replies with a status other than OK, so far"},
	{"lost", "", "requests in flight when a link went down, so far"},
	{"heartbeat_age_ms", "ms", "since the last heartbeat of the slowest link"},
	{"requests_per_s", "1/s", "in the last second"},
	{"replies_per_s", "1/s", "in the last second"},
	{"errors_per_s", "1/s", "in the last second"},
	{"mean_wire_us", "us", "on the fabric both ways, and in the agent around the model"},
	{"mean_wait_us", "us", "in its memory until the model began"},
	{"mean_run_us", "us", "in the model"},
	{"mean_total_us", "us", "from sending to the last chunk"},
	{"gpu", "", "how many of its requests were in the model at a time, a mean"},
	{NULL},
};

static const struct cli_field top_lcore[] = {
	{"lcore", "", "its number"},
	{"cpu", "", "where it runs"},
	{"busy", "share", "of the last second that it worked"},
	{"packets_in_per_s", "1/s", "on all ports"},
	{"packets_out_per_s", "1/s", "on all ports"},
	{"requests_per_s", "1/s", "sent to workers"},
	{"replies_per_s", "1/s", "sent to clients"},
	{"drops_per_s", "1/s", "for any reason"},
	{"flows", "", "tracked now"},
	{"flows_capacity", "", "that there is room for"},
	{NULL},
};

static const struct cli_field versions[] = {
	{"client", "", "version of this program"},
	{"version", "", "of the daemon"},
	{"protocol", "", "between the two"},
	{"dpdk", "", "version of DPDK"},
	{NULL},
};

static const struct cli_field doctor[] = {
	{"checks", "", "an array"},
	{"ok", "", "how many are"},
	{"warnings", "", "how many there are"},
	{"problems", "", "how many there are"},
	{"not_applicable", "", "how many there are"},
	{NULL},
};

static const struct cli_field doctor_check[] = {
	{"name", "", "of the check; one that looks at several devices comes once for each"},
	{"status", "", "ok, warning, problem, or \"not applicable\""},
	{"found", "", "a sentence"},
	{"fix", "", "a command or a key; absent where nothing is wrong"},
	{NULL},
};

static const struct cli_field bench[] = {
	{"loop", "", "open or closed"},
	{"rate", "1/s", "as asked for"},
	{"window", "", "as asked for"},
	{"flows", "", "as asked for"},
	{"threads", "", "as asked for"},
	{"seed", "", "of the arrival times and sizes"},
	{"seconds", "s", "of sending, without the warm-up"},
	{"due", "", "requests that became due"},
	{"unsent", "", "those of them that the generator could not send"},
	{"requests", "", "sent; each is answered, wrong, refused or lost in the end"},
	{"verify", "", "what was compared of replies: none, id or echo"},
	{"answered", "", "with the right bytes; any are with verify none"},
	{"wrong", "", "with others"},
	{"refused", "", "with a notice"},
	{"lost", "", "without a reply in time"},
	{"duplicates", "", "replies to requests that had ended"},
	{"late", "", "replies to requests that were given up"},
	{"notices_by_code", "", "an object from each notice's name to its count"},
	{"unreachable", "", "ICMP errors"},
	{"counted", "", "sent without the warm-up"},
	{"offered_rps", "1/s", "of those"},
	{"answered_rps", "1/s", "of those"},
	{"latency", "", "an object, of those that were answered"},
	{"sent_late", "", "an object, how late requests left; open loop only"},
	{"targets", "", "an array"},
	{NULL},
};

static const struct cli_field bench_target[] = {
	{"to", "", "where the requests went"},
	{"share", "", "as asked for"},
	{"latency", "", "an object"},
	{NULL},
};

static const struct cli_field distribution[] = {
	{"count", "", "of values"},
	{"min_us", "us", "the least; this and the others are null where there is no value"},
	{"mean_us", "us", "their mean"},
	{"stddev_us", "us", "their standard deviation"},
	{"p50_us", "us", "percentile"},
	{"p90_us", "us", "percentile"},
	{"p99_us", "us", "percentile"},
	{"p999_us", "us", "percentile"},
	{"p9999_us", "us", "percentile"},
	{"max_us", "us", "the largest"},
	{NULL},
};

static const struct cli_field percentiles[] = {
	{"percentiles", "", "an array of [percent, microseconds, requests up to there]"},
	{NULL},
};

static const struct cli_field size[] = {
	{"workers", "", "simulated"},
	{"workers_least", "", "that would keep up"},
	{"limit_kept", "", "true or false"},
	{"overloaded", "", "true or false"},
	{"load", "share", "of the workers' capacity that is asked for"},
	{"busy", "share", "of their time that they run"},
	{"mean_batch", "", "requests"},
	{"slots_needed", "", "per worker and core, a power of two"},
	{"most_outstanding", "", "at one worker in the simulation"},
	{"client_links", "", "filled to four fifths"},
	{"fabric_links", "", "filled to four fifths"},
	{"dominant", "", "the largest of p99_terms_us"},
	{"latency", "", "an object"},
	{"mean_terms_us", "", "an object: where the time goes, on average"},
	{"p99_terms_us", "", "an object: the same of requests near the 99th percentile"},
	{"capacity_rps", "1/s", "of one worker"},
	{"window_bytes", "bytes", "in flight that fill a fabric link"},
	{"cost", "share", "of the model's time that the network adds"},
	{"cost_kept", "", "whether that is within --epsilon"},
	{"cost_rtt_us", "us", "the round trip that would be"},
	{NULL},
};

static const struct cli_field size_terms[] = {
	{"network", "us", "the round trip without the model"},
	{"links", "us", "on links, and waiting for them"},
	{"slot", "us", "waiting for a free slot"},
	{"worker", "us", "waiting for a batch to end"},
	{"run", "us", "in the model"},
	{NULL},
};

static const struct cli_field config[] = {
	{"file", "", "what was read"},
	{"changes", "", "an array"},
	{NULL},
};

static const struct cli_field config_verdict[] = {
	{"applies", "", "true or false: could it be applied now"},
	{"reason", "", "why it could not, or null"},
	{NULL},
};

static const struct cli_field config_change[] = {
	{"key", "", "what is changed"},
	{"from", "", "null: there was none"},
	{"to", "", "null: there is none"},
	{"effect", "", "live, replace or restart"},
	{NULL},
};

static const struct cli_field trace_event[] = {
	{"at_ns", "ns", "since the trace began"},
	{"lcore", "", "that did it"},
	{"request", "", "its id, or first 8 bytes, in 16 hexadecimal digits; null: not known yet"},
	{"step", "",
	 "arrived, flow, request, chosen, waiting, sent, acked, reply, times, answered, notice or "
	 "dropped"},
	{"what", "", "happened, in words"},
	{NULL},
};

static const struct cli_field capture[] = {
	{"port", "", "as asked for"},
	{"file", "", "where the packets are"},
	{"captured", "", "packets in it"},
	{"filtered", "", "packets that the filter did not take"},
	{"dropped", "", "packets that it did, and that are not in the file: there was no room"},
	{"bytes", "bytes", "of the file"},
	{"state", "",
	 "why it is over: count, time, stopped, or disconnected (nobody took the rest: exit status "
	 "1)"},
	{NULL},
};

static const struct cli_field log_modules[] = {{"modules", "", "an array"}, {NULL}};

static const struct cli_field log_module[] = {
	{"module", "", "its name"},
	{"level", "", "error, warning, notice, info or debug, or one of DPDK's"},
	{NULL},
};

#define WORKER_SHOWN "workers show,workers assign,workers release"
#define WORKER_SET   "workers drain,workers resume,workers set,workers forget"
#define WORKER_ONE   WORKER_SHOWN "," WORKER_SET
#define CONFIGS      "config check,config diff,config apply"
#define LOGS         "log show,log level"
#define DOCTORS      "doctor,doctor lb,doctor agent"

const struct cli_fields cli_json[] = {
	{"flows list,flows top", "", flows},
	{"flows list,flows top", "flows[]", flow},
	{"flows top", "flows[]", flow_rank},
	{"flows count", "", flow_count},
	{"flows count", "groups[]", flow_group},
	{"workers list", "", worker_list},
	{"workers list", "workers[]", worker},
	{"workers refused", "", refused_list},
	{"workers refused", "refused[]", refused},
	{"workers table", "", worker_list},
	{"workers table", "workers[]", worker_place},
	{WORKER_SHOWN, "", worker_one},
	{WORKER_SET, "", set_worker},
	{WORKER_SET, "setting", setting},
	{"workers settings", "", setting_list},
	{"workers settings", "settings[]", setting},
	{WORKER_ONE, "worker", worker},
	{WORKER_ONE, "worker", worker_details},
	{"services list", "", service_list},
	{"services list", "services[]", service},
	{"services show", "", service_one},
	{"services show", "service", service},
	{CONFIGS, "", config},
	{"config check", "", config_verdict},
	{CONFIGS, "changes[]", config_change},
	{"trace", "", trace_event},
	{"capture", "", capture},
	{LOGS, "", log_modules},
	{LOGS, "modules[]", log_module},
	{"stats", "", stats},
	{"stats", "ports[]", port},
	{"stats", "lcores[]", lcore},
	{"stats", "lcores[].stages.<>", stage},
	{"stats", "lcores[].flows", table},
	{"top", "", top},
	{"top", "services[]", top_service},
	{"top", "services[].latency.<>", top_latency},
	{"top", "workers[]", top_worker},
	{"top", "lcores[]", top_lcore},
	{"bench", "", bench},
	{"bench", "latency", distribution},
	{"bench", "latency", percentiles},
	{"bench", "sent_late", distribution},
	{"bench", "targets[]", bench_target},
	{"bench", "targets[].latency", distribution},
	{"size", "", size},
	{"size", "latency", distribution},
	{"size", "mean_terms_us", size_terms},
	{"size", "p99_terms_us", size_terms},
	{"version", "", versions},
	{DOCTORS, "", doctor},
	{DOCTORS, "checks[]", doctor_check},
};
const size_t cli_n_json = CLI_COUNT_OF(cli_json);
