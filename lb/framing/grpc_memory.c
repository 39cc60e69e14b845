/* SPDX-License-Identifier: BSD-3-Clause */
#include "framing/grpc_memory.h"

#include <string.h>

#define PAGE_BYTES   8192
#define SMALLEST     64
#define LARGEST      (SMALLEST << (GRPC_MEMORY_CLASSES - 1))
#define LARGE_SIZE   GRPC_MEMORY_LARGE
#define LARGE_STRIDE ((LARGE_SIZE + SMALLEST - 1) / SMALLEST * SMALLEST)

struct grpc_piece {
	struct grpc_piece *next;
};

/* In front of the pieces of a page, which begin behind SMALLEST bytes. */
struct grpc_page {
	TAILQ_ENTRY(grpc_page) entry; /* of the free ones, or of those with free pieces */
	struct grpc_piece *free;
	uint32_t used, class;
};
_Static_assert(sizeof(struct grpc_page) <= SMALLEST, "a page's head");

static uint32_t memory_pages(uint32_t sessions, uint32_t usual)
{
	uint64_t bytes = (uint64_t)sessions * usual;

	return (uint32_t)(bytes / PAGE_BYTES) + GRPC_MEMORY_CLASSES;
}

size_t grpc_memory_bytes(uint32_t sessions, uint32_t usual)
{
	return (size_t)sessions * LARGE_STRIDE +
	       (size_t)(memory_pages(sessions, usual) + 1) * PAGE_BYTES;
}

void grpc_memory_init(struct grpc_memory *m, uint32_t sessions, uint32_t usual, uint32_t budget,
		      void *at)
{
	uint8_t *large = at;
	uintptr_t pages = (uintptr_t)(large + (size_t)sessions * LARGE_STRIDE);

	memset(m, 0, sizeof(*m));
	m->budget = budget;
	m->client_budget = (uint32_t)(grpc_memory_bytes(sessions, usual) / 4);
	TAILQ_INIT(&m->free_pages);
	for (unsigned int i = 0; i < GRPC_MEMORY_CLASSES; i++)
		TAILQ_INIT(&m->partly[i]);
	for (uint32_t i = sessions; i > 0; i--) {
		struct grpc_piece *piece = (void *)(large + (size_t)(i - 1) * LARGE_STRIDE);

		piece->next = m->free_large;
		m->free_large = piece;
	}
	/* A piece's page is found by its address. */
	m->first_page = (uint8_t *)((pages + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
	m->pages_end = m->first_page + (size_t)memory_pages(sessions, usual) * PAGE_BYTES;
	for (uint8_t *page = m->first_page; page < m->pages_end; page += PAGE_BYTES)
		TAILQ_INSERT_TAIL(&m->free_pages, (struct grpc_page *)page, entry);
}

static bool memory_is_small(const struct grpc_memory *m, const void *at)
{
	return (const uint8_t *)at >= m->first_page && (const uint8_t *)at < m->pages_end;
}

static struct grpc_page *memory_page(const void *at)
{
	return (struct grpc_page *)((uintptr_t)at / PAGE_BYTES * PAGE_BYTES);
}

static uint32_t memory_size(const struct grpc_memory *m, const void *at)
{
	return memory_is_small(m, at) ? SMALLEST << memory_page(at)->class : LARGE_SIZE;
}

/* Makes a free page one of this class. */
static struct grpc_page *memory_cut_page(struct grpc_memory *m, uint32_t class)
{
	struct grpc_page *page = TAILQ_FIRST(&m->free_pages);
	uint32_t size = SMALLEST << class, first = size > SMALLEST ? size : SMALLEST;

	if (page == NULL)
		return NULL;
	TAILQ_REMOVE(&m->free_pages, page, entry);
	page->class = class;
	page->used = 0;
	page->free = NULL;
	for (uint32_t at = first; at + size <= PAGE_BYTES; at += size) {
		struct grpc_piece *piece = (void *)((uint8_t *)page + at);

		piece->next = page->free;
		page->free = piece;
	}
	TAILQ_INSERT_HEAD(&m->partly[class], page, entry);
	return page;
}

static void *memory_take_small(struct grpc_memory *m, size_t size)
{
	uint32_t class = size <= SMALLEST ? 0 : 64 - 6 - (uint32_t)__builtin_clzll(size - 1);
	struct grpc_page *page = TAILQ_FIRST(&m->partly[class]);
	struct grpc_piece *piece;

	if (page == NULL)
		page = memory_cut_page(m, class);
	if (page == NULL)
		return NULL;
	piece = page->free;
	page->free = piece->next;
	page->used++;
	if (page->free == NULL)
		TAILQ_REMOVE(&m->partly[class], page, entry);
	return piece;
}

static void *memory_take_large(struct grpc_memory *m)
{
	struct grpc_piece *piece = m->free_large;

	if (piece != NULL)
		m->free_large = piece->next;
	return piece;
}

static void memory_give_small(struct grpc_memory *m, void *at)
{
	struct grpc_page *page = memory_page(at);
	struct grpc_piece *piece = at;

	if (page->free == NULL)
		TAILQ_INSERT_HEAD(&m->partly[page->class], page, entry);
	piece->next = page->free;
	page->free = piece;
	if (--page->used > 0)
		return;
	TAILQ_REMOVE(&m->partly[page->class], page, entry);
	TAILQ_INSERT_HEAD(&m->free_pages, page, entry);
}

static void memory_count(struct grpc_account *a, uint32_t bytes)
{
	a->used += bytes;
	if (a->client_used != NULL)
		*a->client_used += bytes;
}

static bool memory_may_take(const struct grpc_account *a, size_t size)
{
	return size <= LARGE_SIZE && a->used + size <= a->memory->budget &&
	       (a->client_used == NULL || *a->client_used + size <= a->memory->client_budget);
}

void *grpc_memory_take(size_t size, void *account)
{
	struct grpc_account *a = account;
	void *at;

	if (!memory_may_take(a, size))
		return NULL;
	at = size <= LARGEST ? memory_take_small(a->memory, size) : memory_take_large(a->memory);
	if (at != NULL)
		memory_count(a, memory_size(a->memory, at));
	return at;
}

void *grpc_memory_take_zeroed(size_t n, size_t size, void *account)
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	at = grpc_memory_take(bytes, account);
	if (at != NULL)
		memset(at, 0, bytes);
	return at;
}

void grpc_memory_give(void *at, void *account)
{
	struct grpc_account *a = account;
	struct grpc_piece *piece = at;

	if (at == NULL)
		return;
	memory_count(a, -memory_size(a->memory, at));
	if (memory_is_small(a->memory, at))
		return memory_give_small(a->memory, at);
	piece->next = a->memory->free_large;
	a->memory->free_large = piece;
}

void *grpc_memory_change(void *at, size_t size, void *account)
{
	struct grpc_account *a = account;
	uint32_t had = at == NULL ? 0 : memory_size(a->memory, at);
	void *to;

	if (at != NULL && size <= had)
		return at;
	to = grpc_memory_take(size, account);
	if (to == NULL || at == NULL)
		return to;
	memcpy(to, at, had);
	grpc_memory_give(at, account);
	return to;
}
