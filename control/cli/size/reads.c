/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/size/reads.h"

#include <math.h>

static double link_rate(const struct size_reads *r)
{
	return r->link_gbps * 1e9 / 8;
}

double size_reads_published(const struct size_reads *r)
{
	return r->tags * r->read_bytes / r->rtt_us * 1e6;
}

double size_reads_rate(const struct size_reads *r)
{
	double rate = size_reads_published(r);

	return r->link_gbps != 0 && rate > link_rate(r) ? link_rate(r) : rate;
}

double size_reads_full_rtt_us(const struct size_reads *r)
{
	return r->link_gbps != 0 ? r->tags * r->read_bytes / link_rate(r) * 1e6 : 0;
}

double size_reads_full_tags(const struct size_reads *r)
{
	return ceil(link_rate(r) * r->rtt_us / 1e6 / r->read_bytes);
}
