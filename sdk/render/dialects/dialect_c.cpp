// C with the vector extensions of Clang (compiled by cpu_clang) or of GCC. Kernels of one lane need
// only C11 with GNU extensions; compilers without the vector extensions fail at the size check.
#include <string_view>

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
    {"i64", "__INT64_TYPE__", "ll"},
    {"u64", "__UINT64_TYPE__", "ull"},
    {"f16", "_Float16", "f16"},
    {"bf16", "unsigned short", ""},
    {"f32", "float", "f"},
    {"f64", "double", ""},
    {"f8e4m3", "unsigned char", ""},
    {"f8e5m2", "unsigned char", ""},
};
// clang-format on

// One lane at a time, for vectors wider than a register.
constexpr Helper kMaskedLoad = {"masked_load", nullptr,
                                "$T masked_load_$T(const $E *p, $M gate, $T other) {\n"
                                "#pragma clang loop unroll(full)\n"
                                "  for (int lane = 0; lane < $N; ++lane)\n"
                                "    if (gate[lane]) other[lane] = p[lane];\n"
                                "  return other;\n}\n"};
constexpr Helper kMaskedStore = {"masked_store", nullptr,
                                 "void masked_store_$T($E *p, $M gate, $T value) {\n"
                                 "#pragma clang loop unroll(full)\n"
                                 "  for (int lane = 0; lane < $N; ++lane)\n"
                                 "    if (gate[lane]) p[lane] = value[lane];\n}\n"};
// x86 instructions, for vectors of a register's width.
constexpr Helper kMaskedLoadRegister = {
    "masked_load", nullptr,
    "$T masked_load_$T(const $E *p, $M gate, $T other) {\n"
    "#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)\n"
    "  return ($T)__builtin_ia32_loaddqu$Qi$B_mask((const void *)p, ($M)other,\n"
    "                                               __builtin_ia32_cvt$K2mask$B(gate));\n"
    "#elif defined(__AVX2__) && $B == 256 && $N <= 8\n"
    "  return ($T)(($M)__builtin_ia32_maskload$K256((const void *)p, gate) | (($M)other & "
    "~gate));\n"
    "#elif defined(__AVX2__) && $B == 128 && $N <= 4\n"
    "  return ($T)(($M)__builtin_ia32_maskload$K((const void *)p, gate) | (($M)other & ~gate));\n"
    "#else\n"
    "#pragma clang loop unroll(full)\n"
    "  for (int lane = 0; lane < $N; ++lane)\n"
    "    if (gate[lane]) other[lane] = p[lane];\n"
    "  return other;\n"
    "#endif\n}\n"};
constexpr Helper kMaskedStoreRegister = {
    "masked_store", nullptr,
    "void masked_store_$T($E *p, $M gate, $T value) {\n"
    "#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)\n"
    "  __builtin_ia32_storedqu$Qi$B_mask((void *)p, ($M)value,\n"
    "                                     __builtin_ia32_cvt$K2mask$B(gate));\n"
    "#else\n"
    "#pragma clang loop unroll(full)\n"
    "  for (int lane = 0; lane < $N; ++lane)\n"
    "    if (gate[lane]) p[lane] = value[lane];\n"
    "#endif\n}\n"};
constexpr Helper kBf16ToF32 = {
    "to", "$R to_$R_$T($T x) { return __builtin_bit_cast($R, ($U)x << 16); }\n",
    "$R to_$R_$T($T x) { return ($R)(__builtin_convertvector(x, $U) << 16); }\n"};
constexpr Helper kF32ToBf16 = {
    "to",
    "$R to_$R_$T($T x) { // to nearest, ties to even\n"
    "  const $U bits = __builtin_bit_cast($U, x);\n"
    "  return (x != x ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n}\n",
    "$R to_$R_$T($T x) { // to nearest, ties to even\n"
    "  const $U bits = ($U)x;\n"
    "  $U rounded = bits + 0x7fffu + ((bits >> 16) & 1u);\n"
    "#if defined(__AVX512F__) && $N % 16 == 0\n"
    "  typedef float part __attribute__((vector_size(64), may_alias));\n"
    "  typedef int table __attribute__((vector_size(64)));\n"
    "#pragma clang loop unroll(full)\n"
    "  for (int i = 0; i < $N / 16; ++i) // a NaN's own bits, quiet\n"
    "    ((part *)&rounded)[i] = __builtin_ia32_fixupimmps512_mask(\n"
    "        ((part *)&rounded)[i], ((const part *)&x)[i], (table){} + 0x22, 0, -1, 4);\n"
    "  return __builtin_convertvector(rounded >> 16, $R);\n"
    "#else\n"
    "  return __builtin_convertvector((x != x ? bits | 0x400000u : rounded) >> 16, $R);\n"
    "#endif\n}\n"};
