/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters of captures: the program of an expression, and the error for a text that is not one. */
#include <criterion/criterion.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>

#include "observe/capture_filter.h"
#include "rows.h"

/* Compiles as the CLI does. */
static void compile(const char *expression, struct bpf_program *program)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);

	cr_assert_eq(pcap_compile(pcap, program, expression, 1, PCAP_NETMASK_UNKNOWN), 0, "%s: %s",
		     expression, pcap_geterr(pcap));
	pcap_close(pcap);
}

static void print(const struct bpf_program *program, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "%u", program->bf_len);

	for (unsigned int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *in = &program->bf_insns[i];

		at += (size_t)snprintf(text + at, size - at, ",%u %u %u %u", in->code, in->jt,
				       in->jf, in->k);
	}
}

static const char *const expressions[] = {
	"udp",
	"ip",
	"ip6",
	"arp",
	"icmp or icmp6",
	"vlan",
	"vlan and udp port 8000",
	"udp port 8000",
	"udp dst port 4791",
	"udp portrange 39000-41000",
	"not udp",
	"host 192.0.2.7",
	"src net 192.0.2.0/24 and dst host 198.51.100.1",
	"host 2001:db8::7",
	"ip6 and udp src port 40000",
	"ether host 02:00:00:00:00:07",
	"ether broadcast or ether multicast",
	"greater 100",
	"less 60",
	"ip[6:2] & 0x1fff != 0",
	"udp[8] == 0x40",
	"udp[8:4] = 0x40414243",
	"len % 7 = 3",
	"ip[0] & 0xf > 5",
	"ip[2:2] - ((ip[0] & 0xf) << 2) > 20",
	"ether[len - 1] = 0x44",
	"udp[5] & 3 != 0",
};

static unsigned int compare(const struct capture_filter *filter, const struct bpf_program *program,
			    const char *expression)
{
	unsigned int taken = 0;

	for (unsigned int r = 0; r < packet_rows_n; r++) {
		uint8_t frame[PACKET_MAX];
		uint32_t n = packet_build(&packet_rows[r].packet, frame);

		/* also when the end of it was cut off */
		for (uint32_t here = n; here > 0; here = here * 2 / 3) {
			struct pcap_pkthdr header = {.caplen = here, .len = n};
			bool wanted = pcap_offline_filter(program, &header, frame) != 0;

			cr_expect_eq(capture_filter_takes(filter, frame, here, n), wanted,
				     "'%s', packet '%s', %u bytes of it", expression,
				     packet_rows[r].name, here);
			taken += wanted && here == n;
		}
	}
	return taken;
}

Test(lb_capture_filter, takes_the_packets_that_the_expression_says, .timeout = 60)
{
	char text[8192], error[160];

	for (unsigned int i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		struct capture_filter *filter;
		struct bpf_program program;

		compile(expressions[i], &program);
		print(&program, text, sizeof(text));
		filter = capture_filter_create(text, error, sizeof(error));
		cr_assert(filter, "'%s' (%s): %s", expressions[i], text, error);
		cr_expect_gt(compare(filter, &program, expressions[i]), 0,
			     "no packet of the rows fits '%s'", expressions[i]);
		capture_filter_destroy(filter);
		pcap_freecode(&program);
	}
}

static const char *const garbage[] = {
	"",
	"0",
	"1",
	"0,6 0 0 1",
	"1,6 0 0",
	"1,6 0 0 1,",
	"1,6 0 0 1 1",
	"2,6 0 0 1",
	"1,6 0 0 1,6 0 0 1",
	"1, 6 0 0 1",
	"1,-6 0 0 1",
	"1,6 0 0 4294967296",
	"1,65536 0 0 1",
	"1,6 256 0 1",
	"1025,6 0 0 1",
	"99999999999999999999,6 0 0 1",
	"x",
	/* digits that are no valid program: it runs off its end, jumps past it, has an unknown
	   opcode, divides by 0 */
	"1,48 0 0 0",
	"2,21 3 0 1,6 0 0 1",
	"2,5 0 0 4294967295,6 0 0 1",
	"2,255 0 0 0,6 0 0 1",
	"3,48 0 0 0,52 0 0 0,6 0 0 1",
	"3,48 0 0 0,148 0 0 0,6 0 0 1",
	"2,100 0 0 32,6 0 0 1",
	"2,7 0 0 0,65542 0 0 1",
	/* memory that does not exist */
	"2,96 0 0 16,6 0 0 1",
	"2,2 0 0 16,6 0 0 1",
	"2,3 0 0 4294967295,6 0 0 1",
};

Test(lb_capture_filter, refuses_what_is_no_program)
{
	for (unsigned int i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		char error[160] = "";
		struct capture_filter *filter =
			capture_filter_create(garbage[i], error, sizeof(error));

		cr_expect_null(filter, "'%s' was taken", garbage[i]);
		cr_expect_neq(error[0], 0, "%s", garbage[i]);
		capture_filter_destroy(filter);
	}
}

/* A program's memory starts with what the lcore's stack held there. */
static const struct {
	const char *program;
	bool taken;
} memory[] = {
	{"2,96 0 0 3,22 0 0 0", false},
	{"3,97 0 0 3,135 0 0 0,22 0 0 0", false},
	{"3,2 0 0 2,96 0 0 3,22 0 0 0", false},
	/* only one of two ways goes by the store, or both do */
	{"4,21 0 1 7,2 0 0 3,96 0 0 3,22 0 0 0", false},
	{"4,21 1 0 7,2 0 0 3,96 0 0 3,22 0 0 0", false},
	{"4,5 0 0 1,2 0 0 3,96 0 0 3,22 0 0 0", false},
	{"6,21 0 2 7,2 0 0 3,5 0 0 1,3 0 0 3,96 0 0 3,22 0 0 0", true},
	{"3,2 0 0 15,97 0 0 15,22 0 0 0", true},
	/* unreachable */
	{"4,6 0 0 1,96 0 0 3,22 0 0 0,6 0 0 0", true},
};

Test(lb_capture_filter, reads_no_memory_that_it_has_not_written)
{
	for (unsigned int i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		char error[160] = "";
		struct capture_filter *filter =
			capture_filter_create(memory[i].program, error, sizeof(error));

		cr_expect_eq(filter != NULL, memory[i].taken, "'%s': %s", memory[i].program, error);
		cr_expect_eq(strstr(error, "memory that it has not written") != NULL,
			     !memory[i].taken, "%s", error);
		capture_filter_destroy(filter);
	}
}

Test(lb_capture_filter, a_program_that_is_too_long_is_told_so)
{
	char error[160] = "";

	cr_expect_null(capture_filter_create("1025,6 0 0 1", error, sizeof(error)));
	cr_expect(strstr(error, "more than 1024 instructions; use a shorter"), "%s", error);
}

Test(lb_capture_filter, a_load_beyond_the_packet_takes_nothing)
{
	char error[160];
	struct capture_filter *filter =
		capture_filter_create("2,32 0 0 2147483640,6 0 0 1", error, sizeof(error));

	cr_assert(filter, "%s", error);
	cr_expect_not(capture_filter_takes(filter, (const uint8_t *)"12345678", 8, 8));
	capture_filter_destroy(filter);
}

Test(lb_capture_filter, what_loops_is_refused)
{
	char error[160], text[8192];
	struct bpf_program program;

	compile("ip6 protochain 17", &program);
	print(&program, text, sizeof(text));
	cr_expect_null(capture_filter_create(text, error, sizeof(error)));
	cr_expect(strstr(error, "it jumps back, as protochain"), "%s", error);
	pcap_freecode(&program);
}
