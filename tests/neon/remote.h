/* Client side of a device whose memory and processor belong to another process: the arena of
   buffers, and calls of the runner. */
#ifndef PLUGRAD_TESTS_NEON_REMOTE_H
#define PLUGRAD_TESTS_NEON_REMOTE_H

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "channel.h"
#include "plugrad/sdk/c_host_compiler.h"

struct neon_block {
  uint64_t offset, size;
  struct neon_block* next; /* sorted by offset */
};

struct neon_remote {
  pthread_mutex_t mutex;
  int socket, file;
  pid_t runner; /* 0: no request yet */
  char* arena;
  struct neon_block* blocks;
};

/* The first sufficient gap of the arena; NULL if there is none. */
static void* neon_alloc(struct neon_remote* remote, uint64_t align, uint64_t size) {
  struct neon_block *block = malloc(sizeof *block), **at = &remote->blocks;
  uint64_t begin = 0;
  if (!block) return NULL;
  size = size ? size : 1;
  pthread_mutex_lock(&remote->mutex);
  for (; *at && (*at)->offset < begin + size; at = &(*at)->next)
    begin = ((*at)->offset + (*at)->size + align - 1) / align * align;
  block->offset = begin, block->size = size, block->next = *at;
  if (size <= NEON_ARENA_BYTES && begin <= NEON_ARENA_BYTES - size)
    *at = block;
  else
    free(block), block = NULL;
  pthread_mutex_unlock(&remote->mutex);
  return block ? remote->arena + begin : NULL;
}

static void neon_free(struct neon_remote* remote, const char* data) {
  struct neon_block **at, *block;
  pthread_mutex_lock(&remote->mutex);
  for (at = &remote->blocks; remote->arena + (*at)->offset != data;) at = &(*at)->next;
  block = *at;
  *at = block->next;
  pthread_mutex_unlock(&remote->mutex);
  free(block);
}

/* NEON_COMMAND: the runner's command line as strings. */
static int neon_start(struct neon_remote* remote) {
  static char* const argv[] = {NEON_COMMAND, NULL};
  static char* const env[] = {"PATH=/usr/bin:/bin", NULL};
  posix_spawn_file_actions_t files;
  int ends[2], result;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1],
                                   13); /* avoids overwriting the other descriptor */
  posix_spawn_file_actions_adddup2(&files, remote->file, 14);
  posix_spawn_file_actions_adddup2(&files, 13, NEON_SOCKET);
  posix_spawn_file_actions_adddup2(&files, 14, NEON_ARENA);
  posix_spawn_file_actions_addclose(&files, 13);
  posix_spawn_file_actions_addclose(&files, 14);
  result = posix_spawn(&remote->runner, argv[0], &files, NULL, argv, env);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  remote->socket = ends[0];
  if (result != 0) close(ends[0]), remote->runner = 0;
  return result == 0;
}

/* The runner's answer; 0 also if the runner has ended. */
static uint64_t neon_ask(struct neon_remote* remote, const struct neon_request* request,
                         const void* payload, const void* scalars) {
  struct neon_reply reply;
  const uint64_t first = request->size + 8 * request->buffer_count;
  int is_answered;
  pthread_mutex_lock(&remote->mutex);
  is_answered = (remote->runner || neon_start(remote)) &&
                neon_send(remote->socket, request, sizeof *request) &&
                neon_send(remote->socket, payload, first) &&
                neon_send(remote->socket, scalars, 8 * request->scalar_count) &&
                neon_receive(remote->socket, &reply, sizeof reply);
  pthread_mutex_unlock(&remote->mutex);
  return is_answered ? reply.value : 0;
}

static struct neon_request neon_request_of(uint64_t kind, const void* handle, uint64_t size) {
  struct neon_request request;
  memset(&request, 0, sizeof request);
  request.kind = kind, request.handle = (uint64_t)(uintptr_t)handle, request.size = size;
  return request;
}

static pgr_status neon_open(struct neon_remote* remote, void** out, const char* bytes,
                            uint64_t size, pgr_error* error) {
  const struct neon_request request = neon_request_of(NEON_OPEN, NULL, size);
  *out = (void*)(uintptr_t)neon_ask(remote, &request, bytes, NULL);
  return *out ? PGR_STATUS_OK
              : pgr_fail(error, PGR_STATUS_DEVICE_LOST, "load: the runner cannot open the binary");
}

static void* neon_symbol(struct neon_remote* remote, const void* library, const pgr_string* name) {
  const struct neon_request request = neon_request_of(NEON_SYMBOL, library, name->size);
  return (void*)(uintptr_t)neon_ask(remote, &request, name->data, NULL);
}

static void neon_close(struct neon_remote* remote, const void* library) {
  const struct neon_request request = neon_request_of(NEON_CLOSE, library, 0);
  neon_ask(remote, &request, NULL, NULL);
}

/* Runs all groups of a kernel; `buffers` are sent as offsets. */
static pgr_status neon_call(struct neon_remote* remote, const void* kernel, void** buffers,
                            const pgr_launch_desc* desc, uint64_t groups, pgr_error* error) {
  struct neon_request request = neon_request_of(NEON_CALL, kernel, 0);
  uint64_t offsets[256];
  uint32_t i;
  for (i = 0; i < desc->buffer_count; ++i)
    offsets[i] = (uint64_t)((char*)buffers[i] - remote->arena);
  request.buffer_count = desc->buffer_count, request.scalar_count = desc->scalar_count;
  request.groups = groups;
  memcpy(request.counts, desc->group_count, sizeof request.counts);
  if (neon_ask(remote, &request, offsets, desc->scalars)) return PGR_STATUS_OK;
  return pgr_fail(error, PGR_STATUS_DEVICE_LOST, "launch: the runner has ended");
}

static int neon_begin(struct neon_remote* remote) {
  memset(remote, 0, sizeof *remote);
  remote->file = memfd_create("plugrad-neon", MFD_CLOEXEC);
  if (remote->file < 0 || ftruncate(remote->file, (off_t)NEON_ARENA_BYTES) != 0) return 0;
  remote->arena = mmap(NULL, NEON_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, remote->file, 0);
  pthread_mutex_init(&remote->mutex, NULL);
  return remote->arena != MAP_FAILED;
}

static void neon_end(struct neon_remote* remote) {
  struct neon_block* next;
  if (remote->runner) {
    close(remote->socket); /* ends the runner */
    while (waitpid(remote->runner, NULL, 0) < 0 && errno == EINTR) continue;
  }
  for (; remote->blocks; remote->blocks = next) next = remote->blocks->next, free(remote->blocks);
  munmap(remote->arena, NEON_ARENA_BYTES);
  close(remote->file);
}

#endif
