// The dialect OpenCL C 1.2, which the opencl plugin passes to the driver as source. A value of
// several lanes has a vector type of the language, e.g. float4. A value of f16, bf16 or an 8-bit
// float has an unsigned integer type (ushort, uchar) and holds the float's bits.
#include "render/dialects/c_rows.h"
#include "render/dialects/dialect.h"

namespace plugrad::render {
namespace {

// clang-format off
constexpr TypeRow kTypes[16] = {
    {"void", nullptr, ""},
    {"bool", nullptr, ""},
    {"char", nullptr, ""},
    {"uchar", nullptr, ""},
    {"short", nullptr, ""},
    {"ushort", nullptr, ""},
    {"int", nullptr, ""},
    {"uint", nullptr, "u"},
    {"long", nullptr, "l"},
    {"ulong", nullptr, "ul"},
    {"ushort", nullptr, ""},
    {"ushort", nullptr, ""},
    {"float", nullptr, "f"},
    {"double", nullptr, ""},
    {"uchar", nullptr, ""},
    {"uchar", nullptr, ""},
};
// clang-format on

constexpr GroupFrame kGroups = {
    // Prefixed: the bare name may be a function of the language, e.g. rotate.
    .entry = "__kernel __attribute__((reqd_work_group_size($X, $Y, $Z))) void k_$0($1) {\n",
    .buffer = "__global $C$E *$R$0",
    .scalar = "const $E $0",
    .group_id = "get_group_id($0)",
    .local_id = "get_local_id($0)",
    .local_array = "__local $E $0[$N] __attribute__((aligned($A)));",
};

constexpr Helper kMaxHalf = {"max_half",
                             "$T max_half_$T($T a, $T b) {\n"
                             "  const half$N x = as_half$N(a), y = as_half$N(b);\n"
                             "  return ((x > y) | (x != x)) ? a : b;\n}\n",
                             nullptr};
// One lane at a time: a masked-off lane must not access memory.
constexpr Helper kMaskedLoad = {"masked_load", nullptr,
                                "$T masked_load_$S$T(const $A$E *p, $M gate, $T other) {\n"
                                "$1  return other;\n}\n",
                                "  if (gate.s$X) other.s$X = p[$0];\n"};
constexpr Helper kMaskedStore = {"masked_store", nullptr,
                                 "void masked_store_$S$T($A$E *p, $M gate, $T value) {\n$1}\n",
                                 "  if (gate.s$X) p[$0] = value.s$X;\n"};
constexpr Helper kToIntByConvert = {
    "to",
    "$R to_$R_$T($T x) { // saturates; NaN gives 0\n"
    "  const bool above = x >= ($T)$X, below = x < ($T)$Y;\n"
    "  const $R inside = ($R)((above | below | (x != x)) ? ($T)0 : x);\n"
    "  return above ? ($R)$H : below ? ($R)$L : inside;\n}\n",
    "$R to_$R_$T($T x) { // saturates; NaN gives 0\n"
    "  const $M above = x >= ($T)$X, below = x < ($T)$Y;\n"
    "  const $R inside = convert_$R((above | below | (x != x)) ? ($T)0 : x);\n"
    "  return convert_$J(above) ? ($R)$H : convert_$J(below) ? ($R)$L : inside;\n}\n"};
// PoCL's trunc converts through an integer, which turns a constant NaN into 0; here NaN stays NaN.
constexpr Helper kTrunc = {
    "trunc", "$T trunc_$T($T x) { return x != x ? x : trunc(x); } // also NaN\n", nullptr};
constexpr Helper kF16ToF32 = {
    "half_to", "$R half_to_$R_$T($T x) { return vload_half(0, (const __private half *)&x); }\n",
    "$R half_to_$R_$T($T x) { return vload_half$N(0, (const __private half *)&x); }\n"};
constexpr Helper kF32ToF16 = {"to_half",
                              "$R to_half_$R_$T($T x) {\n"
                              "  $R bits;\n"
                              "  vstore_half_rte(x, 0, (__private half *)&bits);\n"
                              "  return bits;\n}\n",
                              "$R to_half_$R_$T($T x) {\n"
                              "  $R bits;\n"
                              "  vstore_half$N_rte(x, 0, (__private half *)&bits);\n"
                              "  return bits;\n}\n"};
constexpr Helper kBf16ToF32 = {
    "bf16_to", "$R bf16_to_$R_$T($T x) { return as_$R(convert_$U(x) << 16); }\n", nullptr};
constexpr Helper kF32ToBf16 = {
    "to_bf16",
    "$R to_bf16_$R_$T($T x) { // to nearest, ties to even\n"
    "  const $U bits = as_$U(x);\n"
    "  const $U rounded = bits + 0x7fffu + ((bits >> 16) & 1u);\n"
    "  return convert_$R(((x != x) ? (bits | 0x400000u) : rounded) >> 16);\n}\n",
    nullptr};
constexpr Helper kF64ToF32Odd = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd: a later rounding to fewer bits is then right\n"
    "  const $R near = convert_$R(x);\n"
    "  const $T back = convert_$T(near);\n"
    "  const $U bits = as_$U(near);\n"
    "  const bool outward = fabs(back) > fabs(x);\n"
    "  const $U odd = (outward ? bits - 1u : bits) | 1u;\n"
    "  return back == x ? near : as_$R(odd);\n}\n",
    "$R odd_$R_$T($T x) { // to odd: a later rounding to fewer bits is then right\n"
    "  const $R near = convert_$R(x);\n"
    "  const $T back = convert_$T(near);\n"
    "  const $M outward = fabs(back) > fabs(x);\n"
    "  const $U odd = (as_$U(near) - (convert_$U(outward) & 1u)) | 1u;\n"
    "  return convert_$J(back == x) ? near : as_$R(odd);\n}\n"};
// The low 12 bits of a large value become one sticky bit, so that the conversion to f64 is exact
// and a later rounding to at most 11 bits is correct.
constexpr Helper kI64ToF64OddByConvert = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd, as far as a rounding to 11 bits sees\n"
    "  const $T large = x >> 32, low = x & 4095;\n"
    "  const $T merged = (x & ~($T)4095) | (low != 0 ? ($T)2048 : ($T)0);\n"
    "  return convert_$R((large != 0) & (large != ($T)-1) ? merged : x);\n}\n",
    nullptr};

