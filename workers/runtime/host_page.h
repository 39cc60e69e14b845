/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The size of a page of this host, which need not be 4 KiB (arm64 has 64): what is mapped for a
 * device by itself must fill whole pages. Any thread.
 */
#ifndef RUNTIME_HOST_PAGE_H
#define RUNTIME_HOST_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Bytes; a power of two. */
static inline size_t host_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* <size> rounded up to whole pages. */
static inline size_t host_pages_up(size_t size)
{
	size_t page = host_page();

	return (size + page - 1) & ~(page - 1);
}

#endif