constexpr Helper kF64ToF32Odd = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd: a later rounding to fewer bits is then right\n"
    "  const $R near = ($R)x;\n"
    "  const $U bits = __builtin_bit_cast($U, near);\n"
    "  const bool outward = __builtin_elementwise_abs(($T)near) > __builtin_elementwise_abs(x);\n"
    "  const $U odd = (outward ? bits - 1u : bits) | 1u;\n"
    "  return ($T)near == x ? near : __builtin_bit_cast($R, odd);\n}\n",
    "$R odd_$R_$T($T x) { // to odd: a later rounding to fewer bits is then right\n"
    "  const $R near = __builtin_convertvector(x, $R);\n"
    "  const $T back = __builtin_convertvector(near, $T);\n"
    "  const $M outward = __builtin_elementwise_abs(back) > __builtin_elementwise_abs(x);\n"
    "  const $U bits = ($U)near;\n"
    "  const $U odd = (bits - (__builtin_convertvector(outward, $U) & 1u)) | 1u;\n"
    "  return __builtin_convertvector(back == x, $J) ? near : ($R)odd;\n}\n"};

// On aarch64, Clang 19 converts vectors of these types through f64, including loops that it
// vectorises.
#define PLUGRAD_ROUNDS_TWICE "#if defined(__clang__) && defined(__aarch64__)\n"
constexpr Helper kI64ToF32 = {
    "to",
    "$R to_$R_$T($T x) {\n" PLUGRAD_ROUNDS_TWICE  // rounds to odd at f32 precision
    "  const $T large = x >> 53, odd = (x & ~($T)2047) | (x & 2047 ? ($T)2048 : ($T)0);\n"
    "  return ($R)(double)(large != 0 && large != ($T)-1 ? odd : x);\n"
    "#else\n"
    "  return ($R)x;\n"
    "#endif\n}\n",
    "$R to_$R_$T($T x) {\n" PLUGRAD_ROUNDS_TWICE
    "  typedef double middle __attribute__((ext_vector_type($N)));\n"
    "  const $T large = x >> 53;\n"
    "  const $T odd = (x & ~($T)2047) | ((x & 2047) != 0 ? ($T)2048 : ($T)0);\n"
    "  const $T kept = (large != 0) & (large != ($T)-1) ? odd : x;\n"
    "  return __builtin_convertvector(__builtin_convertvector(kept, middle), $R);\n"
    "#else\n"
    "  return __builtin_convertvector(x, $R);\n"
    "#endif\n}\n"};

// Signed overflow is undefined in C but wraps in the IR.
constexpr AluRow wraps(uint16_t op, const char* pattern) {
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
    exact({PGR_OP_NEG, kSigned, When::Exact, Prec::Unary, Prec::Atom, Prec::Atom, "-$0", nullptr}),
    narrow(sum(PGR_OP_ADD, "$0 + $1")),
    narrow(sum(PGR_OP_SUB, "$0 - $1")),
    narrow(product(PGR_OP_MUL, kInts, When::Narrow, "(unsigned)$0 * $1")),
    narrow({PGR_OP_NEG, kInts, When::Narrow, Prec::Unary, Prec::Atom, Prec::Atom, "-$0", nullptr}),
    wraps(PGR_OP_ADD, "($T)(($V)$0 + ($V)$1)"),
    wraps(PGR_OP_SUB, "($T)(($V)$0 - ($V)$1)"),
    wraps(PGR_OP_MUL, "($T)(($V)$0 * ($V)$1)"),
    wraps(PGR_OP_NEG, "($T)-($V)$0"),
    call(PGR_OP_SQRT, kFloats, "__builtin_elementwise_sqrt($0)"),
    call(PGR_OP_FMA, kFloats, "__builtin_elementwise_fma($0, $1, $2)"),
    call(PGR_OP_TRUNC, kFloats, "__builtin_elementwise_trunc($0)"),
};
// clang-format on
constexpr auto kAlu = with_c_rows(kOwn);
constexpr AtomicRow kAtomics[] = {
    {~0u, "__atomic_fetch_add($P + $I, $0, __ATOMIC_RELAXED);", nullptr},
};
static_assert(covers_every_alu_op(kAlu), "an op of kernel_ops.h has no row in dialect c");

