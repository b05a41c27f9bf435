// A C-like language as tables; the renderer's single loop reads them.
#pragma once

#include <cstdint>
#include <span>

#include "plugrad/plugin_api/kernel_ir.h"
#include "render/dialects/shims.h"

namespace plugrad::render {

// Operator precedence of an expression; an operand looser than its position allows is put in
// parentheses.
enum class Prec : uint8_t { Atom, Unary, Product, Sum, Loose };

// Source classes of a row, as bits.
inline constexpr uint8_t kBools = 1, kSigned = 2, kUnsigned = 4, kHalves = 8;
inline constexpr uint8_t kFloats = 16 | kHalves;
inline constexpr uint8_t kInts = kSigned | kUnsigned, kNumbers = kInts | kFloats;
inline constexpr uint8_t kAll = kBools | kNumbers;

// An additional condition on the sources.
enum class When : uint8_t {
  Always,
  SafeDivisor,  // source 1 is a constant other than 0 and -1
  SafeCount,    // source 1 is a constant in [0, bits of the type)
  Single,       // source 0 is f32
  Narrow,       // an integer of less than 32 bits, which C promotes to int
  WithZero,     // a source is a constant 0; some drivers simplify 0 * x, 0 + x and x / 0 wrongly
  Lanes,        // more than one lane
  Exact,        // integers whose exact result always fits the type
};

// A function emitted before the kernel if the kernel uses it. Placeholders: $T type of the first
// argument, $R of the result, $E element, $N lanes, $M and $J mask types of $T and $R, $L and $H
// lowest and highest value, $C its bits less 1, $U u32 with the lanes of $T; $X and $Y: every float
// in [$Y, $X) fits $R; $A address space of the pointer, $S the same in the helper's name; $1 is
// per_lane repeated for every lane, with the lane's number as $0 and as one hexadecimal digit $X.
struct Helper {
  const char* name;
  const char* scalar;
  const char* vector;  // nullptr: same as for scalars
  const char* per_lane = nullptr;
};

// How an ALU op is rendered: the first row whose op, classes and condition match.
struct AluRow {
  uint16_t op;
  uint8_t classes;  // of source 0 (of source 1 for WHERE)
  When when;
  Prec prec;         // of the whole expression
  Prec first, rest;  // loosest precedence allowed for source 0 and for the other sources
  // $0, $1, $2 sources; $T their type, $V the unsigned type of the same size, $N lanes ("" for
  // one); nullptr: unsupported
  const char* pattern;
  const Helper* helper;  // emitted before the kernel, and called as its name, "_" and the type
};

// A dtype in the language; nullptr: unsupported.
struct TypeRow {
  const char* name;        // the type's name for values
  const char* definition;  // defines the name if the language lacks it
  const char* suffix;      // suffix of an integer or float literal
  // For languages without implicit conversions; nullptr: same as the others.
  const char* literal = nullptr;    // $0: the plain literal
  const char* to_bits = nullptr;    // from and to the unsigned integer of the same size; $0
  const char* from_bits = nullptr;  // nullptr: an integer, converted instead
};

// How ATOMIC_ADD is rendered: the first row that has the dtype.
struct AtomicRow {
  uint32_t dtypes;      // bit set of dtypes
  const char* pattern;  // $P pointer, $I index, $M element, $0 value, $H name of the helper
  const Helper* helper;
};

// How WMMA is rendered: the first row whose operands match.
struct WmmaRow {
  uint32_t dtype_in, dtype_out;
  uint32_t lanes_a, lanes_b, lanes_c;
  const char* pattern;  // $0, $1, $2: the sources
};

// Address space of a pointer, for languages that distinguish them.
enum class Space : uint8_t { Global, Local, Private };
struct SpaceRow {
  const char* qualifier;  // "__global "
  const char* in_name;    // part of a helper's name: "global_"
};

// The kernel's frame for devices that launch groups of work-items. Languages without one use the C
// frame: one call runs a range of groups in sequence.
struct GroupFrame {
  // text up to the opening brace: $0 name, $1 parameters joined by ", ", $X $Y $Z local size, $N
  // work-items of a group, $B $S numbers of buffers and scalars, $L bytes of local arrays, $T
  // whether loops are checked, $A the local arrays if they are declared outside
  const char* entry;
  const char* buffer;    // a parameter: $C "const " or "", $E element, $R "restrict" or "", $0 name
  const char* scalar;    // a parameter: $E type, $0 name; $V: the value of its slot
  const char* group_id;  // $0 axis: 0, 1 or 2; $A: x, y or z
  const char* local_id;
  const char* local_array;   // $E $0 name, $N elements, $A alignment
  const char* joint = ", ";  // separates parameters
  // The unsigned 64-bit slot $0, for languages whose parameters are slots (all buffers, then all
  // scalars); nullptr if the entry has parameters.
  const char* slot = nullptr;
  // A driver may abort a work-item whose loops together exceed this number of iterations; 0:
  // unlimited. If a kernel may exceed the limit, the text after each loop reports it to the runner:
  // $0 counter, $1 end, $2 address.
  uint64_t most_turns = 0;
  const char* loop_check = nullptr;
};

struct Dialect {
  const char* name;
  const char* header;        // start of the text; may be ""
  const GroupFrame* groups;  // nullptr: the C frame
  const TypeRow* types;      // indexed by dtype number
  std::span<const AluRow> alu;
  const char* lanes_infix;  // a vector type's name: element name, this infix, lanes
  uint32_t most_lanes;
  // a scalar operand is splatted beside vectors whose elements have at least this many bits
  uint32_t repeat_bits;
  const SpaceRow* spaces;   // indexed by Space; nullptr: a generic pointer reaches all memory
  const char* vector_type;  // $T $E $N, $A bytes: defines a vector type; nullptr: scalar lanes only
  const char* unaligned_type;  // $U $T $A: the same, with an element's alignment
  const char* splat;           // $T $0
  const char* convert_scalar;  // $T $0
  const char* convert_vector;
  const char* bits_scalar;  // reinterprets the bits as another type; $T $0
  const char* bits_vector;
  const char* load_scalar;  // $P pointer, $I index, $T type, $U unaligned vector type; $M element
  const char* load_vector;
  const char* store_scalar;  // $0 value
  const char* store_vector;
  const char* vector_literal;  // $T $E $0: elements joined by ", "
  const char* lane;            // $0 $1; $X the lane as one hexadecimal digit
  const char* part;            // $T; consecutive lanes of $0: $2 as numbers, $X as digits
  const char* join;            // $T; concatenates $0 and $1, $2 all lane numbers
  // $T; lanes $2 of $0 followed by $1, in any order; nullptr: lanes are listed
  const char* shuffle = nullptr;
  const char* array;  // $E $0 name, $N elements, $A alignment
  std::span<const AtomicRow> atomics;
  const char* barrier;
  const std::span<const Shim>* shims;
  const char* contract_on;  // the text must not override a compile option that forbids contraction
  const char* contract_off;
  const Helper* masked_load;
  const Helper* masked_load_register;  // for vectors of 16, 32 or 64 bytes
  const Helper* masked_store;
  const Helper* masked_store_register;
  const Helper* to_int;  // float to integer; saturates, NaN gives 0
  const Helper* bf16_to_f32;
  const Helper* f32_to_bf16;
  const Helper* f16_to_f32;  // nullptr, also for the next: the language has the type
  const Helper* f32_to_f16;
  const Helper* f64_to_f32_odd;  // rounds to odd, so that a second rounding is correct
  const Helper* i64_to_f64_odd;
  const Helper* i64_to_f32 = nullptr;  // nullptr: the language's conversion rounds once
  const char* helper_prefix;
  // $0 pointer, $C $E pointee, $A bytes; nullptr: unsupported by the language
  const char* assume_aligned;
  const char* assume_range;  // $0 scalar, $L $H its bounds; nullptr: unsupported
  // Explicit conversions T(x) only, no integer promotion, and buffers are addresses of blocks whose
  // members are the elements.
  bool is_strict = false;
  const char* element =
      nullptr;  // for a buffer: $D block, $P address, $I index, $A bytes of an element
  const char* pointer_type = nullptr;  // $E element, $A bytes, $0 its dtype: defines the block P_$0
  // $0 * $1 + $2 rounded once, if the language needs a function for it; nullptr: contract_on allows
  // it.
  const char* mul_add = nullptr;
  std::span<const WmmaRow> wmma = {};
  // A load or store of several lanes at a multiple of its size: $T $P $I, $A bytes, value $0;
  // nullptr: same as others.
  const char* load_aligned = nullptr;
  // precedes a loop that accumulates a register tile, to keep compilers from unrolling it; nullptr:
  // none
  const char* tile_loop = nullptr;
  const char* store_aligned = nullptr;
  bool only_moves_lanes = false;  // vectors are only operands of WMMA; ALU ops are scalar
  // ASYNC_COPY of $A bytes to $P + $I from $Q + $J, gated by $0; ASYNC_COMMIT; ASYNC_WAIT until at
  // most $0 groups are in flight. nullptr: unsupported.
  const char* async_copy = nullptr;
  const char* async_copy_gated = nullptr;
  const char* async_commit = nullptr;
  const char* async_wait = nullptr;
  // Hides a cast constant from a compiler that folds the cast wrongly; nullptr: none.
  const Helper* hide = nullptr;
  // Compile-time check that type $T has $A bytes; nullptr: the language fixes its sizes. $0 is
  // vector_advice for a vector, "" for a scalar.
  const char* size_check = nullptr;
  const char* vector_advice = "";
  // Converts a comparison $0 of byte vectors to the mask type $T, if the language may return
  // another type (Clang: vectors of char, which is unsigned on some processors); nullptr: not
  // needed.
  const char* byte_mask = nullptr;
  // Helper called `splat`, emitted if it is used; nullptr: none.
  const Helper* splat_helper = nullptr;
  // Takes a mask and two vectors; nullptr: `?:` takes vectors.
  const Helper* select = nullptr;
  // Vector form of a helper that has only a scalar form: $R result, $0 name, $P parameters; calls
  // the scalar helper $1 with $A for each of $N lanes. nullptr: the scalar text also accepts
  // vectors.
  const char* lane_by_lane = nullptr;
};

extern const Dialect kDialectC;
extern const Dialect kDialectCGcc;
extern const Dialect kDialectCuda;
extern const Dialect kDialectGlsl;
extern const Dialect kDialectOpencl;
// All dialects; the first is the default.
extern const std::span<const Dialect* const> kDialects;

// Checked at compile time: every ALU op has a row.
constexpr bool covers_every_alu_op(std::span<const AluRow> rows) {
  const auto has_row = [&](uint16_t op) {
    for (const AluRow& row : rows)
      if (row.op == op) return true;
    return false;
  };
  bool all = true;
#define PLUGRAD_CHECK_ROW(NAME, Pascal, number, lo, hi, op_class, meaning) \
  all = all && ((op_class) != PGR_OP_CLASS_ALU || has_row(number));
  PGR_KERNEL_OPS(PLUGRAD_CHECK_ROW)
#undef PLUGRAD_CHECK_ROW
  return all;
}

}  // namespace plugrad::render
