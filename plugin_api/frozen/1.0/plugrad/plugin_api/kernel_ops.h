/* The ops that a plugin can see: one line each, the only list of them.
   X(NAME, Pascal, number, min_sources, max_sources, class, meaning)
   Numbers are append-only. 255 sources means "as many as inst.src_count says".
   What each op does at the edges of each dtype is in docs/kernel-ir.md. */
#ifndef PLUGRAD_PLUGIN_API_KERNEL_OPS_H
#define PLUGRAD_PLUGIN_API_KERNEL_OPS_H

/* Classes: how an instruction behaves, so that a reader can treat unknown ops in groups. */
#define PGR_OP_CLASS_STRUCTURE 0u /* parameters, arrays, constants, ids, control flow */
#define PGR_OP_CLASS_MEMORY 1u    /* reads or writes memory, or orders it */
#define PGR_OP_CLASS_LANES 2u     /* builds vectors and takes them apart */
#define PGR_OP_CLASS_ALU 3u       /* pure arithmetic, lane by lane */

/* clang-format off */
#define PGR_KERNEL_OPS(X) \
  X(NOP,        Nop,        0,  0, 0,   PGR_OP_CLASS_STRUCTURE, "does nothing") \
  X(PARAM,      Param,      1,  0, 0,   PGR_OP_CLASS_STRUCTURE, "kernel parameter number arg: a pointer (buffer) or a value (scalar)") \
  X(ARRAY,      Array,      2,  0, 0,   PGR_OP_CLASS_STRUCTURE, "array number arg of the array table: a pointer") \
  X(CONST,      Const,      3,  0, 0,   PGR_OP_CLASS_STRUCTURE, "constant; arg is the value's bits, see kernel_ir.h") \
  X(GROUP_ID,   GroupId,    4,  0, 0,   PGR_OP_CLASS_STRUCTURE, "index of this work-group along axis arg (0 to 2)") \
  X(LOCAL_ID,   LocalId,    5,  0, 0,   PGR_OP_CLASS_STRUCTURE, "index of this work-item in its group along axis arg (0 to 2)") \
  X(LOOP,       Loop,       6,  2, 2,   PGR_OP_CLASS_STRUCTURE, "opens a loop; its value counts up from src0 and stays below src1") \
  X(END_LOOP,   EndLoop,    7,  1, 1,   PGR_OP_CLASS_STRUCTURE, "closes the loop src0") \
  X(IF,         If,         8,  1, 1,   PGR_OP_CLASS_STRUCTURE, "opens a block that runs where src0 (bool) is true") \
  X(END_IF,     EndIf,      9,  1, 1,   PGR_OP_CLASS_STRUCTURE, "closes the block src0") \
  X(LOAD,       Load,       10, 2, 4,   PGR_OP_CLASS_MEMORY,    "reads lanes consecutive elements at pointer src0, element index src1; with gate src2, lanes whose gate is false read nothing and are src3") \
  X(STORE,      Store,      11, 3, 4,   PGR_OP_CLASS_MEMORY,    "writes src2 at pointer src0, element index src1; with gate src3, lanes whose gate is false write nothing") \
  X(ATOMIC_ADD, AtomicAdd,  12, 3, 4,   PGR_OP_CLASS_MEMORY,    "adds src2 atomically (relaxed) at pointer src0, element index src1; gate as in STORE; has no value") \
  X(BARRIER,    Barrier,    13, 0, 0,   PGR_OP_CLASS_MEMORY,    "all work-items of the group wait here; their memory writes become visible in the group") \
  X(VECTOR,     Vector,     14, 1, 255, PGR_OP_CLASS_LANES,     "concatenates the lanes of its sources; one scalar source is repeated to every lane") \
  X(LANE,       Lane,       15, 1, 1,   PGR_OP_CLASS_LANES,     "inst.lanes consecutive lanes of src0, from lane number arg") \
  X(WMMA,       Wmma,       16, 3, 3,   PGR_OP_CLASS_LANES,     "matrix multiply-add src0 * src1 + src2 by tensor core number arg of the device's table") \
  X(ASYNC_COPY, AsyncCopy,  17, 4, 5,   PGR_OP_CLASS_MEMORY,    "starts to copy lanes consecutive elements to local array src0, element index src1, from buffer src2, element index src3; with gate src4, where it is false, to write zero bits instead") \
  X(ASYNC_COMMIT, AsyncCommit, 18, 0, 0, PGR_OP_CLASS_MEMORY,   "makes one group of the copies that this work-item started since its last one") \
  X(ASYNC_WAIT, AsyncWait,  19, 0, 0,   PGR_OP_CLASS_MEMORY,    "waits until at most arg of this work-item's groups of copies are under way, the youngest ones") \
  X(ADD,        Add,        20, 2, 2,   PGR_OP_CLASS_ALU,       "src0 + src1; integers wrap") \
  X(SUB,        Sub,        21, 2, 2,   PGR_OP_CLASS_ALU,       "src0 - src1; integers wrap") \
  X(MUL,        Mul,        22, 2, 2,   PGR_OP_CLASS_ALU,       "src0 * src1; integers wrap") \
  X(NEG,        Neg,        23, 1, 1,   PGR_OP_CLASS_ALU,       "-src0; integers wrap, floats flip the sign bit") \
  X(IDIV,       IDiv,       24, 2, 2,   PGR_OP_CLASS_ALU,       "integer quotient truncated towards zero; x/0 is 0; lowest/-1 wraps to lowest") \
  X(MOD,        Mod,        25, 2, 2,   PGR_OP_CLASS_ALU,       "src0 - src1 * IDIV(src0, src1): has the sign of src0; x mod 0 is x") \
  X(MAX,        Max,        26, 2, 2,   PGR_OP_CLASS_ALU,       "the larger; NaN if either is NaN; max(-0, +0) may be either") \
  X(RECIP,      Recip,      27, 1, 1,   PGR_OP_CLASS_ALU,       "1 / src0, floats only, correctly rounded") \
  X(FDIV,       FDiv,       28, 2, 2,   PGR_OP_CLASS_ALU,       "src0 / src1, floats only, correctly rounded") \
  X(SQRT,       Sqrt,       29, 1, 1,   PGR_OP_CLASS_ALU,       "square root, floats only, correctly rounded; NaN below -0") \
  X(FMA,        Fma,        30, 3, 3,   PGR_OP_CLASS_ALU,       "src0 * src1 + src2 rounded once") \
  X(TRUNC,      Trunc,      31, 1, 1,   PGR_OP_CLASS_ALU,       "rounds a float towards zero to an integral float") \
  X(AND,        And,        32, 2, 2,   PGR_OP_CLASS_ALU,       "bitwise and; bool and integers") \
  X(OR,         Or,         33, 2, 2,   PGR_OP_CLASS_ALU,       "bitwise or; bool and integers") \
  X(XOR,        Xor,        34, 2, 2,   PGR_OP_CLASS_ALU,       "bitwise exclusive or; bool and integers") \
  X(SHL,        Shl,        35, 2, 2,   PGR_OP_CLASS_ALU,       "src0 shifted left by src1 bits; counts outside [0, bits) give 0") \
  X(SHR,        Shr,        36, 2, 2,   PGR_OP_CLASS_ALU,       "src0 shifted right, arithmetic when signed; counts outside [0, bits) give 0, or -1 when src0 < 0") \
  X(CMPLT,      CmpLt,      37, 2, 2,   PGR_OP_CLASS_ALU,       "bool: src0 < src1; false with NaN") \
  X(CMPEQ,      CmpEq,      38, 2, 2,   PGR_OP_CLASS_ALU,       "bool: src0 == src1; false with NaN") \
  X(CMPNE,      CmpNe,      39, 2, 2,   PGR_OP_CLASS_ALU,       "bool: src0 != src1; true with NaN") \
  X(WHERE,      Where,      40, 3, 3,   PGR_OP_CLASS_ALU,       "src1 where src0 (bool) is true, else src2") \
  X(CAST,       Cast,       41, 1, 1,   PGR_OP_CLASS_ALU,       "value of src0 in inst.dtype; rules in docs/kernel-ir.md") \
  X(BITCAST,    Bitcast,    42, 1, 1,   PGR_OP_CLASS_ALU,       "bits of src0 read as inst.dtype of the same size") \
  X(EXP2,       Exp2,       43, 1, 1,   PGR_OP_CLASS_ALU,       "2 to the power src0, floats only (claim)") \
  X(LOG2,       Log2,       44, 1, 1,   PGR_OP_CLASS_ALU,       "base-2 logarithm, floats only (claim)") \
  X(SIN,        Sin,        45, 1, 1,   PGR_OP_CLASS_ALU,       "sine of src0 in radians, floats only (claim)")
/* clang-format on */

#define PGR_OP_ENUM_(NAME, Pascal, number, lo, hi, op_class, meaning) PGR_OP_##NAME = number,
/* Op numbers as they stand in pgr_ir_inst.op. */
enum pgr_op_number { PGR_KERNEL_OPS(PGR_OP_ENUM_) PGR_OP_RESERVED_ = 0x7fff };
#undef PGR_OP_ENUM_

#endif
