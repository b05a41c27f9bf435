// GLSL for Vulkan: a kernel is a compute shader. Buffers are addresses (GL_EXT_buffer_reference).
// Buffers and scalars are 64-bit slots in the push constants, or, if there are more than 16, in a
// block whose address is pushed. Scalar lanes only.
#include <string_view>

#include "render/dialects/dialect.h"

namespace plugrad::render {
namespace {

// clang-format off
constexpr TypeRow kTypes[16] = {
    {"void", nullptr, ""},
    {"bool", nullptr, ""},
    {"int8_t", nullptr, "", "int8_t($0)"},
    {"uint8_t", nullptr, "", "uint8_t($0)"},
    {"int16_t", nullptr, "", "int16_t($0)"},
    {"uint16_t", nullptr, "", "uint16_t($0)"},
    {"int", nullptr, ""},
    {"uint", nullptr, "u"},
    {"int64_t", nullptr, "l"},
    {"uint64_t", nullptr, "ul"},
    {"float16_t", nullptr, "hf", nullptr, "float16BitsToUint16($0)", "uint16BitsToFloat16(uint16_t($0))"},
    {"uint16_t", nullptr, "", "uint16_t($0)"},
    {"float", nullptr, "f", nullptr, "floatBitsToUint($0)", "uintBitsToFloat($0)"},
    {"double", nullptr, "lf", nullptr, "doubleBitsToUint64($0)", "uint64BitsToDouble($0)"},
    {"uint8_t", nullptr, "", "uint8_t($0)"},
    {"uint8_t", nullptr, "", "uint8_t($0)"},
};
// clang-format on

// ?: between names and constants compiles to a select; other operands make it branch.
constexpr Helper kIDivSigned = {
    "idiv",
    "$T idiv_$T($T a, $T b) {\n"
    "  const bool zero = b == $T(0), wraps = b == $T(-1);\n"
    "  const $T one = $T(1), none = $T(0), negated = -a, safe = zero || wraps ? one : b;\n"
    "  const $T quotient = a / safe, whole = wraps ? negated : quotient;\n"
    "  return zero ? none : whole;\n}\n",
    nullptr};
constexpr Helper kIDivUnsigned = {
    "idiv",
    "$T idiv_$T($T a, $T b) {\n"
    "  const bool zero = b == $T(0);\n"
    "  const $T one = $T(1), none = $T(0), safe = zero ? one : b, quotient = a / safe;\n"
    "  return zero ? none : quotient;\n}\n",
    nullptr};
// % of negative numbers is undefined in GLSL.
constexpr Helper kModSigned = {
    "mod",
    "$T mod_$T($T a, $T b) {\n"
    "  const bool zero = b == $T(0), wraps = b == $T(-1);\n"
    "  const $T one = $T(1), none = $T(0), safe = zero || wraps ? one : b;\n"
    "  const $T rest = a - a / safe * safe;\n"
    "  return zero ? a : rest;\n}\n",
    nullptr};
constexpr Helper kModUnsigned = {"mod",
                                 "$T mod_$T($T a, $T b) {\n"
                                 "  const bool zero = b == $T(0);\n"
                                 "  const $T one = $T(1), safe = zero ? one : b, rest = a % safe;\n"
                                 "  return zero ? a : rest;\n}\n",
                                 nullptr};
// Amounts beyond the bits have other low bits. Mesa 22.3's compiler takes b < 0 || b > 63 for true
// if b is an i32 cast to i64.
constexpr Helper kShl = {"shl",
                         "$T shl_$T($T a, $T b) {\n"
                         "  const $T none = $T(0), count = b & $T($C), shifted = a << count;\n"
                         "  return count == b ? shifted : none;\n}\n",
                         nullptr};
constexpr Helper kShrSigned = {"shr",
                               "$T shr_$T($T a, $T b) {\n"
                               "  const $T most = $T($C), low = b & most;\n"
                               "  const $T count = low == b ? b : most;\n"
                               "  return a >> count;\n}\n",
                               nullptr};
constexpr Helper kShrUnsigned = {
    "shr",
    "$T shr_$T($T a, $T b) {\n"
    "  const $T none = $T(0), count = b & $T($C), shifted = a >> count;\n"
    "  return count == b ? shifted : none;\n}\n",
    nullptr};
constexpr Helper kMaxInt = {
    "max", "$T max_$T($T a, $T b) {\n  const bool larger = a > b;\n  return larger ? a : b;\n}\n",
    nullptr};
constexpr Helper kMaxFloat = {"max",
                              "$T max_$T($T a, $T b) { // NaN if either is\n"
                              "  const bool larger = a > b, is_nan = a != a;\n"
                              "  return larger || is_nan ? a : b;\n}\n",
                              nullptr};
// llvmpipe folds 0 * x and 0 / x to 0, 0 + x to x, and x / 0 to an arbitrary value, if the 0 is a
// visible constant. glslang folds casts of constants inexactly: to f16 truncating, to f64 from the
// decimal text.
constexpr Helper kHide = {"hide",
                          "$T hide_$T($T x) { // from the compiler: a launch has groups\n"
                          "  const bool never = gl_NumWorkGroups.x == 0u;\n"
                          "  const $T other = $T(7);\n"
                          "  return never ? other : x;\n}\n",
                          nullptr};
// Both operands are values, so that the select needs no branch.
constexpr Helper kToInt = {
    "to",
    "$R to_$R_$T($T x) { // saturates; NaN gives 0\n"
    "  const bool above = x >= $T($X), below = x < $T($Y), is_nan = x != x;\n"
    "  const $T none = $T(0), safe = above || below || is_nan ? none : x;\n"
    "  const $R lowest = $R($L), highest = $R($H), inside = $R(safe);\n"
    "  const $R raised = below ? lowest : inside;\n"
    "  return above ? highest : raised;\n}\n",
    nullptr};
constexpr Helper kBf16ToF32 = {
    "to", "$R to_$R_$T($T x) { return uintBitsToFloat(uint(x) << 16); }\n", nullptr};
constexpr Helper kF32ToBf16 = {"to",
                               "$R to_$R_$T($T x) { // to nearest, ties to even\n"
                               "  const $U bits = floatBitsToUint(x), quiet = bits | 0x400000u;\n"
                               "  const $U rounded = bits + 0x7fffu + ((bits >> 16) & 1u);\n"
                               "  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;\n"
                               "  return $R((is_nan ? quiet : rounded) >> 16);\n}\n",
                               nullptr};
constexpr Helper kF64ToF32Odd = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd: a later rounding to fewer bits is then right\n"
    "  const $R near = $R(x);\n"
    "  const $T back = $T(near);\n"
    "  const $U bits = floatBitsToUint(near), inward = bits - 1u;\n"
    "  const bool outward = abs(back) > abs(x), is_exact = back == x || x != x;\n"
    "  const $R odd = uintBitsToFloat((outward ? inward : bits) | 1u);\n"
    "  return is_exact ? near : odd;\n}\n",
    nullptr};
// Rounds to odd: the discarded low bits are ORed into one sticky bit, so that a later rounding is
// correct.
constexpr Helper kI64ToF64Odd = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd, as far as a rounding to 11 bits sees\n"
    "  const $T large = x >> 32, low = x & $T(4095), none = $T(0), bit = $T(2048);\n"
    "  const bool has_low = low != none, is_large = large != none && large != $T(-1);\n"
    "  const $T merged = (x & ~$T(4095)) | (has_low ? bit : none);\n"
    "  return $R(is_large ? merged : x);\n}\n",
    nullptr};