// OpenCL C 1.2 has no atomic addition of floats: a loop of compare and exchange.
constexpr Helper kAtomicAddF32 = {
    "atomic_add",
    "void atomic_add_$S$T(volatile $A$T *p, $T value) {\n"
    "  volatile $Auint *bits = (volatile $Auint *)p;\n"
    "  uint old = *bits, seen;\n"
    "  while ((seen = atomic_cmpxchg(bits, old, as_uint(as_float(old) + value))) != old)\n"
    "    old = seen;\n}\n",
    nullptr};
constexpr Helper kAtomicAddF64 = {
    "atomic_add",
    "void atomic_add_$S$T(volatile $A$T *p, $T value) {\n"
    "  volatile $Aulong *bits = (volatile $Aulong *)p;\n"
    "  ulong old = *bits, seen;\n"
    "  while ((seen = atom_cmpxchg(bits, old, as_ulong(as_double(old) + value))) != old)\n"
    "    old = seen;\n}\n",
    nullptr};
constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr AtomicRow kAtomics[] = {
    {bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32), "atomic_add($P + $I, $0);", nullptr},
    {bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64), "atom_add($P + $I, $0);", nullptr},
    {bit(PGR_DTYPE_F32), "$H($P + $I, $0);", &kAtomicAddF32},
    {bit(PGR_DTYPE_F64), "$H($P + $I, $0);", &kAtomicAddF64},
};

constexpr Shim kShims[] = {
    {"double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"},
    {"as_half", "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"},
    {"atom_", "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable\n"},
};
constexpr std::span<const Shim> kShimsOpencl = kShims;

