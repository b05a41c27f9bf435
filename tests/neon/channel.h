/* The socket protocol between the plugin NEON and its runner. Both are 64-bit little-endian
   processes with equal struct layouts. C89. */
#ifndef PLUGRAD_TESTS_NEON_CHANNEL_H
#define PLUGRAD_TESTS_NEON_CHANNEL_H

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

#define NEON_ARENA_BYTES ((uint64_t)1 << 30) /* size of the buffer file mapped by both processes */
#define NEON_SOCKET 3                        /* the runner's descriptors */
#define NEON_ARENA 4

enum neon_kind { NEON_OPEN, NEON_SYMBOL, NEON_CALL, NEON_CLOSE };

/* Followed by `size` bytes of a library (OPEN) or of a name (SYMBOL), or by buffer offsets in the
   arena and then scalars, 64 bits each (CALL). */
struct neon_request {
  uint64_t kind, size;
  uint64_t handle; /* of a library (SYMBOL, CLOSE) or a kernel (CALL), in the runner */
  uint64_t buffer_count, scalar_count, groups, counts[3];
};
/* `value`: a handle, 0 on failure. */
struct neon_reply {
  uint64_t value;
};

/* 1 on success; 0 if the other process has ended. */
static int neon_send(int socket, const void* bytes, uint64_t size) {
  const char* at = bytes;
  while (size > 0) {
    const long sent = (long)send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    at += sent;
    size -= (uint64_t)sent;
  }
  return 1;
}

static int neon_receive(int socket, void* bytes, uint64_t size) {
  char* at = bytes;
  while (size > 0) {
    const long received = (long)recv(socket, at, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return 0;
    at += received;
    size -= (uint64_t)received;
  }
  return 1;
}

#endif
