/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <pcap/pcap.h>

#include "cli/cli.h"

#define SNAPLEN 65535 /* bytes; has no effect on which packets match */

static char *print(const struct bpf_program *program)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fprintf(out, "%u", program->bf_len);
	for (unsigned int i = 0; i < program->bf_len; i++)
		fprintf(out, ",%u %u %u %u", program->bf_insns[i].code, program->bf_insns[i].jt,
			program->bf_insns[i].jf, program->bf_insns[i].k);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

char *cli_capture_filter(const char *expression, char *error, size_t size)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, SNAPLEN);
	struct bpf_program program;
	char *text = NULL;

	if (pcap == NULL) {
		snprintf(error, size, "out of memory");
		return NULL;
	}
	if (pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN) == 0) {
		text = print(&program);
		pcap_freecode(&program);
		snprintf(error, size, "out of memory");
	} else {
		snprintf(error, size, "%s", pcap_geterr(pcap));
	}
	pcap_close(pcap);
	return text;
}
