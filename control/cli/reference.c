/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/reference.h"

const struct cli_topic cli_topics[] = {
	{"Flows", "flows", "A flow is one client's address and port talking to one service.\n",
	 "None of them sees the table at one moment: a walk takes a second or so for ten\n"
	 "million flows, and a flow that begins or ends meanwhile may be seen or not.\n"
	 "What lives from the beginning to the end is seen exactly once.\n",
	 "All take filters, and see flows that fit all of them:\n"},
	{"Workers", "workers", "A worker is one GPU with its agent.\n", NULL},
	{"Services", "services", NULL, NULL},
	{"Models", "models",
	 "A model is what services ask and workers have.\n"
	 "What its requests and replies are made of comes from its plug-in, or from\n"
	 ".Ql doorbell_agent.serve() ;\n"
	 "all workers of a model have the same.\n",
	 NULL},
	{"Configuration", "config",
	 "The daemon reads the file, so its user must be able to; without\n"
	 ".Ar file\n"
	 "it is the one that the daemon was started with.\n"
	 "Sending SIGHUP to the daemon is\n"
	 ".Cm config apply ;\n"
	 "what comes of it is in the log.\n",
	 NULL},
	{"Daemon", "trace capture log stats top version", NULL, NULL},
	{"Doctor", "doctor",
	 "Looks at the machine it runs on, before or after the start, and says what is\n"
	 "wrong and how to mend it.\n"
	 "It needs no daemon and changes nothing.\n"
	 "Each line is one thing that was looked at:\n"
	 ".Sy ok , warning\n"
	 "(works, but not as well as it could),\n"
	 ".Sy problem\n"
	 "(the program will not start, or will not serve), or\n"
	 ".Sy n/a\n"
	 "with the reason why there is nothing to look at.\n"
	 "Warnings and problems end with a fix: a command, or a key of the configuration.\n"
	 "A check that does not answer within five seconds is given up, with a warning.\n",
	 NULL},
};
const size_t cli_n_topics = CLI_COUNT_OF(cli_topics);

