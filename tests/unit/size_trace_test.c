/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/size/trace.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct trace trace;
static char error[256];

static int parse(const char *text)
{
	error[0] = '\0';
	return trace_parse(&trace, text, strlen(text), error, sizeof(error));
}

Test(size_trace, a_line_is_a_call)
{
	cr_assert_eq(parse("# a comment\n\n"
			   "cudaMalloc sync 1.5 20 0 64 8 # another\r\n"
			   "launch\tasync 0 4 30.25 256 0\n"
			   "device local 0 .5e 0 0 0"),
		     -EINVAL);
	cr_assert_str_eq(error, "line 5: call_us: '.5e' is no number; write digits, as 12 or 3.5");
	cr_assert_eq(trace.n, 0);
	cr_assert_eq(parse("# a comment\n\n"
			   "cudaMalloc sync 1.5 20 0 64 8 # another\r\n"
			   "launch\tasync 0 4 30.25 256 0\n"
			   "device local 0 0.5 0 0 0\n"
			   "synchronize wait 2 1 0 32 4"),
		     0, "%s", error);
	cr_assert_eq(trace.n, 4);
	cr_assert_eq(trace.call[0].kind, TRACE_SYNC);
	cr_assert_float_eq(trace.call[0].gap_us, 1.5, 1e-12);
	cr_assert_float_eq(trace.call[0].call_us, 20, 1e-12);
	cr_assert_eq(trace.call[0].sent, 64);
	cr_assert_eq(trace.call[0].received, 8);
	cr_assert_eq(trace.call[1].kind, TRACE_ASYNC);
	cr_assert_float_eq(trace.call[1].gpu_us, 30.25, 1e-12);
	cr_assert_eq(trace.call[2].kind, TRACE_LOCAL);
	cr_assert_eq(trace.call[3].kind, TRACE_WAIT);
	trace_fini(&trace);
}

static const struct {
	const char *text, *error;
} refused[] = {
	{"", "there is no call in it; write a line per call: name kind gap_us call_us gpu_us "
	     "sent_bytes received_bytes"},
	{"# nothing\n\n", "there is no call in it"},
	{"a sync 1 2 3 4", "line 1: 6 words; a call has 7"},
	{"\na sync 1 2 3 4 5 6", "line 2: 8 words; a call has 7"},
	{"a sink 1 2 3 4 5", "line 1: kind: 'sink' is none of local, async, sync, wait"},
	{"a syn 1 2 3 4 5", "line 1: kind: 'syn' is none of"},
	{"a sync -1 2 3 4 5", "line 1: gap_us: '-1' is no number"},
	{"a sync 1 nan 3 4 5", "line 1: call_us: 'nan' is no number"},
	{"a sync 1 2 inf 4 5", "line 1: gpu_us: 'inf' is no number"},
	{"a sync 1 0x10 3 4 5", "line 1: call_us: '0x10' is no number"},
	{"a sync 1 1.2.3 3 4 5", "line 1: call_us: '1.2.3' is no number"},
	{"a sync 1 2 3 4.5 5", "line 1: sent_bytes: '4.5' is no whole number; write digits"},
	{"a sync 1 2 3 4 -5", "line 1: received_bytes: '-5' is no whole number"},
	{"a sync 1 2 1000000001 4 5", "line 1: gpu_us: 1000000001 is too much; at most 1000000000"},
	{"a sync 1 2 3 99999999999999 5", "line 1: sent_bytes: 99999999999999 is too much"},
	{"a sync 1 99999999999999999999999999999999999999999999 3 4 5", "line 1: call_us: "},
	{"a local 1 2 3 0 0", "line 1: a local call has no work for the GPU"},
	{"a local 1 2 0 4 0", "line 1: a local call has no work for the GPU"},
	{"a async 1 2 3 4 5", "line 1: an async call receives no bytes"},
	{"a s\x1b[2J 1 2 3 4 5", "line 1: kind: 's?[2J' is none of"},
	{"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn sync 1 2 3 4 5",
	 "line 1: name: 'nnnnnnnnnnnnnnnnnnnn...' is longer than 63 characters"},
};

Test(size_trace, mistakes_are_named_with_their_line)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		cr_expect_eq(parse(refused[i].text), -EINVAL, "row %zu", i);
		cr_expect_eq(strncmp(error, refused[i].error, strlen(refused[i].error)), 0,
			     "row %zu: %s", i, error);
		cr_expect_eq(trace.n, 0);
		cr_expect_null(trace.call);
	}
}

Test(size_trace, files_are_read_whole)
{
	char path[] = "/tmp/doorbell-trace.XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");

	for (int i = 0; i < 20000; i++)
		fprintf(file, "k%d async 0 5 10 128 0\n", i);
	fclose(file);
	cr_assert_eq(trace_read(&trace, path, error, sizeof(error)), 0, "%s", error);
	cr_assert_eq(trace.n, 20000);
	trace_fini(&trace);
	unlink(path);
	cr_assert_eq(trace_read(&trace, path, error, sizeof(error)), -ENOENT);
	cr_assert_str_eq(error, "cannot be opened: No such file or directory");
	cr_assert_lt(trace_read(&trace, "/tmp", error, sizeof(error)), 0);
	cr_assert_str_eq(error, "cannot be read: Is a directory");
}
