/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/capture_filter.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>
#include <rte_common.h>

/* More than any useful expression takes; a program's text fits a line of the control protocol. */
#define INSTRUCTIONS_MAX 1024

struct capture_filter {
	unsigned int n;
	struct bpf_insn instruction[INSTRUCTIONS_MAX];
};

/* Read digits, and the character <end> behind them. Returns what follows, or NULL. */
static const char *read_number(const char *at, uint64_t max, char end, uint64_t *out)
{
	char *rest;

	if (*at < '0' || *at > '9')
		return NULL;
	errno = 0;
	*out = strtoull(at, &rest, 10);
	if (errno != 0 || *out > max || *rest != end)
		return NULL;
	return end == '\0' ? rest : rest + 1;
}

static const char *read_instruction(const char *at, char end, struct bpf_insn *out)
{
	uint64_t code, jt, jf, k;

	at = read_number(at, UINT16_MAX, ' ', &code);
	at = at != NULL ? read_number(at, UINT8_MAX, ' ', &jt) : NULL;
	at = at != NULL ? read_number(at, UINT8_MAX, ' ', &jf) : NULL;
	at = at != NULL ? read_number(at, UINT32_MAX, end, &k) : NULL;
	if (at != NULL)
		*out = (struct bpf_insn){(uint16_t)code, (uint8_t)jt, (uint8_t)jf, (uint32_t)k};
	return at;
}

/* Read the program's text. NULL, or a sentence that says what is wrong with it. */
static const char *read_program(const char *at, struct capture_filter *filter)
{
	uint64_t n;

	at = read_number(at, UINT32_MAX, ',', &n);
	if (at != NULL && n > INSTRUCTIONS_MAX)
		return "it has more than 1024 instructions; use a shorter expression";
	for (uint64_t i = 0; at != NULL && i < n; i++)
		at = read_instruction(at, i + 1 < n ? ',' : '\0', &filter->instruction[i]);
	if (at == NULL || n == 0)
		return "this is not a program of the classic BPF";
	filter->n = (unsigned int)n;
	return NULL;
}

/* --- is the program safe to run? libpcap's own check accepts code on which its interpreter aborts.
 */

/* The limits for an instruction's operand. */
enum limit { UNKNOWN, NONE, NOT_ZERO, SHIFT, MEMORY, JUMP, BRANCH };

static const uint8_t limits[256] = {
	[BPF_LD | BPF_W | BPF_ABS] = NONE,
	[BPF_LD | BPF_H | BPF_ABS] = NONE,
	[BPF_LD | BPF_B | BPF_ABS] = NONE,
	[BPF_LD | BPF_W | BPF_IND] = NONE,
	[BPF_LD | BPF_H | BPF_IND] = NONE,
	[BPF_LD | BPF_B | BPF_IND] = NONE,
	[BPF_LD | BPF_W | BPF_LEN] = NONE,
	[BPF_LD | BPF_IMM] = NONE,
	[BPF_LD | BPF_MEM] = MEMORY,
	[BPF_LDX | BPF_W | BPF_LEN] = NONE,
	[BPF_LDX | BPF_B | BPF_MSH] = NONE,
	[BPF_LDX | BPF_IMM] = NONE,
	[BPF_LDX | BPF_MEM] = MEMORY,
	[BPF_ST] = MEMORY,
	[BPF_STX] = MEMORY,
	[BPF_ALU | BPF_ADD | BPF_K] = NONE,
	[BPF_ALU | BPF_ADD | BPF_X] = NONE,
	[BPF_ALU | BPF_SUB | BPF_K] = NONE,
	[BPF_ALU | BPF_SUB | BPF_X] = NONE,
	[BPF_ALU | BPF_MUL | BPF_K] = NONE,
	[BPF_ALU | BPF_MUL | BPF_X] = NONE,
	[BPF_ALU | BPF_DIV | BPF_K] = NOT_ZERO,
	[BPF_ALU | BPF_DIV | BPF_X] = NONE,
	[BPF_ALU | BPF_MOD | BPF_K] = NOT_ZERO,
	[BPF_ALU | BPF_MOD | BPF_X] = NONE,
	[BPF_ALU | BPF_OR | BPF_K] = NONE,
	[BPF_ALU | BPF_OR | BPF_X] = NONE,
	[BPF_ALU | BPF_AND | BPF_K] = NONE,
	[BPF_ALU | BPF_AND | BPF_X] = NONE,
	[BPF_ALU | BPF_XOR | BPF_K] = NONE,
	[BPF_ALU | BPF_XOR | BPF_X] = NONE,
	[BPF_ALU | BPF_LSH | BPF_K] = SHIFT,
	[BPF_ALU | BPF_LSH | BPF_X] = NONE,
	[BPF_ALU | BPF_RSH | BPF_K] = SHIFT,
	[BPF_ALU | BPF_RSH | BPF_X] = NONE,
	[BPF_ALU | BPF_NEG] = NONE,
	[BPF_JMP | BPF_JA] = JUMP,
	[BPF_JMP | BPF_JEQ | BPF_K] = BRANCH,
	[BPF_JMP | BPF_JEQ | BPF_X] = BRANCH,
	[BPF_JMP | BPF_JGT | BPF_K] = BRANCH,
	[BPF_JMP | BPF_JGT | BPF_X] = BRANCH,
	[BPF_JMP | BPF_JGE | BPF_K] = BRANCH,
	[BPF_JMP | BPF_JGE | BPF_X] = BRANCH,
	[BPF_JMP | BPF_JSET | BPF_K] = BRANCH,
	[BPF_JMP | BPF_JSET | BPF_X] = BRANCH,
	[BPF_RET | BPF_K] = NONE,
	[BPF_RET | BPF_A] = NONE,
	[BPF_MISC | BPF_TAX] = NONE,
	[BPF_MISC | BPF_TXA] = NONE,
};