const struct cli_about cli_abouts[] = {
	{"flows list",
	 "The flows, in no particular order.\n"
	 "They are shown as they come, so that any number of them needs little memory, of\n"
	 "this program as of the daemon.\n"},
	{"flows show",
	 "Everything about the flows of one client's address and port.\n"
	 "IPv6 addresses stand in brackets.\n"
	 "Of a TCP connection also what its end here knows: its state, congestion window and\n"
	 "round trip, the segments that were sent again, requests that are open, and the bytes\n"
	 "that are held both ways.\n"
	 "The lcore that owns the connection is asked.\n"},
	{"flows top", "Those with the most traffic, the largest first.\n"
		      "The daemon reads all of them and sends only those that may be among the\n"
		      "largest.\n"},
	{"flows count", "How many there are.\n"},
	{"workers list",
	 "All of them.\n"
	 "WAIT is the mean time that a request waited in the worker's memory for the\n"
	 "GPU, RUN the mean time\n"
	 "that the model took, both by the worker's own clock; TOTAL is the mean time\n"
	 "from sending the\n"
	 "request to the last piece of its reply, by the load balancer's.\n"},
	{"workers show", "Everything about one of them.\n"},
	{"workers refused",
	 "Agents that wanted to register lately and were refused, the latest first, each with\n"
	 "the reason that it was told.\n"
	 "An agent tries again every 2 s until what is wrong is mended; its tries for one\n"
	 "reason are one row.\n"
	 "32 of them are kept.\n"},
	{"workers drain",
	 "Send the worker no new requests and wait until it has answered those that it\n"
	 "has.\n"
	 "It stays drained, also when it registers again and when the load balancer starts\n"
	 "again, until\n"
	 ".Cm workers resume .\n"
	 "Its agent goes on and can be stopped.\n"
	 "The wait ends when the worker is drained, and when it has gone: exit status 0 if it\n"
	 "had nothing in hand then.\n"
	 "It is 3 if the worker went with requests in hand, was resumed meanwhile, or has not\n"
	 "answered all within\n"
	 ".Fl -timeout .\n"},
	{"workers replace",
	 "Wait until the worker NEW is active, then drain OLD as\n"
	 ".Cm workers drain\n"
	 "does: to serve another version of a model, or from another machine, without losing a\n"
	 "request.\n"
	 "While both serve, a request is answered by one of them; when the command ends with 0, "
	 "OLD\n"
	 "answers none any more, and its agent can be stopped.\n"
	 "OLD goes on as it is, and the exit status is 1, if NEW has another model, is drained\n"
	 "itself, or is not active within\n"
	 ".Fl -timeout .\n"
	 "The load balancer looks at NEW and drains OLD in one step: of two replacements that are\n"
	 "each other's, one is made.\n"
	 "If NEW goes, is drained or stops before OLD has answered all, OLD serves again, and the "
	 "exit\n"
	 "status is 3.\n"
	 "NEW must serve every service that OLD serves, or, where OLD stepped in as a spare, "
	 "another\n"
	 "spare must be there; the error names the service.\n"
	 "The command waits for a load balancer that is restarted meanwhile, and asks it again.\n"
	 "A replacement that was under way is in\n"
	 ".Sy control.state_file :\n"
	 "OLD serves until NEW does, and is drained then, also without the command; if NEW is not "
	 "there\n"
	 "within 10 s of OLD, the replacement is taken back.\n"},
	{"workers resume", "Let a drained worker take requests again.\n"},
	{"workers settings",
	 "What operators set, by the workers' names, also for workers that are not there:\n"
	 "drains, weights and assignments.\n"
	 "It is kept in the file that\n"
	 ".Sy control.state_file\n"
	 "names, 4096 names at most.\n"
	 ".Ql doorbell-lb --check\n"
	 "and\n"
	 ".Cm doctor\n"
	 "say what is wrong with that file before a start does.\n"},
	{"workers forget",
	 "Undo all that is set for this name: it is as its agent says, serves what all of its\n"
	 "model serve, and takes requests again.\n"
	 "For names that will not come back.\n"},
	{"workers assign", "Let it serve these services, whose model must be its own.\n"},
	{"workers release",
	 "Let it serve them no longer; what it has it answers.\n"
	 "Both are kept under its name, and are done for all of the services or none.\n"
	 "Where a service has\n"
	 ".Ql workers: assigned ,\n"
	 "a worker that is released may step in as a spare again, but a spare that is\n"
	 "released stays out.\n"},
	{"workers table", "Where they are, by their labels\n"
			  ".Sy host\n"
			  "and\n"
			  ".Sy slot ,\n"
			  "and which services they serve.\n"},
	{"workers set", "Change its share, 1 to 256, for policies that use one.\n"
			"It stays when its agent registers again; 0 is what its agent says.\n"},
	{"config check",
	 "Is it right, and could it be applied now?\n"
	 "With a file and without a daemon only the first is answered.\n"
	 "The exit status is 0 if it is right and could be; 1 if it is wrong; 3 if it is\n"
	 "right, but needs a restart or other workers.\n"},
	{"config diff", "What it would change.\n"
			"HOW is\n"
			".Sy live ,\n"
			".Sy replace\n"
			"(the service leaves, and another takes its name) or\n"
			".Sy restart .\n"},
	{"config apply",
	 "Change it now.\n"
	 "If anything in it is wrong, needs a restart, or cannot be served by the workers\n"
	 "that are there, nothing changes and the reason is said.\n"
	 ".Pp\n"
	 "Services can be added and removed, and all of their keys be changed; so can\n"
	 "most of\n"
	 ".Sy workers , tcp\n"
	 "and\n"
	 ".Sy log .\n"
	 "A service that is removed, or gets another address, port, protocol, framing or\n"
	 "congestion control, takes no more requests (their clients are told that it is\n"
	 "busy), answers those it has, and then is gone.\n"},
	{"trace",
	 "Every step of the requests of one flow, with times since the trace began: where\n"
	 "they came in, which worker was chosen and what it had to do, slot and packet\n"
	 "sequence numbers, acknowledgements, replies, and notices or drops with their\n"
	 "reason.\n"
	 "Of a TCP connection also its segments from the client, when requests are complete, what\n"
	 "the client has acknowledged, and how it ends.\n"
	 "IPv6 addresses stand in brackets.\n"
	 "There is one trace at a time; one without a reader ends after 10 s.\n"},
	{"capture",
	 "What a port receives and sends, to a file in the pcapng format with times in\n"
	 "nanoseconds, until control-C, as many packets or as long as is asked for.\n"
	 "The file is this program's: it is made with this user's rights, readable by\n"
	 "no other user, and never over one that exists.\n"
	 "Requests and replies are in it as they travel, unencrypted.\n"
	 ".Pp\n"
	 "There is one capture at a time, and the load balancer's log says which process and\n"
	 "user it goes to.\n"
	 "Packets for which there is no room, as what reads them is too slow, are counted as\n"
	 "dropped; the load balancer waits for none.\n"
	 "Ports with\n"
	 ".Sy engine: verbs\n"
	 "cannot be captured, as packets there are the device's alone.\n"
	 "Live:\n"
	 ".Dl doorbell capture --port clients --file - | wireshark -k -i -\n"},
	{"log show", "How much is logged, by module: ours begin with doorbell.\n"},
	{"log level",
	 "Log more or less from now on:\n"
	 ".Sy error , warning , notice , info\n"
	 "or\n"
	 ".Sy debug .\n"
	 ".Ar module\n"
	 "is one of ours, such as lb, or a pattern of the names that\n"
	 ".Cm log show\n"
	 "lists, such as pmd.*; without one all of ours change.\n"
	 "It holds until the daemon ends, or the level in its configuration changes.\n"},
	{"services list", "All services and their counters.\n"},
	{"services show", "Everything about one of them.\n"},
	{"models list",
	 "All models that a service asks or a worker has: how many of its workers are active,\n"
	 "which services ask it, the versions that its workers have, and its tensors, each\n"
	 "with name, datatype and shape.\n"
	 "A dimension of -1 is free.\n"
	 "A model whose workers are all undescribed has no tensors here.\n"},
	{"models show",
	 "Everything about one of them: also the bytes of each tensor, of a request and of a\n"
	 "reply, and its workers.\n"
	 "Bytes that vary are -; where the first dimension is a batch, they are of one row.\n"},
	{"stats", "Counters of each lcore, the cycles that each stage of the walk takes\n"
		  "per item, the flow tables, and what was dropped for which reason.\n"
		  "An item is a packet, a request or a reply; of EGRESS also a TCP segment to a\n"
		  "client, of HOUSEKEEPING a round, a flow that ended or a connection that was\n"
		  "visited.\n"
		  "Polls that find nothing count for no stage.\n"
		  "Of the flow tables, NEW/S counts the new flows of the last second, LOAD is the\n"
		  "share of the table that is taken, LAG how late flows are ended, and TOO FAST\n"
		  "counts new flows of sources that opened too many at a time.\n"},
	{"top", "Services, workers, where requests' time goes and how busy the cores are, by what\n"
		"happened in the last second.\n"
		"On a terminal it is painted again each second;\n"
		".Cm q\n"
		"leaves,\n"
		".Cm s\n"
		"and\n"
		".Cm S\n"
		"sort the workers by the next column or the one before,\n"
		".Cm r\n"
		"the other way round.\n"},
	{"version", "Versions of this program, the daemon, the protocol and DPDK.\n"},
	{"doctor", "What can be said of the machine alone: memory, CPU flags and clock, RDMA\n"
		   "devices, GPUs.\n"},
	{"doctor lb", "Whether\n"
		      ".Xr doorbell-lb 8\n"
		      "can run here.\n"},
	{"doctor agent", "Whether\n"
			 ".Xr doorbell-agent 8\n"
			 "can run here.\n"
			 "It takes those of its options that matter.\n"},
};
const size_t cli_n_abouts = CLI_COUNT_OF(cli_abouts);

