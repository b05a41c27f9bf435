/* Loads binaries and launches kernels. Interface "pgr.runner". */
#ifndef PLUGRAD_PLUGIN_API_RUNNER_H
#define PLUGRAD_PLUGIN_API_RUNNER_H

#include "plugrad/plugin_api/memory.h"

typedef struct pgr_program pgr_program; /* a loaded binary */
typedef struct pgr_kernel pgr_kernel;   /* one kernel in it; lives as long as the program */

typedef struct pgr_kernel_limits {
  uint32_t struct_size, struct_id;
  const void *next;
  uint32_t max_local_total;
  uint32_t registers; /* used by a work-item; 0 when unknown */
  uint64_t local_bytes;
  uint64_t private_bytes;
} pgr_kernel_limits;

typedef struct pgr_launch_desc {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_buffer *const *buffers;  /* one for each buffer parameter, in parameter order */
  uint32_t buffer_count;
  uint32_t scalar_count;
  const uint64_t *scalars;     /* one for each scalar parameter, bits as in a CONST's arg */
  uint64_t group_count[3];     /* a count of 0 launches nothing */
  uint32_t local_size[3];      /* as in the kernel's IR header; others are refused or undefined */
  uint32_t timing;             /* 1: *out_time_ns is wanted, launch may wait; not in a graph node */
} pgr_launch_desc;

typedef struct pgr_runner_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] Copies what it needs of the binary; BAD_BINARY where that is not the compiler's. */
  pgr_status (*load)(pgr_device *device, const void *binary, uint64_t binary_bytes,
                     pgr_program **out, pgr_error *error);
  /* [any] NOT_FOUND when no kernel has the name. */
  pgr_status (*kernel)(pgr_device *device, pgr_program *program, const pgr_string *name, pgr_kernel **out,
                       pgr_error *error);
  /* [any] (optional) */
  pgr_status (*limits)(pgr_device *device, pgr_kernel *kernel, pgr_kernel_limits *out,
                       pgr_error *error);
  /* [serial per queue] In order on the queue. Without the queue claim it is finished on return.
     Arguments live for the call, buffers until the work is done. out_time_ns may be NULL. */
  pgr_status (*launch)(pgr_device *device, pgr_queue *queue, pgr_kernel *kernel,
                       const pgr_launch_desc *desc, uint64_t *out_time_ns, pgr_error *error);
  /* [any] Accepts NULL, never fails; waits for launches of it. */
  void (*unload)(pgr_device *device, pgr_program *program);
} pgr_runner_api;

#endif