// GCC's vectors: casts do not splat, and `?:` and most builtins take no vectors.
constexpr Helper kSplat = {"splat", nullptr, "$T splat_$T($E x) { return ($T){$1}; }\n", "x, "};
constexpr Helper kSelect = {"select", nullptr,
                            "$T select_$T($M mask, $T yes, $T no) {\n"
                            "  return ($T)((mask & ($M)yes) | (~mask & ($M)no));\n}\n"};
constexpr Helper kMaxIntLanes = {"max", nullptr,
                                 "$T max_$T($T a, $T b) {\n"
                                 "  const $M larger = ($M)(b > a);\n"
                                 "  return ($T)((larger & ($M)b) | (~larger & ($M)a));\n}\n"};
constexpr Helper kMaxFloatLanes = {
    "max", nullptr,
    "$T max_$T($T a, $T b) { // NaN if either is\n"
    "  const $M larger = ($M)(b > a), is_nan = ($M)(b != b);\n"
    "  const $M most = (larger & ($M)b) | (~larger & ($M)a);\n"
    "  return ($T)((is_nan & ($M)(b + b)) | (~is_nan & most));\n}\n"};
constexpr Helper kSqrt = {"sqrt", "$T sqrt_$T($T x) { return __builtin_elementwise_sqrt(x); }\n",
                          nullptr};
constexpr Helper kTrunc = {
    "trunc", "$T trunc_$T($T x) { return __builtin_elementwise_trunc(x); }\n", nullptr};
constexpr Helper kFma = {
    "fma", "$T fma_$T($T x, $T y, $T z) { return __builtin_elementwise_fma(x, y, z); }\n", nullptr};
constexpr Helper lane_by_lane(Helper helper) {
  helper.vector = nullptr;
  return helper;
}
constexpr Helper kToIntLanes = lane_by_lane(kToInt), kF32ToBf16Lanes = lane_by_lane(kF32ToBf16),
                 kF64ToF32OddLanes = lane_by_lane(kF64ToF32Odd),
                 kI64ToF64OddLanes = lane_by_lane(kI64ToF64Odd),
                 kI64ToF32Lanes = lane_by_lane(kI64ToF32);
constexpr AluRow of_lanes(AluRow row) {
  row.when = When::Lanes;
  return row;
}
// clang-format off
constexpr AluRow kLanesGcc[] = {
    {PGR_OP_RECIP, kFloats, When::Lanes, Prec::Product, Prec::Unary, Prec::Unary, "splat_$T(1) / $0", &kSplat},
    of_lanes(call(PGR_OP_MAX, kInts, "max_$T($0, $1)", &kMaxIntLanes)),
    of_lanes(call(PGR_OP_MAX, kFloats, "max_$T($0, $1)", &kMaxFloatLanes)),
    of_lanes(call(PGR_OP_SQRT, kFloats, "sqrt_$T($0)", &kSqrt)),
    of_lanes(call(PGR_OP_FMA, kFloats, "fma_$T($0, $1, $2)", &kFma)),
    of_lanes(call(PGR_OP_TRUNC, kFloats, "trunc_$T($0)", &kTrunc)),
};
// clang-format on
constexpr auto kAluGcc = joined(kLanesGcc, kAlu);

