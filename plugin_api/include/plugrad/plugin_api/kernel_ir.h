/* Kernel IR: one kernel as one flat, pointer-free block of memory. The same bytes are the
   Renderer's input, the cache key, what a bug report attaches and what a worker process is sent.

   Layout: pgr_ir_header, then four tables of fixed-stride records (parameters, arrays,
   instructions, operands) and a text area, each found by the offset in the header. Offsets count
   from the start of the block and are multiples of 8. A reader walks each table by the stride in
   the header, so records may grow at their end. All integers are little-endian.

   Instructions are in execution order; number i defines value i. A source is an earlier, visible
   instruction (defined in the same block or an enclosing one). Blocks are opened by LOOP and IF and
   closed by END_LOOP and END_IF. Values never change; what varies lives in arrays. */
#ifndef PLUGRAD_PLUGIN_API_KERNEL_IR_H
#define PLUGRAD_PLUGIN_API_KERNEL_IR_H

#include <stdint.h>

#include "plugrad/plugin_api/kernel_ops.h"

#define PGR_IR_MAGIC 0x52494750u /* "PGIR" */
#define PGR_IR_VERSION 100u      /* 100 * major + minor; a reader takes all of its major */

/* dtypes: X(NAME, Pascal, number, size in bytes, name in text). Append-only. */
/* clang-format off */
#define PGR_DTYPES(X) \
  X(VOID,   Void,   0,  0, "void") \
  X(BOOL,   Bool,   1,  1, "bool") \
  X(I8,     I8,     2,  1, "i8")   \
  X(U8,     U8,     3,  1, "u8")   \
  X(I16,    I16,    4,  2, "i16")  \
  X(U16,    U16,    5,  2, "u16")  \
  X(I32,    I32,    6,  4, "i32")  \
  X(U32,    U32,    7,  4, "u32")  \
  X(I64,    I64,    8,  8, "i64")  \
  X(U64,    U64,    9,  8, "u64")  \
  X(F16,    F16,    10, 2, "f16")  \
  X(BF16,   BF16,   11, 2, "bf16") \
  X(F32,    F32,    12, 4, "f32")  \
  X(F64,    F64,    13, 8, "f64")  \
  X(F8E4M3, F8E4M3, 14, 1, "f8e4m3") \
  X(F8E5M2, F8E5M2, 15, 1, "f8e5m2")
/* clang-format on */
#define PGR_DTYPE_ENUM_(NAME, Pascal, number, size, text) PGR_DTYPE_##NAME = number,
enum pgr_dtype_number { PGR_DTYPES(PGR_DTYPE_ENUM_) PGR_DTYPE_COUNT = 16 };
#undef PGR_DTYPE_ENUM_

typedef struct pgr_ir_header {
  uint32_t magic;          /* PGR_IR_MAGIC */
  uint32_t version;        /* PGR_IR_VERSION of the writer */
  uint32_t header_bytes;   /* sizeof(pgr_ir_header) as the writer knew it */
  uint32_t flags;          /* PGR_IR_FLAG_* */
  uint64_t total_bytes;    /* of the whole block */
  uint32_t name_offset;    /* kernel name: a C identifier, UTF-8, not terminated */
  uint32_t name_bytes;
  uint32_t param_offset, param_stride, param_count;
  uint32_t array_offset, array_stride, array_count;
  uint32_t inst_offset, inst_stride, inst_count;
  uint32_t operand_offset; /* uint32_t each: sources of instructions that have more than 4 */
  uint32_t operand_count;
  uint32_t local_size[3];  /* work-items of a group along each axis: the LOCAL_ID bounds */
  uint64_t group_count[3]; /* groups along each axis as planned: the GROUP_ID bounds */
} pgr_ir_header;

/* header.flags */
#define PGR_IR_FLAG_CONTRACT 1u /* a multiply whose only use is an add may be fused with it */

/* A parameter: a buffer in device memory, or a scalar given at launch. In the order of launch. */
typedef struct pgr_ir_param {
  uint32_t kind;        /* PGR_PARAM_BUFFER or PGR_PARAM_SCALAR */
  uint32_t dtype;       /* of an element, or of the scalar */
  uint32_t flags;       /* PGR_PARAM_* flags */
  uint32_t align_bytes; /* the buffer's address is at least this aligned; 0: to its element */
  uint64_t elem_count;  /* elements in the buffer; no index is ever outside [0, elem_count) */
  int64_t min, max;     /* inclusive bounds of an integer scalar, u64 as its bits; floats: none */
} pgr_ir_param;
#define PGR_PARAM_BUFFER 0u
#define PGR_PARAM_SCALAR 1u
#define PGR_PARAM_READ 1u     /* the kernel reads it */
#define PGR_PARAM_WRITE 2u    /* the kernel writes it */
#define PGR_PARAM_NO_ALIAS 4u /* no other parameter reaches the same memory */

/* An array: private to a work-item (registers or stack), or local to its group. Uninitialised. */
typedef struct pgr_ir_array {
  uint32_t space; /* PGR_SPACE_PRIVATE or PGR_SPACE_LOCAL */
  uint32_t dtype;
  uint32_t align_bytes;
  uint32_t lanes; /* it is only read and written in aligned groups of so many elements; 1: any */
  uint64_t elem_count;
} pgr_ir_array;
#define PGR_SPACE_PRIVATE 0u
#define PGR_SPACE_LOCAL 1u

typedef struct pgr_ir_inst {
  uint16_t op;        /* PGR_OP_* */
  uint16_t dtype;     /* PGR_DTYPE_* of the result (of a lane); VOID when there is no value */
  uint16_t lanes;     /* of the result: 1, 2, 4, 8, 16, 32 or 64; STORE: of the value stored;
                         ASYNC_COPY: elements copied */
  uint16_t src_count;
  uint32_t src[4];    /* numbers of earlier instructions; with src_count > 4, src[0] is the first of
                         src_count entries in the operand table */
  uint64_t arg;       /* by op; CONST: bits of the value, zero-extended (bool 0 or 1, signed
                         integers sign-extended to 64 bits, floats their own bits) */
} pgr_ir_inst;
/* A LOOP or an id has dtype I32 or I64; an index has either. A source of an ALU op with one lane
   combines with any width: it stands for the same value in every lane. A LOAD or STORE of several
   lanes has a one-lane index (that of lane 0) and a gate of one or all lanes. */

#endif