// Drivers need not round square roots correctly. Computed in integers: estimate the root of a 47-
// or 48-bit mantissa, then correct to the nearest value; ties cannot occur.
constexpr Shim kShims[] = {
    {"exact_sqrt_float",
     "float exact_sqrt_float(float x) {\n"
     "  const uint bits = floatBitsToUint(x);\n"
     "  if (bits == 0u || bits == 0x80000000u || bits == 0x7f800000u) return x;\n"
     "  if (bits > 0x7f800000u) return uintBitsToFloat(0x7fc00000u);\n"
     "  const int shift = max(23 - findMSB(bits), 0);  // of a denormal\n"
     "  const int exponent = shift > 0 ? 1 - shift : int(bits >> 23);\n"
     "  const uint mantissa = shift > 0 ? bits << shift : (bits & 0x7fffffu) | 0x800000u;\n"
     "  const bool is_odd = (exponent & 1) == 0;  // of the power of two, that is exponent - 127\n"
     "  const uint64_t square = uint64_t(mantissa) << (is_odd ? 24 : 23);\n"
     "  int64_t root = int64_t(sqrt(float(square)));\n"
     "  const int64_t wanted = int64_t(square);\n"
     "  for (int i = 0; i < 64 && root * root - root + 1l > wanted; ++i) root -= 1l;\n"
     "  for (int i = 0; i < 64 && root * root + root < wanted; ++i) root += 1l;\n"
     "  const int half_exponent = (exponent - 127 - (is_odd ? 1 : 0)) / 2 + 127;\n"
     "  return uintBitsToFloat((uint(half_exponent - 1) << 23) + uint(root));\n"
     "}\n"
     "#define exact_sqrt_float16_t(x) float16_t(exact_sqrt_float(float(x)))\n"},
    {"trunc_float(", "#define trunc_float(x) trunc(x)\n"},
    {"trunc_double(", "#define trunc_double(x) trunc(x)\n"},
    // The GLSL functions need an f16 capability that glslang omits.
    {"trunc_float16_t(", "#define trunc_float16_t(x) float16_t(trunc(float(x)))\n"},
    // Only for devices that report it; their drivers round correctly.
    {"exact_sqrt_double", "#define exact_sqrt_double(x) sqrt(x)\n"},
};
constexpr std::span<const Shim> kShimsGlsl = kShims;

