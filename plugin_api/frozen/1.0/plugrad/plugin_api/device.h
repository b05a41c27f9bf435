/* What a device is and can do: facts that schedule and codegen use. Interface "pgr.device". */
#ifndef PLUGRAD_PLUGIN_API_DEVICE_H
#define PLUGRAD_PLUGIN_API_DEVICE_H

#include "plugrad/plugin_api/kernel_ir.h"
#include "plugrad/plugin_api/plugin.h"

/* Who the device is. Strings live as long as the device handle. */
typedef struct pgr_device_info {
  uint32_t struct_size, struct_id;
  const void *next;
  pgr_string stable_id; /* the same in every process and after a reboot: a UUID, a bus address */
  pgr_string name;      /* "AMD EPYC", for people */
  pgr_string arch;      /* compile target: "x86_64-znver4", "sm_90" */
  pgr_string vendor;
  pgr_string driver;    /* driver and its version */
  uint64_t memory_bytes;
  uint32_t is_software; /* 1: emulates a device on the CPU; never a default device */
  uint32_t reserved; /* 0 */
} pgr_device_info;

/* floating-point behaviour */
#define PGR_DENORMALS_PRESERVE 0u
#define PGR_DENORMALS_FLUSH 1u
#define PGR_DENORMALS_UNSPECIFIED 2u

/* A tensor core: D = A * B + C on tiles of m x k, k x n and m x n elements, shared by `threads`
   work-items, each of which holds a vector of every tile. A layout says which element a lane is: one
   byte a bit, first the bits of the lane's number, then those of the work-item's number among the
   `threads`, lowest first. A byte is PGR_LANE_BIT of the bit of m, n or k that it is; 0: none, so that
   the element is held several times (of A and B alone). Bytes behind the last are 0. */
#define PGR_TENSOR_CORE_LANES 0u /* work-items hold lanes, as the layouts say */
#define PGR_LANE_AXIS_M 1u
#define PGR_LANE_AXIS_N 2u
#define PGR_LANE_AXIS_K 3u
#define PGR_LANE_BIT(axis, bit) ((uint8_t)((axis) << 4 | (bit)))
typedef struct pgr_tensor_core {
  uint32_t struct_size, struct_id;
  const void *next;
  uint32_t kind; /* PGR_TENSOR_CORE_*; of unknown kind or dtypes: not used, but WMMA counts it */
  uint32_t n, m, k;
  uint32_t threads;
  uint32_t dtype_in, dtype_out;       /* of A and B (F16, BF16, F32 in 1.0); of C and D (F32) */
  uint32_t elems_a, elems_b, elems_c; /* elements held by each work-item */
  uint32_t fraction_bits_in;          /* to which A and B are rounded before; 0: they are not */
  uint32_t reserved; /* 0 */
  uint8_t layout_a[24], layout_b[24], layout_c[24];
} pgr_tensor_core;

/* What it can do. 0: no such thing; of limits and sizes, unknown. Absent fields read as 0. */
typedef struct pgr_device_caps {
  uint32_t struct_size, struct_id;
  const void *next;
  /* op x dtype: bit d of op_dtypes[op] is set when the op works on PGR_DTYPE d: of the source for
     casts and compares, of what memory ops move, of A in WMMA; BOOL where an op has none. */
  uint32_t op_dtypes[64];
  /* dtypes that memory may hold and LOAD and STORE may move, one bit each. */
  uint32_t storage_dtypes;
  uint32_t denormals;          /* PGR_DENORMALS_* for f32 */
  uint32_t contract_supported; /* 1: the compile option `contract` has an effect */
  /* Widest vector in lanes that a register holds, by dtype number; 1: scalar only. */
  uint32_t vector_lanes[32];
  uint32_t vector_registers;   /* registers of that width; 0 when unknown */
  uint32_t subgroup_size;      /* work-items that run in step; 1 on a CPU */
  uint32_t has_local;          /* 1: LOCAL_ID, local arrays and BARRIER work */
  uint32_t threads;            /* groups that run at once: CPU threads, GPU multiprocessors */
  uint32_t max_local_size[3];
  uint32_t max_local_total;    /* work-items in a group */
  uint32_t division;           /* error of FDIV and RECIP in ulp; 0: correctly rounded */
  uint64_t max_groups[3];
  uint64_t local_bytes;        /* most local memory of a group */
  uint64_t core_local_bytes;   /* local memory of a multiprocessor, shared by the groups that run on
                                  it; 0: unknown, at least local_bytes */
  uint32_t local_banks;        /* words of local memory that items in step reach at once where no
                                  two are of one bank; word w is of bank w % local_banks; 0: unknown */
  uint32_t local_bank_bytes;   /* of such a word */
  uint32_t local_in_cache;     /* 1: local memory is memory like any other, and no faster */
  uint32_t async_copy_bytes;   /* sizes that an ASYNC_COPY may have, added up: 4, 8 and 16 */
  uint64_t private_bytes;      /* private arrays of a work-item, as far as they stay cheap */
  uint64_t cache_bytes[3];     /* L1, L2, L3 as one core or multiprocessor sees them */
  uint64_t cache_line_bytes;
  uint64_t max_buffer_bytes;
  uint32_t max_params;         /* kernel parameters */
  uint32_t buffer_align_bytes; /* every allocation is at least this aligned */
  uint32_t unified_memory;     /* 1: map() gives the device's own memory, with no copy */
  uint32_t tensor_core_count;
  const pgr_tensor_core *tensor_cores; /* lives as long as the device handle */
  uint64_t tensor_core_stride;
} pgr_device_caps;

typedef struct pgr_memory_stats {
  uint32_t struct_size, struct_id;
  const void *next;
  uint64_t total_bytes, free_bytes, used_bytes; /* used: by this plugin in this process */
} pgr_memory_stats;

#define PGR_HEALTH_OK 0u
#define PGR_HEALTH_LOST 1u

typedef struct pgr_device_api {
  uint32_t struct_size, struct_id;
  const void *next;
  /* [any] Facts; they do not change while the device is open. */
  pgr_status (*info)(pgr_device *device, pgr_device_info *out, pgr_error *error);
  pgr_status (*caps)(pgr_device *device, pgr_device_caps *out, pgr_error *error);
  /* [any] */
  pgr_status (*memory_stats)(pgr_device *device, pgr_memory_stats *out, pgr_error *error);
  /* [any] PGR_HEALTH_*. (optional) NULL: always OK. */
  pgr_status (*health)(pgr_device *device, uint32_t *out, pgr_error *error);
  /* [any] Returns when all work given to the device so far is done. May block. */
  pgr_status (*synchronize)(pgr_device *device, pgr_error *error);
} pgr_device_api;

#endif
