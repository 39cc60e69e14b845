/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes as a token file, and as the names in a certificate of a stranger. A token that is accepted
 * has a key and a name; a name that is allowed is one of the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "secure/secure.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void tokens(const uint8_t *data, size_t size)
{
	struct secure_tokens out;
	char why[160] = "";

	if (!secure_tokens_parse((const char *)data, size, &out, why, sizeof(why))) {
		require(why[0] != '\0', "a token refused without a reason");
		return;
	}
	require(out.n >= 1 && out.n <= SECURE_TOKENS_MAX, "so many tokens");
	for (unsigned int i = 0; i < out.n; i++)
		require(strlen(out.token[i].id) == SECURE_ID_BYTES, "a token without a name");
}

/* The first line is the certificate's, the rest the worker's. */
static void names(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *worker;

	worker = strchr(text, '\n');
	if (worker) {
		*worker++ = '\0';
		if (secure_names_allow(text, worker))
			require(*worker && (strcasestr(text, worker) || strchr(text, '*') ||
					    strstr(worker, "-gpu") || strstr(worker, "-cpu")),
				"a name from nowhere is allowed");
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	tokens(data, size);
	names(data, size);
	return 0;
}