// Scalars of less than 32 bits are computed in the int to which they are promoted.
constexpr AluRow narrow(uint16_t op, uint8_t classes, Prec prec, const char* pattern) {
  return {op, classes, When::Narrow, prec, Prec::Unary, Prec::Unary, pattern, nullptr};
}
// Signed overflow is undefined, as in C, so these compute in the unsigned type.
constexpr AluRow wraps(uint16_t op, const char* pattern) {
  return {op, kSigned, When::Always, Prec::Unary, Prec::Atom, Prec::Unary, pattern, nullptr};
}
constexpr AluRow wraps_lanes(uint16_t op, const char* pattern) {
  return {op, kSigned, When::Lanes, Prec::Atom, Prec::Loose, Prec::Loose, pattern, nullptr};
}
constexpr AluRow compare_halves(uint16_t op, const char* pattern) {
  return {op, kHalves, When::Always, Prec::Loose, Prec::Loose, Prec::Loose, pattern, nullptr};
}
// clang-format off
constexpr AluRow kOwn[] = {
    call(PGR_OP_ADD, kHalves, "as_$T(as_half$N($0) + as_half$N($1))"),
    call(PGR_OP_SUB, kHalves, "as_$T(as_half$N($0) - as_half$N($1))"),
    call(PGR_OP_MUL, kHalves, "as_$T(as_half$N($0) * as_half$N($1))"),
    call(PGR_OP_NEG, kHalves, "as_$T(-as_half$N($0))"),
    exact(sum(PGR_OP_ADD, "$0 + $1")),
    exact(sum(PGR_OP_SUB, "$0 - $1")),
    exact(product(PGR_OP_MUL, kSigned, When::Exact, "$0 * $1")),
    narrow(PGR_OP_ADD, kSigned, Prec::Sum, "$0 + $1"),
    narrow(PGR_OP_SUB, kSigned, Prec::Sum, "$0 - $1"),
    narrow(PGR_OP_MUL, kSigned, Prec::Product, "$0 * $1"),
    narrow(PGR_OP_MUL, kUnsigned, Prec::Product, "(uint)$0 * $1"),
    {PGR_OP_NEG, kSigned, When::Narrow, Prec::Unary, Prec::Atom, Prec::Atom, "-$0", nullptr},
    wraps_lanes(PGR_OP_ADD, "as_$T(as_$V($0) + as_$V($1))"),
    wraps_lanes(PGR_OP_SUB, "as_$T(as_$V($0) - as_$V($1))"),
    wraps_lanes(PGR_OP_MUL, "as_$T(as_$V($0) * as_$V($1))"),
    wraps_lanes(PGR_OP_NEG, "as_$T(-as_$V($0))"),
    wraps(PGR_OP_ADD, "($T)(($V)$0 + $1)"),
    wraps(PGR_OP_SUB, "($T)(($V)$0 - $1)"),
    wraps(PGR_OP_MUL, "($T)(($V)$0 * $1)"),
    wraps(PGR_OP_NEG, "($T)-($V)$0"),
    call(PGR_OP_MAX, kHalves, "max_half_$T($0, $1)", &kMaxHalf),
    call(PGR_OP_RECIP, kHalves, "as_$T((half$N)1 / as_half$N($0))"),
    call(PGR_OP_FDIV, kHalves, "as_$T(as_half$N($0) / as_half$N($1))"),
    call(PGR_OP_SQRT, kHalves, "as_$T(sqrt(as_half$N($0)))"),
    call(PGR_OP_SQRT, kFloats, "sqrt($0)"),
    call(PGR_OP_FMA, kHalves, "as_$T(fma(as_half$N($0), as_half$N($1), as_half$N($2)))"),
    call(PGR_OP_FMA, kFloats, "fma($0, $1, $2)"),
    call(PGR_OP_TRUNC, kHalves, "as_$T(trunc(as_half$N($0)))"),
    call(PGR_OP_TRUNC, kFloats, "trunc_$T($0)", &kTrunc),
    compare_halves(PGR_OP_CMPLT, "as_half$N($0) < as_half$N($1)"),
    compare_halves(PGR_OP_CMPEQ, "as_half$N($0) == as_half$N($1)"),
    compare_halves(PGR_OP_CMPNE, "as_half$N($0) != as_half$N($1)"),
};
// clang-format on
constexpr auto kAlu = with_c_rows(kOwn);
static_assert(covers_every_alu_op(kAlu), "an op of kernel_ops.h has no row in dialect opencl");

constexpr SpaceRow kSpaces[] = {{"__global ", "global_"}, {"__local ", "local_"}, {"", ""}};

}  // namespace

constinit const Dialect kDialectOpencl = {
    .name = "opencl",
    .header = "",
    .groups = &kGroups,
    .types = kTypes,
    .alu = kAlu,
    .lanes_infix = "",
    .most_lanes = 16,
    .repeat_bits = 32,
    .spaces = kSpaces,
    .vector_type = "",
    .unaligned_type = "",
    .splat = "($T)$0",
    .convert_scalar = "($T)$0",
    .convert_vector = "convert_$T($0)",
    .bits_scalar = "as_$T($0)",
    .bits_vector = "as_$T($0)",
    .load_scalar = "$P[$I]",
    .load_vector = "vload$N(0, $P + $I)",
    .store_scalar = "$P[$I] = $0;",
    .store_vector = "vstore$N($0, 0, $P + $I);",
    .vector_literal = "($T)($0)",
    .lane = "$0.s$X",
    .part = "$0.s$X",
    .join = "($T)($0, $1)",
    .array = "$E $0[$N] __attribute__((aligned($A)));",
    .atomics = kAtomics,
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .shims = &kShimsOpencl,
    .contract_on =
        "#ifdef PLUGRAD_CONTRACT_OFF\n"
        "#pragma OPENCL FP_CONTRACT OFF\n"
        "#else\n"
        "#pragma OPENCL FP_CONTRACT ON\n"
        "#endif\n",
    .contract_off = "#pragma OPENCL FP_CONTRACT OFF\n",
    .masked_load = &kMaskedLoad,
    .masked_load_register = &kMaskedLoad,
    .masked_store = &kMaskedStore,
    .masked_store_register = &kMaskedStore,
    .to_int = &kToIntByConvert,
    .bf16_to_f32 = &kBf16ToF32,
    .f32_to_bf16 = &kF32ToBf16,
    .f16_to_f32 = &kF16ToF32,
    .f32_to_f16 = &kF32ToF16,
    .f64_to_f32_odd = &kF64ToF32Odd,
    .i64_to_f64_odd = &kI64ToF64OddByConvert,
    .helper_prefix = "static inline ",
    .assume_aligned = nullptr,
    .assume_range = nullptr,
};

}  // namespace plugrad::render
