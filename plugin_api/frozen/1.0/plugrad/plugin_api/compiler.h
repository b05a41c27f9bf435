/* Kernel IR to source ("pgr.renderer") and source to binary ("pgr.compiler"). Both work without the
   hardware where possible: `device` may be NULL where the target is given in the options. */
#ifndef PLUGRAD_PLUGIN_API_COMPILER_H
#define PLUGRAD_PLUGIN_API_COMPILER_H

#include "plugrad/plugin_api/device.h"

typedef struct pgr_render_desc {
  uint32_t struct_size, struct_id;
  const void *next;
  const void *ir; /* a kernel IR block, 8-byte aligned */
  uint64_t ir_bytes;
  const pgr_option *options; /* dialect options: "dialect" = "c", … */
  uint32_t option_count, option_stride;
} pgr_render_desc;

typedef struct pgr_renderer_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] Source text for one kernel; the same input gives the same bytes, on every machine. A
     block that does not decode is INVALID_ARGUMENT, an op that the dialect lacks UNSUPPORTED. */
  pgr_status (*render)(pgr_device *device, const pgr_render_desc *desc, pgr_blob *out_source,
                       pgr_error *error);
} pgr_renderer_api;

#define PGR_CONTRACT_OFF 0u     /* every operation rounds */
#define PGR_CONTRACT_ALLOWED 1u /* a multiply and the add that uses it may round once */

typedef struct pgr_compile_desc {
  uint32_t struct_size, struct_id;
  const void *next;
  const void *input; /* source text, or the kernel IR block where the plugin has no renderer */
  uint64_t input_bytes;
  pgr_string name;   /* for messages */
  const pgr_option *options; /* "target", "cpu", "features", …: as the compiler documents */
  uint32_t option_count, option_stride;
  uint32_t contract; /* PGR_CONTRACT_* */
  uint32_t optimize; /* 0 to 3 */
} pgr_compile_desc;

/* what validate says of a cached binary */
#define PGR_BINARY_GOOD 0u
#define PGR_BINARY_RECOMPILE 1u
#define PGR_BINARY_FOREIGN 2u

typedef struct pgr_compiler_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] On COMPILE_FAILED the log says why; otherwise it holds warnings. out_log may be NULL. */
  pgr_status (*compile)(pgr_device *device, const pgr_compile_desc *desc, pgr_blob *out_binary,
                        pgr_blob *out_log, pgr_error *error);
  /* [any] Text that changes exactly when the output for the same input may change: compiler,
     version, target, flags. Cheap: does not load the compiler. */
  pgr_status (*cache_identity)(pgr_device *device, pgr_blob *out, pgr_error *error);
  /* [any] PGR_BINARY_*. (optional) NULL: GOOD when the identity fits. */
  pgr_status (*validate)(pgr_device *device, const void *binary, uint64_t binary_bytes,
                         uint32_t *out, pgr_error *error);
  /* [any] Text of a binary for people. (optional) */
  pgr_status (*disassemble)(pgr_device *device, const void *binary, uint64_t binary_bytes,
                            pgr_blob *out_text, pgr_error *error);
} pgr_compiler_api;

#endif