/* <left>: the number of instructions behind it, the only targets of jumps. */
static bool is_good(const struct bpf_insn *in, unsigned int left)
{
	switch (in->code < RTE_DIM(limits) ? limits[in->code] : UNKNOWN) {
	case NONE:
		return true;
	case NOT_ZERO:
		return in->k != 0;
	case SHIFT:
		return in->k < 32;
	case MEMORY:
		return in->k < BPF_MEMWORDS;
	case JUMP:
		return in->k < left;
	case BRANCH:
		return in->jt < left && in->jf < left;
	default:
		return false;
	}
}

static bool can_be_run(const struct capture_filter *filter)
{
	for (unsigned int i = 0; i < filter->n; i++)
		if (!is_good(&filter->instruction[i], filter->n - i - 1))
			return false;
	return BPF_CLASS(filter->instruction[filter->n - 1].code) == BPF_RET;
}

/* All successors of <in> may count on the words <written>; <next> is the instruction behind it. */
static void lead_on(const struct bpf_insn *in, uint16_t written, uint16_t *next)
{
	switch (limits[in->code]) {
	case JUMP:
		next[in->k] &= written;
		break;
	case BRANCH:
		next[in->jt] &= written;
		next[in->jf] &= written;
		break;
	default:
		if (BPF_CLASS(in->code) != BPF_RET)
			next[0] &= written;
	}
}

/*
 * The interpreter's memory is a part of the lcore's stack that is not cleared: a program that reads
 * it would reveal its contents by the packets that match. So every path to a load must pass a store
 * of the same word. As all jumps go forward, one pass over the instructions is enough.
 */
static bool reads_what_it_wrote(const struct capture_filter *filter)
{
	uint16_t written[INSTRUCTIONS_MAX]; /* bit per word: written on all paths to it */

	static_assert(BPF_MEMWORDS <= 16, "bits for all words");
	memset(written, 0xff, sizeof(written));
	written[0] = 0;
	for (unsigned int i = 0; i + 1 < filter->n; i++) {
		const struct bpf_insn *in = &filter->instruction[i];
		bool loads = BPF_CLASS(in->code) == BPF_LD || BPF_CLASS(in->code) == BPF_LDX;
		uint16_t word = limits[in->code] == MEMORY ? (uint16_t)(1u << in->k) : 0;

		if (loads && (written[i] & word) != word)
			return false;
		lead_on(in, written[i] | word, &written[i + 1]);
	}
	return true;
}

/* Check the program. NULL, or the reason why it must not run. */
static const char *check_program(const struct capture_filter *filter)
{
	if (!can_be_run(filter))
		return "it jumps back, as protochain makes it, or has an instruction that does "
		       "not exist; use another expression";
	if (!reads_what_it_wrote(filter))
		return "it reads memory that it has not written; use another expression";
	return NULL;
}

struct capture_filter *capture_filter_create(const char *program, char *error, size_t size)
{
	struct capture_filter *filter = malloc(sizeof(*filter));
	const char *fault = filter != NULL ? read_program(program, filter) : "no memory";

	if (fault == NULL)
		fault = check_program(filter);
	if (fault == NULL)
		return filter;
	snprintf(error, size, "%s", fault);
	free(filter);
	return NULL;
}

void capture_filter_destroy(struct capture_filter *filter)
{
	free(filter);
}

bool capture_filter_takes(const struct capture_filter *filter, const uint8_t *packet, uint32_t n,
			  uint32_t length)
{
	return bpf_filter(filter->instruction, packet, length, n) != 0;
}
