/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file as a YAML tree, and errors that point into it. Private to config*.c. */
#ifndef LB_CONFIG_YAML_H
#define LB_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#define CONFIG_FAULTS_MAX 8 /* reported by one run */
#define CONFIG_BYTES_MAX  (1u << 20)
#define CONFIG_DEPTH_MAX  16
#define CONFIG_PATH_MAX   160 /* "services[12].request_timeout_ms" */
#define CONFIG_QUOTE_MAX  64

struct config_yaml {
	const char *name; /* of the file, for errors */
	yaml_document_t document;
	char *error;
	size_t error_size;
	unsigned int faults; /* found so far; <error> has a line for each, as many as fit */
};

/* Build the tree. 0 and its root is a mapping; or -errno with <error> filled and nothing to close.
 */
int config_yaml_open(struct config_yaml *yaml, const char *text, size_t length);
void config_yaml_close(struct config_yaml *yaml);

/*
 * Add "name:line: path: sentence" to the error, on a line of its own; an empty <path> is left out.
 * Up to CONFIG_FAULTS_MAX faults are kept, and only the first may be cut short. Returns -EINVAL for
 * the caller to return.
 */
int config_fail(struct config_yaml *yaml, size_t line, const char *path, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The node's line in the file, from 1. */
size_t config_node_line(const yaml_node_t *node);
/* Make <text> fit for a one-line error: unprintable bytes as '?', long texts cut short. */
const char *config_quote(const char *text, size_t length, char quote[CONFIG_QUOTE_MAX]);

/* The value of <key> in a mapping, or NULL. */
yaml_node_t *config_find(struct config_yaml *yaml, yaml_node_t *mapping, const char *key);
/*
 * Write "list[index].key" to <path> and return its line, for checks after reading; <key> may be
 * NULL. A key that was left out has the line of its entry.
 */
size_t config_locate(struct config_yaml *yaml, const char *list, unsigned int index,
		     const char *key, char path[CONFIG_PATH_MAX]);
/* The same as config_fail(), for what config_locate() finds. */
int config_fail_at(struct config_yaml *yaml, const char *list, unsigned int index, const char *key,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* True when the file has the key "list[index].key". */
bool config_given(struct config_yaml *yaml, const char *list, unsigned int index, const char *key);

#endif
