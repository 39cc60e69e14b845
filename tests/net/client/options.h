/* SPDX-License-Identifier: BSD-3-Clause */
/* Long options from a table: parsing, range checks and the help text. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

enum option_kind {
	OPTION_NUMBER,  /* uint64_t, min..max */
	OPTION_SECONDS, /* double, above 0 */
	OPTION_TEXT,    /* const char * */
	OPTION_ADDRESS, /* struct address */
	OPTION_FLAG,    /* bool */
};

struct address {
	struct sockaddr_storage socket;
	socklen_t length; /* 0: not given */
};

struct client_option {
	const char *name;
	enum option_kind kind;
	void *value; /* holds the default before, the value after */
	uint64_t min;
	uint64_t max;
	const char *help;
};

/*
 * Parses argv[1..] by <table>, which ends with a row without name. Returns 0; 1 after it printed
 * the help that --help asked for; -EINVAL after it said on stderr what is wrong.
 */
int options_parse(int argc, char **argv, const char *usage, const struct client_option *table);

/* "192.0.2.1:9000" or "[2001:db8::1]:9000"; names are not resolved. -EINVAL if it is neither. */
int address_parse(const char *text, struct address *address);

#endif