constexpr AluRow sum(uint16_t op, const char* pattern) {
  return {op, kNumbers, When::Always, Prec::Sum, Prec::Sum, Prec::Product, pattern, nullptr};
}
constexpr AluRow product(uint16_t op, uint8_t classes, When when, const char* pattern) {
  return {op, classes, when, Prec::Product, Prec::Product, Prec::Unary, pattern, nullptr};
}
constexpr AluRow infix(uint16_t op, uint8_t classes, const char* pattern,
                       When when = When::Always) {
  return {op, classes, when, Prec::Loose, Prec::Unary, Prec::Unary, pattern, nullptr};
}
constexpr AluRow call(uint16_t op, uint8_t classes, const char* pattern,
                      const Helper* helper = nullptr) {
  return {op, classes, When::Always, Prec::Atom, Prec::Loose, Prec::Loose, pattern, helper};
}
constexpr AluRow absent(uint16_t op) {
  return call(op, kAll, nullptr);
}

// clang-format off
constexpr AluRow kAlu[] = {
    {PGR_OP_ADD, kFloats, When::WithZero, Prec::Sum, Prec::Loose, Prec::Loose, "hide_$T($0) + hide_$T($1)", &kHide},
    {PGR_OP_SUB, kFloats, When::WithZero, Prec::Sum, Prec::Loose, Prec::Loose, "hide_$T($0) - hide_$T($1)", &kHide},
    {PGR_OP_MUL, kFloats, When::WithZero, Prec::Product, Prec::Loose, Prec::Loose, "hide_$T($0) * hide_$T($1)", &kHide},
    {PGR_OP_FDIV, kFloats, When::WithZero, Prec::Product, Prec::Loose, Prec::Loose, "hide_$T($0) / hide_$T($1)", &kHide},
    {PGR_OP_RECIP, kFloats, When::WithZero, Prec::Product, Prec::Loose, Prec::Loose, "$T(1) / hide_$T($0)", &kHide},
    sum(PGR_OP_ADD, "$0 + $1"),
    sum(PGR_OP_SUB, "$0 - $1"),
    product(PGR_OP_MUL, kNumbers, When::Always, "$0 * $1"),
    {PGR_OP_NEG, kNumbers, When::Always, Prec::Unary, Prec::Atom, Prec::Atom, "-$0", nullptr},
    product(PGR_OP_IDIV, kInts, When::SafeDivisor, "$0 / $1"),
    call(PGR_OP_IDIV, kSigned, "idiv_$T($0, $1)", &kIDivSigned),
    call(PGR_OP_IDIV, kUnsigned, "idiv_$T($0, $1)", &kIDivUnsigned),
    product(PGR_OP_MOD, kUnsigned, When::SafeDivisor, "$0 % $1"),
    {PGR_OP_MOD, kSigned, When::SafeDivisor, Prec::Sum, Prec::Unary, Prec::Unary, "$0 - $0 / $1 * $1", nullptr},
    call(PGR_OP_MOD, kSigned, "mod_$T($0, $1)", &kModSigned),
    call(PGR_OP_MOD, kUnsigned, "mod_$T($0, $1)", &kModUnsigned),
    infix(PGR_OP_MAX, kBools, "$0 || $1"),
    call(PGR_OP_MAX, kInts, "max_$T($0, $1)", &kMaxInt),
    call(PGR_OP_MAX, kFloats, "max_$T($0, $1)", &kMaxFloat),
    {PGR_OP_RECIP, kFloats, When::Always, Prec::Product, Prec::Unary, Prec::Unary, "$T(1) / $0", nullptr},
    product(PGR_OP_FDIV, kFloats, When::Always, "$0 / $1"),
    call(PGR_OP_SQRT, kFloats, "exact_sqrt_$T($0)"),
    absent(PGR_OP_FMA),
    call(PGR_OP_TRUNC, kFloats, "trunc_$T($0)"),
    infix(PGR_OP_AND, kBools, "$0 && $1"),
    infix(PGR_OP_AND, kInts, "$0 & $1"),
    infix(PGR_OP_OR, kBools, "$0 || $1"),
    infix(PGR_OP_OR, kInts, "$0 | $1"),
    infix(PGR_OP_XOR, kBools, "$0 != $1"),
    infix(PGR_OP_XOR, kInts, "$0 ^ $1"),
    infix(PGR_OP_SHL, kInts, "$0 << $1", When::SafeCount),
    call(PGR_OP_SHL, kSigned, "shl_$T($0, $1)", &kShl),
    call(PGR_OP_SHL, kUnsigned, "shl_$T($0, $1)", &kShl),
    infix(PGR_OP_SHR, kInts, "$0 >> $1", When::SafeCount),
    call(PGR_OP_SHR, kSigned, "shr_$T($0, $1)", &kShrSigned),
    call(PGR_OP_SHR, kUnsigned, "shr_$T($0, $1)", &kShrUnsigned),
    infix(PGR_OP_CMPLT, kBools, "!$0 && $1"),
    infix(PGR_OP_CMPLT, kNumbers, "$0 < $1"),
    infix(PGR_OP_CMPEQ, kAll, "$0 == $1"),
    infix(PGR_OP_CMPNE, kAll, "$0 != $1"),
    call(PGR_OP_WHERE, kAll, "mix($2, $1, $0)"),
    call(PGR_OP_CAST, kAll, ""),  // handled by Dialect::convert_… and its helpers
    call(PGR_OP_BITCAST, kAll, ""),  // handled by TypeRow::to_bits and from_bits
    absent(PGR_OP_EXP2),
    absent(PGR_OP_LOG2),
    absent(PGR_OP_SIN),
};
// clang-format on
static_assert(covers_every_alu_op(kAlu), "an op of kernel_ops.h has no row in dialect glsl");

