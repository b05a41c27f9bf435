// CUDA C for NVRTC and Clang, without headers of the toolkit. Each work-item of a warp is scalar;
// only operands of tensor cores are vectors, as structs. Signed arithmetic is rendered as unsigned:
// overflow wraps in the IR but is undefined in C++.
#include "render/dialects/c_rows.h"
#include "render/dialects/dialect.h"

namespace plugrad::render {
namespace {

// clang-format off
constexpr TypeRow kTypes[16] = {
    {"void", nullptr, ""},
    {"bool", nullptr, ""},
    {"i8", "signed char", ""},
    {"u8", "unsigned char", ""},
    {"i16", "short", ""},
    {"u16", "unsigned short", ""},
    {"i32", "int", ""},
    {"u32", "unsigned", "u"},
    {"i64", "long long", "ll"},
    {"u64", "unsigned long long", "ull"},
    {"f16", "unsigned short", ""},  // stored as its bits
    {"bf16", "unsigned short", ""},
    {"f32", "float", "f"},
    {"f64", "double", ""},
    {"f8e4m3", "unsigned char", ""},
    {"f8e5m2", "unsigned char", ""},
};
// clang-format on

constexpr char kHeader[] =
    "#define restrict __restrict__\n"
    "#ifdef __clang__ // what NVRTC has built in\n"
    "#define __global__ __attribute__((global))\n"
    "#define __device__ __attribute__((device))\n"
    "#define __shared__ __attribute__((shared))\n"
    "#define __forceinline__ inline __attribute__((always_inline))\n"
    "#define __launch_bounds__(items) __attribute__((launch_bounds(items)))\n"
    "struct index3 { int x, y, z; };\n"
    "#define blockIdx index3{__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), \\\n"
    "                        __nvvm_read_ptx_sreg_ctaid_z()}\n"
    "#define threadIdx index3{__nvvm_read_ptx_sreg_tid_x(), __nvvm_read_ptx_sreg_tid_y(), \\\n"
    "                         __nvvm_read_ptx_sreg_tid_z()}\n"
    "#endif\n";

#define PLUGRAD_CUDA_INLINE "static __device__ __forceinline__ "

// One instruction for f32 and f64.
#define PLUGRAD_UNARY(name, f32_op, f64_op)                                                       \
  PLUGRAD_CUDA_INLINE "float " name "(float x) { asm(\"" f32_op                                   \
                      " %0, %0;\" : \"+f\"(x)); return x; }\n" PLUGRAD_CUDA_INLINE "double " name \
                      "(double x) { asm(\"" f64_op " %0, %0;\" : \"+d\"(x)); return x; }\n"
#define PLUGRAD_FMA(type, suffix, letter)                                                          \
  PLUGRAD_CUDA_INLINE type " fma_rn(" type " x, " type " y, " type " z) {\n  asm(\"fma.rn." suffix \
                           " %0, %0, %1, %2;\" : \"+" letter "\"(x) : \"" letter                   \
                           "\"(y), \"" letter "\"(z));\n  return x;\n}\n"
// The compile option `contract` is a macro: the contraction of both compilers ignores whether the
// product has other uses.
#define PLUGRAD_MUL_ADD(type)                                                            \
  PLUGRAD_CUDA_INLINE type " mul_add(" type " x, " type " y, " type                      \
                           " z) {\n#ifdef PLUGRAD_CONTRACT\n  return fma_rn(x, y, z);\n" \
                           "#else\n  return x * y + z;\n#endif\n}\n"
#define PLUGRAD_ATOMIC(type, suffix, letter)                    \
  PLUGRAD_CUDA_INLINE "void atomic_add(" type " *at, " type     \
                      " x) {\n  asm volatile(\"red.add." suffix \
                      " [%0], %1;\" :: \"l\"(at), \"" letter "\"(x) : \"memory\");\n}\n"

// C += A * B on the registers of a warp, each holding two 16-bit elements.
#define PLUGRAD_MMA_PAIRS(dtype)                                                          \
  "template <typename A, typename B, typename C>\n" PLUGRAD_CUDA_INLINE "C mma_" dtype    \
  "(const A &a, const B &b, C c) {\n"                                                     \
  "  struct four { unsigned at[4]; };\n  struct two { unsigned at[2]; };\n"               \
  "  const four x = bits_as<four>(a);\n  const two y = bits_as<two>(b);\n"                \
  "  asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32." dtype "." dtype               \
  ".f32 \"\n"                                                                             \
  "               \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"  \
  "               : \"+f\"(c.at[0]), \"+f\"(c.at[1]), \"+f\"(c.at[2]), \"+f\"(c.at[3])\n" \
  "               : \"r\"(x.at[0]), \"r\"(x.at[1]), \"r\"(x.at[2]), \"r\"(x.at[3]),\n"    \
  "                 \"r\"(y.at[0]), \"r\"(y.at[1]));\n  return c;\n}\n"
constexpr char kMmaSingles[] = PLUGRAD_CUDA_INLINE
    "unsigned to_tf32(float x) {\n  unsigned y;\n"
    "  asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(y) : \"f\"(x));\n  return y;\n}\n"
    "template <typename A, typename B, typename C>\n" PLUGRAD_CUDA_INLINE
    "C mma_tf32(const A &a, const B &b, C c) {\n"
    "  asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \"\n"
    "               \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\"\n"
    "               : \"+f\"(c.at[0]), \"+f\"(c.at[1]), \"+f\"(c.at[2]), \"+f\"(c.at[3])\n"
    "               : \"r\"(to_tf32(a.at[0])), \"r\"(to_tf32(a.at[1])),\n"
    "                 \"r\"(to_tf32(a.at[2])), \"r\"(to_tf32(a.at[3])),\n"
    "                 \"r\"(to_tf32(b.at[0])), \"r\"(to_tf32(b.at[1])));\n  return c;\n}\n";

// cp.async: copies into shared memory without registers; 16-byte copies also bypass L1. If the last
// operand is 0, nothing is read and zeros are written.
#define PLUGRAD_ASYNC(name, param, operand, value)                                        \
  "template <unsigned bytes>\n" PLUGRAD_CUDA_INLINE "void " name                          \
  "(void *to, const void *from" param                                                     \
  ") {\n  unsigned long at;\n"                                                            \
  "  asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(at) : \"l\"(to));\n  if (bytes == 16)\n" \
  "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], %2" operand                   \
  ";\" :: \"l\"(at), \"l\"(from), \"n\"(bytes)" value                                     \
  ": \"memory\");\n  else\n"                                                              \
  "    asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2" operand                   \
  ";\" :: \"l\"(at), \"l\"(from), \"n\"(bytes)" value ": \"memory\");\n}\n"

constexpr char kBitsAs[] =
    "template <typename To, typename From>\n" PLUGRAD_CUDA_INLINE
    "To bits_as(From from) {\n  union { From from; To to; } both = {from};\n  return both.to;\n}\n";

constexpr Shim kShims[] = {
    {"bits_as<", kBitsAs},
    {"mma_", kBitsAs},
    {"mma_f16(", PLUGRAD_MMA_PAIRS("f16")},
    {"mma_bf16(", PLUGRAD_MMA_PAIRS("bf16")},
    {"mma_tf32(", kMmaSingles},
    {"async_copy<", PLUGRAD_ASYNC("async_copy", "", "", "")},
    {"async_copy_if<",
     PLUGRAD_ASYNC("async_copy_if", ", bool is_open", ", %3", ", \"r\"(is_open ? bytes : 0u)")},
    {"async_commit(", PLUGRAD_CUDA_INLINE
     "void async_commit() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n"},
    {"async_wait<", "template <unsigned groups>\n" PLUGRAD_CUDA_INLINE
                    "void async_wait() {\n  asm volatile(\"cp.async.wait_group %0;\" :: "
                    "\"n\"(groups) : \"memory\");\n}\n"},
    {"aligned<",
     "template <typename T, unsigned bytes> struct alignas(bytes) aligned { T value; };\n"},
    {"lanes_of<", "template <typename To, typename E, typename... Lanes>\n" PLUGRAD_CUDA_INLINE
                  "To lanes_of(Lanes... lanes) { return To{{(E)lanes...}}; }\n"},
    {"splat_of<", "template <typename To, typename From>\n" PLUGRAD_CUDA_INLINE
                  "To splat_of(From from) {\n  To to;\n  for (auto &lane : to.at) lane = from;\n"
                  "  return to;\n}\n"},
    {"part_of<",
     "template <typename To, typename From, typename... Lanes>\n" PLUGRAD_CUDA_INLINE
     "To part_of(const From &from, Lanes... lanes) { return To{{from.at[lanes]...}}; }\n"},
    {"join_of<", "template <typename To, typename Half>\n" PLUGRAD_CUDA_INLINE
                 "To join_of(const Half &low, const Half &high) {\n"
                 "  constexpr unsigned lanes = sizeof low.at / sizeof low.at[0];\n  To to;\n"
                 "  for (unsigned i = 0; i < lanes; ++i) to.at[i] = low.at[i], to.at[lanes + i] = "
                 "high.at[i];\n  return to;\n}\n"},
    {"sqrt_rn(", PLUGRAD_UNARY("sqrt_rn", "sqrt.rn.f32", "sqrt.rn.f64")},
    {"trunc_rz(", PLUGRAD_UNARY("trunc_rz", "cvt.rzi.f32.f32", "cvt.rzi.f64.f64")},
    {"exp2_approx(", PLUGRAD_CUDA_INLINE
     "float exp2_approx(float x) { asm(\"ex2.approx.f32 %0, %0;\" : \"+f\"(x)); return x; }\n"},
    {"fma_rn(", PLUGRAD_FMA("float", "f32", "f") PLUGRAD_FMA("double", "f64", "d")},
    {"mul_add(", PLUGRAD_FMA("float", "f32", "f") PLUGRAD_FMA("double", "f64", "d")},
    {"mul_add(", PLUGRAD_MUL_ADD("float") PLUGRAD_MUL_ADD("double")},
    {"atomic_add(",
     PLUGRAD_ATOMIC("int", "s32", "r") PLUGRAD_ATOMIC("unsigned", "u32", "r")
         PLUGRAD_ATOMIC("long long", "u64", "l") PLUGRAD_ATOMIC("unsigned long long", "u64", "l")
             PLUGRAD_ATOMIC("float", "f32", "f") PLUGRAD_ATOMIC("double", "f64", "d")},
};
constexpr std::span<const Shim> kShimSpan = kShims;

constexpr Helper kF16ToF32 = {
    "to",
    "$R to_$R_$T($T x) { $R y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x)); return y; }\n",
    nullptr};
constexpr Helper kF32ToF16 = {"to",
                              "$R to_$R_$T($T x) { $R y; asm(\"cvt.rn.f16.f32 %0, %1;\" : "
                              "\"=h\"(y) : \"f\"(x)); return y; }\n",
                              nullptr};
constexpr Helper kBf16ToF32 = {"to", "$R to_$R_$T($T x) { return bits_as<$R>(($U)x << 16); }\n",
                               nullptr};
constexpr Helper kF32ToBf16 = {
    "to",
    "$R to_$R_$T($T x) { // to nearest, ties to even\n"
    "  const $U bits = bits_as<$U>(x);\n"
    "  return (x != x ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n}\n",
    nullptr};
constexpr Helper kF64ToF32Odd = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd: a later rounding to fewer bits is then right\n"
    "  const $R near = ($R)x;\n"
    "  const $U bits = bits_as<$U>(near);\n"
    "  const bool outward = x < 0 ? ($T)near < x : ($T)near > x;\n"
    "  return ($T)near == x ? near : bits_as<$R>((outward ? bits - 1u : bits) | 1u);\n}\n",
    nullptr};

constexpr AluRow wrapping(uint16_t op, const char* pattern) {
  return {op, kSigned, When::Always, Prec::Unary, Prec::Unary, Prec::Unary, pattern, nullptr};
}
constexpr AluRow narrow(AluRow row) {
  row.classes = kInts;
  row.when = When::Narrow;
  return row;
}

// clang-format off
constexpr AluRow kOwn[] = {
    exact(sum(PGR_OP_ADD, "$0 + $1")),
    exact(sum(PGR_OP_SUB, "$0 - $1")),
    exact(product(PGR_OP_MUL, kSigned, When::Exact, "$0 * $1")),
    narrow(sum(PGR_OP_ADD, "$0 + $1")),
    narrow(sum(PGR_OP_SUB, "$0 - $1")),
    narrow(product(PGR_OP_MUL, kInts, When::Always, "(unsigned)$0 * $1")),
    narrow({PGR_OP_NEG, kInts, When::Always, Prec::Unary, Prec::Atom, Prec::Atom, "-$0", nullptr}),
    wrapping(PGR_OP_ADD, "($T)(($V)$0 + $1)"),
    wrapping(PGR_OP_SUB, "($T)(($V)$0 - $1)"),
    wrapping(PGR_OP_MUL, "($T)(($V)$0 * $1)"),
    wrapping(PGR_OP_NEG, "($T)-($V)$0"),
    call(PGR_OP_SQRT, kFloats, "sqrt_rn($0)"),
    call(PGR_OP_FMA, kFloats, "fma_rn($0, $1, $2)"),
    call(PGR_OP_TRUNC, kFloats, "trunc_rz($0)"),
    {PGR_OP_EXP2, kFloats, When::Single, Prec::Atom, Prec::Loose, Prec::Loose, "exp2_approx($0)", nullptr},
};
// clang-format on
constexpr auto kAlu = with_c_rows(kOwn);
constexpr AtomicRow kAtomics[] = {{~0u, "atomic_add($P + $I, $0);", nullptr}};
static_assert(covers_every_alu_op(kAlu), "an op of kernel_ops.h has no row in dialect cuda");

// Compute capability 8.0 or later; the device's tensor core table lists the supported ones.
constexpr WmmaRow kWmma[] = {
    {PGR_DTYPE_F16, PGR_DTYPE_F32, 8, 4, 4, "mma_f16($0, $1, $2)"},
    {PGR_DTYPE_BF16, PGR_DTYPE_F32, 8, 4, 4, "mma_bf16($0, $1, $2)"},
    {PGR_DTYPE_F32, PGR_DTYPE_F32, 4, 2, 4, "mma_tf32($0, $1, $2)"},
};

constexpr GroupFrame kGroups = {
    .entry = "extern \"C\" __global__ void __launch_bounds__($N) $0($1) {\n",
    .buffer = "$C$E *$R$0",
    .scalar = "const $E $0",
    .group_id = "blockIdx.$A",
    .local_id = "threadIdx.$A",
    .local_array = "alignas($A) __shared__ $E $0[$N];",
};

}  // namespace

