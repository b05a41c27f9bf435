/* Memory of a device. Interface "pgr.allocator". */
#ifndef PLUGRAD_PLUGIN_API_MEMORY_H
#define PLUGRAD_PLUGIN_API_MEMORY_H

#include "plugrad/plugin_api/plugin.h"

typedef struct pgr_buffer pgr_buffer;
typedef struct pgr_queue pgr_queue; /* NULL: the handle's in-order queue; serialised like others */

/* alloc flags; unknown bits are ignored */
#define PGR_ALLOC_HOST_VISIBLE 1u /* map() should be cheap */
#define PGR_ALLOC_ZERO 2u         /* contents start as zero bytes; otherwise they are unspecified */

typedef struct pgr_alloc_desc {
  uint32_t struct_size, struct_id;
  const void *next;
  uint64_t size_bytes;  /* 0 is allowed and gives a buffer that nothing may access */
  uint64_t align_bytes; /* power of two; 0: the device's own buffer_align_bytes */
  uint32_t flags;       /* PGR_ALLOC_* */
  uint32_t reserved; /* 0 */
} pgr_alloc_desc;

typedef struct pgr_allocator_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] May block. On failure *out is untouched. The caller frees with `free`. */
  pgr_status (*alloc)(pgr_device *device, const pgr_alloc_desc *desc, pgr_buffer **out,
                      pgr_error *error);
  /* [any] Work already queued on the buffer still finishes. Accepts NULL, never fails. */
  void (*free)(pgr_device *device, pgr_buffer *buffer);
  /* [serial per queue] Host memory may be reused on return. Bad ranges are INVALID_ARGUMENT. */
  pgr_status (*copy_in)(pgr_device *device, pgr_queue *queue, pgr_buffer *dst,
                        uint64_t dst_offset_bytes, const void *src, uint64_t size_bytes,
                        pgr_error *error);
  /* [serial per queue] Blocks until the bytes are there. */
  pgr_status (*copy_out)(pgr_device *device, pgr_queue *queue, void *dst, pgr_buffer *src,
                         uint64_t src_offset_bytes, uint64_t size_bytes, pgr_error *error);
  /* [serial per queue] Both buffers are of this device; ranges of one buffer must not overlap. */
  pgr_status (*copy)(pgr_device *device, pgr_queue *queue, pgr_buffer *dst,
                     uint64_t dst_offset_bytes, pgr_buffer *src, uint64_t src_offset_bytes,
                     uint64_t size_bytes, pgr_error *error);
  /* [serial per queue] Repeats 1, 2, 4 or 8 bytes; size is a multiple of them. (optional) */
  pgr_status (*fill)(pgr_device *device, pgr_queue *queue, pgr_buffer *dst,
                     uint64_t dst_offset_bytes, uint64_t size_bytes, const void *pattern,
                     uint64_t pattern_bytes, pgr_error *error);
  /* [any] Host address of the buffer until unmap; waits for queued work on it. (optional) */
  pgr_status (*map)(pgr_device *device, pgr_buffer *buffer, void **out_pointer, pgr_error *error);
  pgr_status (*unmap)(pgr_device *device, pgr_buffer *buffer, pgr_error *error);
  /* [any] A buffer that is a range of another one and keeps it alive. The offset is a multiple of
     buffer_align_bytes. Freed like any other. (optional) */
  pgr_status (*sub_buffer)(pgr_device *device, pgr_buffer *parent, uint64_t offset_bytes,
                           uint64_t size_bytes, pgr_buffer **out, pgr_error *error);
} pgr_allocator_api;

#endif
