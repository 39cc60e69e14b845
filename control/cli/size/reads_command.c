/* SPDX-License-Identifier: BSD-3-Clause */
/* doorbell size reads */
#include "cli/size/commands.h"

#include <errno.h>

#include "cli/size/reads.h"
#include "runtime/option_table.h"

/* Below that a rate has no meaning, and may have no number. */
#define RTT_MIN_US 0.001

static const char usage[] =
	"doorbell size reads --tags N --read-bytes N --rtt-us T [--link-gbps N] [--want-gbps N]\n"
	"How fast a GPU reads from a host behind a fabric of PCIe: reads under way at a time,\n"
	"bytes of each, by their round trip. DxPU's model; see doorbell(1). Exits with 1 if\n"
	"--want-gbps is not reached.";

struct reads_options {
	struct size_reads reads;
	double want_gbps;
	bool json;
};

#define AT(field) OPTION_AT(struct reads_options, field)

static const struct option_row rows[] = {
	{"tags", OPTION_REAL, AT(reads.tags), "N", "reads under way at a time", 1, 1 << 20,
	 .required = true},
	{"read-bytes", OPTION_REAL, AT(reads.read_bytes), "N",
	 "bytes of a read: at most PCIe's Max_Read_Request_Size", 1, 4096, .required = true},
	{"rtt-us", OPTION_REAL, AT(reads.rtt_us), "T", "from a read to its answer", 0, 1000000,
	 .required = true},
	{"link-gbps", OPTION_REAL, AT(reads.link_gbps), "N",
	 "what the slowest link carries [0: not known]", 0, 100000},
	{"want-gbps", OPTION_REAL, AT(want_gbps), "N", "what is needed [0: nothing]", 0, 100000},
	{"json", OPTION_FLAG, AT(json), NULL, "print JSON; the fields are in doorbell-json(5)"},
	{0},
};

static const struct option_table reads_table = {
	.program = "doorbell size reads", .usage = usage, .rows = rows};

static void reads_print(const struct size_reads *r, double want_gbps, bool kept, FILE *out)
{
	double rate = size_reads_rate(r);

	fprintf(out, "throughput  %.3f GB/s (%.2f Gbit/s): %g reads of %g bytes in %g us%s\n",
		rate / 1e9, rate * 8 / 1e9, r->tags, r->read_bytes, r->rtt_us,
		rate < size_reads_published(r) ? "; the link is full" : "");
	if (r->link_gbps != 0)
		fprintf(out,
			"link        full up to a round trip of %.2f us, or from %.0f tags on at "
			"this one\n",
			size_reads_full_rtt_us(r), size_reads_full_tags(r));
	if (want_gbps != 0)
		fprintf(out, "wanted      %g Gbit/s: %s\n", want_gbps,
			kept ? "reached" : "NOT REACHED");
}

int size_reads_command(int argc, char **argv, FILE *out, json_t **object, bool *kept)
{
	struct reads_options o = {.json = false};
	int ret = options_parse(&reads_table, argc, argv, &o, NULL);

	*object = NULL;
	*kept = true;
	if (ret != 0)
		return ret;
	if (o.reads.rtt_us < RTT_MIN_US) {
		fprintf(stderr, "doorbell size reads: --rtt-us: give 0.001 or more\n");
		return -EINVAL;
	}
	*kept = size_reads_rate(&o.reads) * 8 / 1e9 >= o.want_gbps;
	if (o.json)
		*object = json_pack("{s:f, s:f, s:f, s:f, s:b}", "bytes_per_second",
				    size_reads_rate(&o.reads), "published_bytes_per_second",
				    size_reads_published(&o.reads), "link_full_rtt_us",
				    size_reads_full_rtt_us(&o.reads), "link_full_tags",
				    size_reads_full_tags(&o.reads), "wanted_reached", *kept);
	else
		reads_print(&o.reads, o.want_gbps, *kept, out);
	if (o.json && *object == NULL) { /* JSON has no such number */
		fprintf(stderr, "doorbell size reads: --json: a figure is endless; give a longer "
				"--rtt-us and a faster --link-gbps\n");
		return -EINVAL;
	}
	return 0;
}

void size_reads_names(void)
{
	options_print_names(rows);
}