constexpr uint32_t kAtomicDtypes = 1u << PGR_DTYPE_I32 | 1u << PGR_DTYPE_U32 | 1u << PGR_DTYPE_I64 |
                                   1u << PGR_DTYPE_U64 | 1u << PGR_DTYPE_F32 | 1u << PGR_DTYPE_F64;
constexpr AtomicRow kAtomics[] = {{kAtomicDtypes, "atomicAdd($M, $0);", nullptr}};

// The pragma carries what the module lacks: kernel name, numbers of buffers and scalars, bytes of
// local arrays, and whether the last slot is the address at which truncated loops are reported.
constexpr GroupFrame kFrame = {
    .entry =
        "#pragma kernel($0, $B, $S, $L, $T)\n"
        "layout(local_size_x = $X, local_size_y = $Y, local_size_z = $Z) in;\n"
        "#if $B + $S + $T > 16\n"
        "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Slots { "
        "uint64_t slots[]; };\n"
        "layout(push_constant) uniform Params { Slots params; };\n"
        "#else\n"
        "layout(push_constant) uniform Params { uint64_t slots[16]; } params;\n"
        "#endif\n"
        "$A\n"
        "void main() {\n"
        "$1",
    .buffer = "  const uint64_t $0 = $V;\n",
    .scalar = "  const $E $0 = $V;\n",
    .group_id = "$T(gl_WorkGroupID[$0])",
    .local_id = "$T(gl_LocalInvocationID[$0])",
    .local_array = "shared $E $0[$N];",
    .joint = "",
    .slot = "params.slots[$0]",
    .most_turns = 60'000,  // llvmpipe of Mesa 22.3 aborts loops after 65,535 iterations
    .loop_check = "if ($0 < $1) P_u32($2).v = 1u;  // the driver ended the loop",
};

}  // namespace