const struct cli_option_about cli_option_abouts[] = {
	{CLI_SERVICE, NULL, "Of this service.\n"},
	{CLI_WORKER, NULL, "Last sent to this worker.\n"},
	{CLI_CLIENT, NULL, "From this address or network.\n"},
	{CLI_STATE, NULL, "In this state.\n"},
	{CLI_ZONE, NULL,
	 "In this zone: a zone of the configuration or a port, and for a VLAN a dot and its\n"
	 "id, such as clients0.100.\n"},
	{CLI_MIN_BYTES, NULL, "That carried so many bytes of payload, both directions together.\n"},
	{CLI_MIN_IDLE, NULL, "Whose client has been silent for so long.\n"},
	{CLI_LIMIT, "flows list",
	 "Show so many at most.\n"
	 "The default is all of them, and 1000 with\n"
	 ".Fl -sort\n"
	 "or\n"
	 ".Fl -watch .\n"},
	{CLI_LIMIT, "flows top", "Show so many, 1000 at most.\nThe default is 20.\n"},
	{CLI_FLOW, NULL, "Which client, and which service if it talks to several.\n"},
	{CLI_PROTOCOL, NULL,
	 ".Sy udp\n"
	 "or\n"
	 ".Sy tcp ;\n"
	 "the default is both.\n"},
	{CLI_COUNT_N, "trace", "End after so many requests, 1 by default.\n"},
	{CLI_PORT, NULL, "Which port, by its name in the configuration.\n"},
	{CLI_FILE, NULL,
	 "Where to;\n"
	 ".Sy -\n"
	 "is the standard output.\n"},
	{CLI_FILTER, NULL,
	 "Only packets that this takes, as of\n"
	 ".Xr pcap-filter 7 :\n"
	 "for example\n"
	 ".Ql udp port 8500 and host 10.200.0.2 .\n"
	 "Names in it are looked up here.\n"
	 "Where the NIC takes VLAN tags out, the filter sees packets without them.\n"},
	{CLI_DIRECTION, NULL,
	 ".Sy in\n"
	 "(received),\n"
	 ".Sy out\n"
	 "(sent) or\n"
	 ".Sy both ,\n"
	 "which is the default.\n"},
	{CLI_SNAPLEN, NULL,
	 "Of each packet so many bytes at most, 14 to 65535.\n"
	 "The default is all.\n"},
	{CLI_COUNT_N, "capture", "End after so many packets.\n"},
	{CLI_FOR_SECONDS, NULL, "End after so long.\n"},
	{CLI_FOLLOW, NULL, "End with control-C.\n"},
	{CLI_SORT, NULL,
	 "Sort by this field of\n"
	 ".Xr doorbell-json 5 :\n"
	 "numbers with the largest first, text in alphabetical order.\n"
	 "The whole table is sent; only the rows that are shown are kept.\n"
	 "For bytes, packets and requests,\n"
	 ".Cm flows top\n"
	 "is much faster.\n"},
	{CLI_STREAM, NULL,
	 "With\n"
	 ".Fl -json :\n"
	 "each flow is an object on a line of its own, instead of one array of them.\n"
	 "Such output can be used before it has ended; whether it is complete the exit\n"
	 "status tells.\n"},
	{CLI_BY, "flows top",
	 ".Sy bytes\n"
	 "or\n"
	 ".Sy packets\n"
	 "of both directions together, or\n"
	 ".Sy requests .\n"
	 "The default is bytes.\n"},
	{CLI_BY, "flows count",
	 "Count for each\n"
	 ".Sy service , worker\n"
	 "or\n"
	 ".Sy state ,\n"
	 "and show the largest first.\n"
	 "\"-\" stands for services and workers that are no more.\n"},
	{CLI_NO_WAIT, NULL, "Do not wait.\n"},
	{CLI_TIMEOUT, NULL, "Wait for so long at most, 600 s by default.\n"},
	{CLI_PARTLY, NULL, "Also when NEW does not serve all services that OLD serves.\n"},
	{CLI_ABSENT, NULL,
	 "Also when there is no worker of this name: it holds when one registers.\n"},
	{CLI_ALL, NULL, "Show reasons that never occurred, too.\n"},
	{CLI_ONCE, NULL, "Print it once, as is done where there is no terminal.\n"},
	{CLI_CONFIG, NULL,
	 "Its configuration, without which only the machine is looked at: are there\n"
	 "hugepages for its flows, do its lcores exist and have a core to themselves, are\n"
	 "its ports there, with the right driver, a link, a fitting MTU and enough queues.\n"},
	{CLI_LB, NULL, "Where it is to register; is that reached?\n"},
	{CLI_ENGINE, NULL,
	 ".Cm soft\n"
	 "or\n"
	 ".Cm verbs ,\n"
	 "the agent's RDMA engine; default\n"
	 ".Cm soft .\n"},
	{CLI_DEVICE, NULL,
	 "With\n"
	 ".Cm soft\n"
	 "the DPDK device of the software RNIC; with\n"
	 ".Cm verbs\n"
	 "an RDMA device such as\n"
	 ".Sy mlx5_0 :\n"
	 "is its port active, has it a RoCE v2 GID for the address, the P_Key and the MTU.\n"
	 "Where none is named all are looked at, and what they lack is a warning.\n"},
	{CLI_ADDRESS, NULL, "The worker's own RoCEv2 address.\n"},
	{CLI_MTU, NULL, "The IP MTU.\n"},
	{CLI_MEMORY_MB, NULL, "Packet memory.\n"},
	{CLI_GPU_MEMORY_MB, NULL, "Memory that its worker may take on a GPU: is as much free?\n"},
	{CLI_NO_HUGEPAGES, NULL, "Packet memory is of ordinary pages.\n"},
	{CLI_LB_FABRIC_ADDRESS, NULL,
	 "The load balancer's address on the fabric.\n"
	 "Pings that no router may fragment are sent there, as large as RoCE packets are.\n"
	 "That needs a kernel interface on the fabric, which the line says if there is\n"
	 "none.\n"},
	{CLI_ROOT, NULL,
	 "Read files below this folder instead, such as\n"
	 ".Pa /host\n"
	 "in a container that has the host's\n"
	 ".Pa /sys\n"
	 "and\n"
	 ".Pa /proc\n"
	 "there.\n"},
};
const size_t cli_n_option_abouts = CLI_COUNT_OF(cli_option_abouts);

const char *const cli_option_completions[CLI_OPTIONS] = {
	[CLI_SERVICE] = "services",
	[CLI_WORKER] = "workers",
	[CLI_STATE] = "udp-one-way udp-answered udp-established",
	[CLI_SORT] =
		"client zone service worker state lcore age_s idle_s requests packets_in bytes_in "
		"packets_out bytes_out",
	[CLI_CONFIG] = "files",
	[CLI_ROOT] = "files",
	[CLI_FILE] = "files",
	[CLI_DIRECTION] = "in out both",
	[CLI_PROTOCOL] = "udp tcp",
	[CLI_ENGINE] = "soft verbs",
};