constinit const Dialect kDialectCuda = {
    .name = "cuda",
    .header = kHeader,
    .groups = &kGroups,
    .types = kTypes,
    .alu = kAlu,
    .lanes_infix = "x",
    .most_lanes = 64,
    .repeat_bits = 8,
    .spaces = nullptr,
    .vector_type = "struct $T { $E at[$N]; };\n",
    .unaligned_type = "typedef $T $U;\n",
    .splat = "splat_of<$T>($0)",
    .convert_scalar = "($T)$0",
    .convert_vector = "",
    .bits_scalar = "bits_as<$T>($0)",
    .bits_vector = "",
    .load_scalar = "$P[$I]",
    .load_vector = "*(const $U *)($P + $I)",
    .store_scalar = "$P[$I] = $0;",
    .store_vector = "*($U *)($P + $I) = $0;",
    .vector_literal = "lanes_of<$T, $E>($0)",
    .lane = "$0.at[$1]",
    .part = "part_of<$T>($0, $2)",
    .join = "join_of<$T>($0, $1)",
    .array = "alignas($A) $E $0[$N];",
    .atomics = kAtomics,
    .barrier = "__syncthreads();",
    .shims = &kShimSpan,
    .contract_on = "#pragma clang fp contract(off)\n",
    .contract_off = "#pragma clang fp contract(off)\n",
    .masked_load = nullptr,
    .masked_load_register = nullptr,
    .masked_store = nullptr,
    .masked_store_register = nullptr,
    .to_int = &kToInt,
    .bf16_to_f32 = &kBf16ToF32,
    .f32_to_bf16 = &kF32ToBf16,
    .f16_to_f32 = &kF16ToF32,
    .f32_to_f16 = &kF32ToF16,
    .f64_to_f32_odd = &kF64ToF32Odd,
    .i64_to_f64_odd = &kI64ToF64Odd,
    .helper_prefix = PLUGRAD_CUDA_INLINE,
    .assume_aligned = "  $0 = ($C$E *)__builtin_assume_aligned($0, $A);\n",
    .assume_range = "  __builtin_assume($0 >= $L && $0 <= $H);\n",
    .mul_add = "mul_add($0, $1, $2)",
    .wmma = kWmma,
    .load_aligned = "((const aligned<$T, $A> *)($P + $I))->value",
    .store_aligned = "((aligned<$T, $A> *)($P + $I))->value = $0;",
    .only_moves_lanes = true,
    .async_copy = "async_copy<$A>($P + $I, $Q + $J);",
    .async_copy_gated = "async_copy_if<$A>($P + $I, $Q + $J, $0);",
    .async_commit = "async_commit();",
    .async_wait = "async_wait<$0>();",
};

}  // namespace plugrad::render