constinit const Dialect kDialectGlsl = {
    .name = "glsl",
    .header =
        "#version 460\n"
        "#extension GL_EXT_buffer_reference : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
        "#extension GL_EXT_shader_8bit_storage : require\n"
        "#extension GL_EXT_shader_16bit_storage : require\n"
        "#extension GL_EXT_shader_atomic_int64 : enable\n"
        "#extension GL_EXT_shader_atomic_float : enable\n",
    .groups = &kFrame,
    .types = kTypes,
    .alu = kAlu,
    .lanes_infix = "",
    .most_lanes = 1,
    .repeat_bits = 8,
    .spaces = nullptr,
    .vector_type = nullptr,
    .unaligned_type = nullptr,
    .splat = nullptr,
    .convert_scalar = "$T($0)",
    .convert_vector = nullptr,
    .bits_scalar = nullptr,
    .bits_vector = nullptr,
    .load_scalar = "$M",
    .load_vector = nullptr,
    .store_scalar = "$M = $0;",
    .store_vector = nullptr,
    .vector_literal = nullptr,
    .lane = nullptr,
    .part = nullptr,
    .join = nullptr,
    .array = "$E $0[$N];",
    .atomics = kAtomics,
    .barrier = "memoryBarrierBuffer(); memoryBarrierShared(); barrier();",
    .shims = &kShimsGlsl,
    .contract_on = "",
    .contract_off = "",
    .masked_load = nullptr,
    .masked_load_register = nullptr,
    .masked_store = nullptr,
    .masked_store_register = nullptr,
    .to_int = &kToInt,
    .bf16_to_f32 = &kBf16ToF32,
    .f32_to_bf16 = &kF32ToBf16,
    .f16_to_f32 = nullptr,
    .f32_to_f16 = nullptr,
    .f64_to_f32_odd = &kF64ToF32Odd,
    .i64_to_f64_odd = &kI64ToF64Odd,
    .helper_prefix = "",
    .assume_aligned = nullptr,
    .assume_range = nullptr,
    .is_strict = true,
    .element = "$D($P + uint64_t($I) * $Aul).v",
    .pointer_type =
        "layout(buffer_reference, std430, buffer_reference_align = $A) buffer P_$0 { "
        "$E v; };\n",
    .hide = &kHide,
};

}  // namespace plugrad::render
