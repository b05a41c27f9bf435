/* Loads and calls kernels for the plugin NEON: an aarch64 program, run under qemu-user on other
   processors. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "channel.h"
#include "plugrad/sdk/c_host_compiler.h"

static char* arena;

static uint64_t open_library(const char* bytes, uint64_t size) {
  pgr_cc_library* library = malloc(sizeof *library);
  if (library && pgr_cc_open(library, bytes, size, NULL) == PGR_STATUS_OK)
    return (uint64_t)(uintptr_t)library;
  free(library);
  return 0;
}

static uint64_t find_symbol(const struct neon_request* request, const char* name) {
  const pgr_cc_library* library = (const pgr_cc_library*)(uintptr_t)request->handle;
  pgr_string text;
  text.data = name;
  text.size = request->size;
  return (uint64_t)(uintptr_t)pgr_cc_symbol(library, &text);
}

static uint64_t call(const struct neon_request* request, uint64_t* words) {
  void* buffers[256];
  uint64_t i;
  for (i = 0; i < request->buffer_count; ++i) buffers[i] = arena + words[i];
  pgr_cc_call((void*)(uintptr_t)request->handle, buffers, words + request->buffer_count,
              request->groups, request->counts);
  return 1;
}

static uint64_t close_library(uint64_t handle) {
  pgr_cc_library* library = (pgr_cc_library*)(uintptr_t)handle;
  dlclose(library->handle);
  free(library);
  return 1;
}

static uint64_t answer(const struct neon_request* request, void* payload) {
  switch (request->kind) {
    case NEON_OPEN:
      return open_library(payload, request->size);
    case NEON_SYMBOL:
      return find_symbol(request, payload);
    case NEON_CALL:
      return call(request, payload);
    default:
      return close_library(request->handle);
  }
}

int main(void) {
  struct neon_request request;
  struct neon_reply reply;
  arena = mmap(NULL, NEON_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, NEON_ARENA, 0);
  if (arena == MAP_FAILED) return 2;
  while (neon_receive(NEON_SOCKET, &request, sizeof request)) {
    const uint64_t size = request.size + 8 * (request.buffer_count + request.scalar_count);
    void* payload = malloc(size + 1);
    if (!payload || !neon_receive(NEON_SOCKET, payload, size)) return 3;
    reply.value = answer(&request, payload);
    free(payload);
    if (!neon_send(NEON_SOCKET, &reply, sizeof reply)) return 4;
  }
  return 0;
}