constexpr Dialect kWithClang = {
    .name = "c",
    .header = "",
    .groups = nullptr,
    .types = kTypes,
    .alu = kAlu,
    .lanes_infix = "x",
    .most_lanes = 64,
    .repeat_bits = 8,
    .spaces = nullptr,
    .vector_type = "typedef $E $T __attribute__((ext_vector_type($N)));\n",
    .unaligned_type = "typedef $T $U __attribute__((aligned($A), may_alias));\n",
    .splat = "($T)$0",
    .convert_scalar = "($T)$0",
    .convert_vector = "__builtin_convertvector($0, $T)",
    .bits_scalar = "__builtin_bit_cast($T, $0)",
    .bits_vector = "($T)$0",
    .load_scalar = "$P[$I]",
    .load_vector = "*(const $U *)($P + $I)",
    .store_scalar = "$P[$I] = $0;",
    .store_vector = "*($U *)($P + $I) = $0;",
    .vector_literal = "($T){$0}",
    .lane = "$0[$1]",
    .part = "($T)__builtin_shufflevector($0, $0, $2)",
    .join = "($T)__builtin_shufflevector($0, $1, $2)",
    .shuffle = "($T)__builtin_shufflevector($0, $1, $2)",
    .array = "$E $0[$N] __attribute__((aligned($A)));",
    .atomics = kAtomics,
    .barrier = nullptr,
    .shims = &kShimsC,
    .contract_on = "",  // controlled by the compile option -ffp-contract
    .contract_off = "#pragma clang fp contract(off)\n",
    .masked_load = &kMaskedLoad,
    .masked_load_register = &kMaskedLoadRegister,
    .masked_store = &kMaskedStore,
    .masked_store_register = &kMaskedStoreRegister,
    .to_int = &kToInt,
    .bf16_to_f32 = &kBf16ToF32,
    .f32_to_bf16 = &kF32ToBf16,
    .f16_to_f32 = nullptr,
    .f32_to_f16 = nullptr,
    .f64_to_f32_odd = &kF64ToF32Odd,
    .i64_to_f64_odd = &kI64ToF64Odd,
    .i64_to_f32 = &kI64ToF32,
    .helper_prefix = "static inline __attribute__((always_inline)) ",
    .assume_aligned = "  $0 = __builtin_assume_aligned($0, $A);\n",
    .assume_range = "  __builtin_assume($0 >= $L && $0 <= $H);\n",
    .tile_loop = "#pragma clang loop unroll(disable)",
    .size_check = "_Static_assert(sizeof($T) == $A, \"this compiler has $T of another size$0\");\n",
    .vector_advice = ": dialect c_gcc is for GCC",
    .byte_mask = "($T)($0)",
};

constexpr Dialect with_gcc() {
  Dialect dialect = kWithClang;
  dialect.name = "c_gcc";
  // GCC 12 turns true into -1 when it vectorises comparisons of lanes.
  dialect.header =
      "#ifndef __clang__\n"
      "#pragma GCC optimize(\"no-tree-slp-vectorize\")\n"
      "#endif\n";
  dialect.alu = kAluGcc;
  dialect.repeat_bits = UINT32_MAX;
  dialect.vector_type = "typedef $E $T __attribute__((vector_size($A)));\n";
  dialect.vector_advice = "";
  dialect.tile_loop = nullptr;
  dialect.load_vector = "($T)*(const $U *)($P + $I)";  // `?:` requires equal types: $U is not $T
  dialect.splat = "splat_$T($0)";
  dialect.splat_helper = &kSplat;
  dialect.select = &kSelect;
  dialect.masked_load_register = dialect.masked_load;
  dialect.masked_store_register = dialect.masked_store;
  dialect.to_int = &kToIntLanes;
  dialect.f32_to_bf16 = &kF32ToBf16Lanes;
  dialect.f64_to_f32_odd = &kF64ToF32OddLanes;
  dialect.i64_to_f64_odd = &kI64ToF64OddLanes;
  dialect.i64_to_f32 = &kI64ToF32Lanes;
  dialect.lane_by_lane =
      "$R $0($P) {\n"
      "  $R out;\n"
      "  for (int lane = 0; lane < $N; ++lane) out[lane] = $1($A);\n"
      "  return out;\n}\n";
  return dialect;
}

}  // namespace

constinit const Dialect kDialectC = kWithClang;
constinit const Dialect kDialectCGcc = with_gcc();

}  // namespace plugrad::render
