/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Throughput of a GPU that reads over a fabric of PCIe: DxPU's model (He et al., ACM TACO 20(4),
 * 2023, doi 10.1145/3617995, section 3). Each read has a tag until its answer comes, so
 *
 *   bytes per second = tags * bytes of a read / round trip
 *
 * as long as the link is not full. Pure.
 */
#ifndef SIZE_READS_H
#define SIZE_READS_H

struct size_reads {
	double tags;       /* reads under way at a time */
	double read_bytes; /* of one read: at most PCIe's Max_Read_Request_Size */
	double rtt_us;     /* from a read to its answer */
	double link_gbps;  /* 0: unknown, so no limit */
};

/* Bytes per second. */
double size_reads_rate(const struct size_reads *r);
/* The same without the link's limit: the published formula. */
double size_reads_published(const struct size_reads *r);
/* Round trip up to which the tags fill the link, us; tags that fill it at this round trip. 0 when
 * the link is not known. */
double size_reads_full_rtt_us(const struct size_reads *r);
double size_reads_full_tags(const struct size_reads *r);

#endif
