// Helper functions and rows of ALU ops that all dialects derived from C share.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>

#include "render/dialects/dialect.h"

namespace plugrad::render {

inline constexpr Helper kIDivSigned = {
    "idiv",
    "$T idiv_$T($T a, $T b) {\n"
    "  const $T safe = ((b == ($T)0) | ((b == ($T)-1) & (a == ($T)$L))) ? ($T)1 : b;\n"
    "  return b == ($T)0 ? ($T)0 : a / safe;\n}\n",
    nullptr};
inline constexpr Helper kIDivUnsigned = {
    "idiv",
    "$T idiv_$T($T a, $T b) {\n"
    "  return b == ($T)0 ? ($T)0 : a / (b == ($T)0 ? ($T)1 : b);\n}\n",
    nullptr};
inline constexpr Helper kModSigned = {
    "mod",
    "$T mod_$T($T a, $T b) {\n"
    "  const $T safe = ((b == ($T)0) | ((b == ($T)-1) & (a == ($T)$L))) ? ($T)1 : b;\n"
    "  return b == ($T)0 ? a : a % safe;\n}\n",
    nullptr};
inline constexpr Helper kModUnsigned = {
    "mod",
    "$T mod_$T($T a, $T b) {\n"
    "  return b == ($T)0 ? a : a % (b == ($T)0 ? ($T)1 : b);\n}\n",
    nullptr};
inline constexpr Helper kShlSigned = {
    "shl",
    "$T shl_$T($T a, $T b) {\n"
    "  return (b < ($T)0) | (b > ($T)$C) ? ($T)0 : a << (b & ($T)$C);\n}\n",
    nullptr};
inline constexpr Helper kShlUnsigned = {"shl",
                                        "$T shl_$T($T a, $T b) {\n"
                                        "  return b > ($T)$C ? ($T)0 : a << (b & ($T)$C);\n}\n",
                                        nullptr};
inline constexpr Helper kShrSigned = {
    "shr",
    "$T shr_$T($T a, $T b) {\n"
    "  return a >> ((b < ($T)0) | (b > ($T)$C) ? ($T)$C : b);\n}\n",
    nullptr};
inline constexpr Helper kShrUnsigned = {"shr",
                                        "$T shr_$T($T a, $T b) {\n"
                                        "  return b > ($T)$C ? ($T)0 : a >> (b & ($T)$C);\n}\n",
                                        nullptr};
inline constexpr Helper kMaxInt = {"max", "$T max_$T($T a, $T b) { return a > b ? a : b; }\n",
                                   nullptr};
inline constexpr Helper kMaxFloat = {
    "max",
    "$T max_$T($T a, $T b) { // NaN if either is; one instruction where b is a constant\n"
    "  const $T larger = b > a ? b : a;\n"
    "  return b != b ? b + b : larger;\n}\n",
    nullptr};
inline constexpr Helper kToInt = {
    "to",
    "$R to_$R_$T($T x) { // saturates; NaN gives 0\n"
    "  const bool above = x >= ($T)$X, below = x < ($T)$Y;\n"
    "  const $R inside = ($R)(above | below | (x != x) ? ($T)0 : x);\n"
    "  return above ? ($R)$H : below ? ($R)$L : inside;\n}\n",
    "$R to_$R_$T($T x) { // saturates; NaN gives 0\n"
    "  const $M above = x >= ($T)$X, below = x < ($T)$Y;\n"
    "  const $R inside = __builtin_convertvector(above | below | (x != x) ? ($T)0 : x, $R);\n"
    "  return __builtin_convertvector(above, $J)   ? ($R)$H\n"
    "         : __builtin_convertvector(below, $J) ? ($R)$L\n"
    "                                              : inside;\n}\n"};
// Rounds to odd: the discarded low bits are ORed into one sticky bit, so that a later rounding is
// correct.
inline constexpr Helper kI64ToF64Odd = {
    "odd",
    "$R odd_$R_$T($T x) { // to odd, as far as a rounding to 11 bits sees\n"
    "  const $T large = x >> 32, low = x & 4095;\n"
    "  const $T merged = (x & ~($T)4095) | (low != 0 ? ($T)2048 : ($T)0);\n"
    "  return ($R)(large != 0 && large != ($T)-1 ? merged : x);\n}\n",
    "$R odd_$R_$T($T x) { // to odd, as far as a rounding to 11 bits sees\n"
    "  const $T large = x >> 32, low = x & 4095;\n"
    "  const $T merged = (x & ~($T)4095) | (low != 0 ? ($T)2048 : ($T)0);\n"
    "  return __builtin_convertvector((large != 0) & (large != ($T)-1) ? merged : x, $R);\n}\n"};

inline constexpr AluRow sum(uint16_t op, const char* pattern) {
  return {op, kNumbers, When::Always, Prec::Sum, Prec::Sum, Prec::Product, pattern, nullptr};
}
inline constexpr AluRow product(uint16_t op, uint8_t classes, When when, const char* pattern) {
  return {op, classes, when, Prec::Product, Prec::Product, Prec::Unary, pattern, nullptr};
}
// Signed integers, in the language's own signed arithmetic.
inline constexpr AluRow exact(AluRow row) {
  row.classes = kSigned;
  row.when = When::Exact;
  return row;
}
inline constexpr AluRow infix(uint16_t op, uint8_t classes, const char* pattern,
                              When when = When::Always) {
  return {op, classes, when, Prec::Loose, Prec::Unary, Prec::Unary, pattern, nullptr};
}
inline constexpr AluRow call(uint16_t op, uint8_t classes, const char* pattern,
                             const Helper* helper = nullptr) {
  return {op, classes, When::Always, Prec::Atom, Prec::Loose, Prec::Loose, pattern, helper};
}
inline constexpr AluRow absent(uint16_t op) {
  return call(op, kAll, nullptr);
}

// clang-format off
// Rows that are equal in every language of the family.
inline constexpr AluRow kCRows[] = {
    sum(PGR_OP_ADD, "$0 + $1"),
    sum(PGR_OP_SUB, "$0 - $1"),
    product(PGR_OP_MUL, kNumbers, When::Always, "$0 * $1"),
    {PGR_OP_NEG, kNumbers, When::Always, Prec::Unary, Prec::Atom, Prec::Atom, "-$0", nullptr},
    product(PGR_OP_IDIV, kInts, When::SafeDivisor, "$0 / $1"),
    call(PGR_OP_IDIV, kSigned, "idiv_$T($0, $1)", &kIDivSigned),
    call(PGR_OP_IDIV, kUnsigned, "idiv_$T($0, $1)", &kIDivUnsigned),
    product(PGR_OP_MOD, kInts, When::SafeDivisor, "$0 % $1"),
    call(PGR_OP_MOD, kSigned, "mod_$T($0, $1)", &kModSigned),
    call(PGR_OP_MOD, kUnsigned, "mod_$T($0, $1)", &kModUnsigned),
    infix(PGR_OP_MAX, kBools, "$0 | $1"),
    call(PGR_OP_MAX, kInts, "max_$T($0, $1)", &kMaxInt),
    call(PGR_OP_MAX, kFloats, "max_$T($0, $1)", &kMaxFloat),
    // The source is the right operand of the division: a product there needs parentheses.
    {PGR_OP_RECIP, kFloats, When::Always, Prec::Product, Prec::Unary, Prec::Unary, "($T)1 / $0", nullptr},
    product(PGR_OP_FDIV, kFloats, When::Always, "$0 / $1"),
    infix(PGR_OP_AND, kBools | kInts, "$0 & $1"),
    infix(PGR_OP_OR, kBools | kInts, "$0 | $1"),
    infix(PGR_OP_XOR, kBools | kInts, "$0 ^ $1"),
    infix(PGR_OP_SHL, kInts, "$0 << $1", When::SafeCount),
    call(PGR_OP_SHL, kSigned, "shl_$T($0, $1)", &kShlSigned),
    call(PGR_OP_SHL, kUnsigned, "shl_$T($0, $1)", &kShlUnsigned),
    infix(PGR_OP_SHR, kInts, "$0 >> $1", When::SafeCount),
    call(PGR_OP_SHR, kSigned, "shr_$T($0, $1)", &kShrSigned),
    call(PGR_OP_SHR, kUnsigned, "shr_$T($0, $1)", &kShrUnsigned),
    infix(PGR_OP_CMPLT, kBools, "($0 ^ $1) & $1"),
    infix(PGR_OP_CMPLT, kNumbers, "$0 < $1"),
    infix(PGR_OP_CMPEQ, kAll, "$0 == $1"),
    infix(PGR_OP_CMPNE, kAll, "$0 != $1"),
    infix(PGR_OP_WHERE, kAll, "$0 ? $1 : $2"),
    call(PGR_OP_CAST, kAll, ""),  // handled by Dialect::convert_… and its helpers
    call(PGR_OP_BITCAST, kAll, ""),  // handled by Dialect::bits_…
    absent(PGR_OP_EXP2),
    absent(PGR_OP_LOG2),
    absent(PGR_OP_SIN),
};
// clang-format on

/// Joins two tables; rows of `first` take precedence.
template <size_t M, size_t N>
constexpr std::array<AluRow, M + N> joined(const AluRow (&first)[M],
                                           const std::array<AluRow, N>& last) {
  std::array<AluRow, M + N> rows{};
  std::copy_n(first, M, rows.begin());
  std::copy_n(last.begin(), N, rows.begin() + M);
  return rows;
}
/// The rows of a language, which take precedence, followed by those of the family.
template <size_t N>
constexpr auto with_c_rows(const AluRow (&own)[N]) {
  return joined(own, std::to_array(kCRows));
}

}  // namespace plugrad::render
