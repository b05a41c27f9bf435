// What one C-like language looks like: the tables that the renderer's one loop reads.
#pragma once

#include <cstdint>
#include <span>

#include "plugrad/plugin_api/kernel_ir.h"
#include "render/dialects/shims.h"

namespace plugrad::render {

// How tightly an expression holds together; an operand that is looser than its place gets
// parentheses.
enum class Prec : uint8_t { Atom, Unary, Product, Sum, Loose };

// Which sources a row is for. Bits.
inline constexpr uint8_t kBools = 1, kSigned = 2, kUnsigned = 4, kHalves = 8;
inline constexpr uint8_t kFloats = 16 | kHalves;
inline constexpr uint8_t kInts = kSigned | kUnsigned, kNumbers = kInts | kFloats;
inline constexpr uint8_t kAll = kBools | kNumbers;

// A further condition on the sources.
enum class When : uint8_t {
  Always,
  SafeDivisor,  // source 1 is a constant, neither 0 nor -1
  SafeCount,    // source 1 is a constant, at least 0 and less than the bits of the type
  Single,       // source 0 is f32
  Narrow,       // an integer of less than 32 bits, which C computes as int
  WithZero,  // a source is a constant 0, of which some drivers forget what 0 * x, 0 + x and x / 0
             // are
  Lanes,     // more than one lane
  Exact,     // integers whose exact result always fits the type
};

// A function that is written before the kernel when it is needed. In the text $T is the type of the
// first argument, $R the result's, $E an element, $N the lanes, $M and $J the mask types of $T and
// $R, $L and $H its lowest and highest value, $C the bits of it less 1, $U u32 with the lanes of
// $T; $X and $Y: every float from $Y to below $X fits $R; $A the address space of its pointer, $S
// the same in its name; $1 is per_lane for every lane, where $0 is the lane's number and $X the
// same as one hexadecimal digit.
struct Helper {
  const char* name;
  const char* scalar;
  const char* vector;  // nullptr: as for scalars
  const char* per_lane = nullptr;
};

// How an ALU op is written: the first row whose op, classes and condition fit.
struct AluRow {
  uint16_t op;
  uint8_t classes;  // of source 0 (of source 1 for WHERE)
  When when;
  Prec prec;             // of the whole
  Prec first, rest;      // the loosest that source 0 and the other sources may be
  const char* pattern;   // $0, $1, $2: the sources; $T: their type, $V: the unsigned one of the
                         // same size, $N: the lanes ("" for one); nullptr: the language lacks it
  const Helper* helper;  // written before the kernel, and called as its name, "_" and the type
};

// A dtype in the language; nullptr: absent.
struct TypeRow {
  const char* name;        // of a value
  const char* definition;  // of the name, where the language lacks it
  const char* suffix;      // of an integer or float literal
  // Of languages without implicit conversions; nullptr: as the others.
  const char* literal = nullptr;    // $0: the plain literal
  const char* to_bits = nullptr;    // to and from the unsigned integer of the same size; $0
  const char* from_bits = nullptr;  // nullptr: an integer, which is converted
};

// How ATOMIC_ADD is written: the first row that has the dtype.
struct AtomicRow {
  uint32_t dtypes;      // bits
  const char* pattern;  // $P pointer, $I index, $M the element, $0 value, $H the helper's name
  const Helper* helper;
};

// How WMMA is written: the first row whose operands fit.
struct WmmaRow {
  uint32_t dtype_in, dtype_out;
  uint32_t lanes_a, lanes_b, lanes_c;
  const char* pattern;  // $0, $1, $2: the sources
};

// Where the memory of a pointer is; a language may tell them apart.
enum class Space : uint8_t { Global, Local, Private };
struct SpaceRow {
  const char* qualifier;  // "__global "
  const char* in_name;    // of a helper: "global_"
};

// The kernel of a language whose device launches groups of work-items. A language without has the
// C frame: one call runs a span of groups, one after the other.
struct GroupFrame {
  const char* entry;     // up to the opening brace; $0 name, $1 parameters joined by ", ",
                         // $X $Y $Z the local size, $N work-items of a group, $B $S buffers and
                         // scalars, $L bytes of local arrays,
                         // $T whether loops are checked, $A the arrays local to a group where they
                         // stand outside
  const char* buffer;    // a parameter: $C "const " or "", $E element, $R "restrict" or "", $0 name
  const char* scalar;    // a parameter: $E type, $0 name; $V: the value of its slot
  const char* group_id;  // $0 axis: 0, 1 or 2; $A: x, y or z
  const char* local_id;
  const char* local_array;   // $E $0 name, $N elements, $A alignment
  const char* joint = ", ";  // between parameters
  // The unsigned 64-bit slot number $0: where parameters come as slots, first all buffers, then all
  // scalars. A language whose entry takes parameters has none.
  const char* slot = nullptr;
  // A driver may end loops that a work-item turns more often, all its loops together; 0: none does.
  // Where a kernel may, what follows each loop tells the runner: $0 counter, $1 end, $2 address.
  uint64_t most_turns = 0;
  const char* loop_check = nullptr;
};

struct Dialect {
  const char* name;
  const char* header;        // before everything; may be ""
  const GroupFrame* groups;  // nullptr: the C frame
  const TypeRow* types;      // by dtype number
  std::span<const AluRow> alu;
  const char* lanes_infix;  // a vector type's name is the element's, this, and the lanes
  uint32_t most_lanes;
  uint32_t repeat_bits;     // beside a vector of elements so wide or wider, a scalar is repeated
  const SpaceRow* spaces;   // by Space; nullptr: any pointer reaches all memory
  const char* vector_type;  // $T $E $N, $A bytes: defines a vector type; nullptr: lanes are scalar
  const char* unaligned_type;  // $U $T $A: the same, aligned like an element
  const char* splat;           // $T $0
  const char* convert_scalar;  // $T $0
  const char* convert_vector;
  const char* bits_scalar;  // the same bits as another type; $T $0
  const char* bits_vector;
  const char* load_scalar;  // $P pointer, $I index, $T type, $U unaligned vector type; $M: the
                            // element
  const char* load_vector;
  const char* store_scalar;  // $0 value
  const char* store_vector;
  const char* vector_literal;  // $T $E $0: elements joined by ", "
  const char* lane;            // $0 $1; $X the same as one hexadecimal digit
  const char* part;            // $T; lanes of $0, one after the other: $2 numbers, $X digits
  const char* join;            // $T; $0 and $1 one behind the other, $2 all lane numbers
  const char* array;           // $E $0 name, $N elements, $A alignment
  std::span<const AtomicRow> atomics;
  const char* barrier;
  const std::span<const Shim>* shims;
  const char* contract_on;  // nothing in the text may keep the compile option from forbidding it
  const char* contract_off;
  const Helper* masked_load;
  const Helper* masked_load_register;  // of vectors of 16, 32 or 64 bytes
  const Helper* masked_store;
  const Helper* masked_store_register;
  const Helper* to_int;  // float to integer: saturates, NaN is 0
  const Helper* bf16_to_f32;
  const Helper* f32_to_bf16;
  const Helper* f16_to_f32;  // nullptr, as the next: the language has the type
  const Helper* f32_to_f16;
  const Helper* f64_to_f32_odd;  // rounds to odd, so that a second rounding is right
  const Helper* i64_to_f64_odd;
  const Helper* i64_to_f32 = nullptr;  // nullptr: the language's conversion rounds once
  const char* helper_prefix;
  const char* assume_aligned;  // $0 pointer, $C $E what it points to, $A bytes; nullptr: the
                               // language cannot say it
  const char* assume_range;    // $0 scalar, $L $H its bounds; nullptr likewise
  // Conversions are written as T(x) and never implied, integers are computed in their own width,
  // and buffers are addresses of elements that are members of blocks.
  bool is_strict = false;
  const char* element =
      nullptr;  // of a buffer: $D block, $P address, $I index, $A bytes of an element
  const char* pointer_type = nullptr;  // $E element, $A bytes, $0 its dtype: defines the block P_$0
  // $0 * $1 + $2 where the IR allows one rounding, for languages in which only a function can say
  // so; nullptr: contract_on says it.
  const char* mul_add = nullptr;
  std::span<const WmmaRow> wmma = {};
  // A load or store of several lanes whose place is a multiple of its size: $T $P $I, $A bytes, the
  // value $0; nullptr: as any other.
  const char* load_aligned = nullptr;
  const char* tile_loop = nullptr;  // before a loop that adds up a register tile, for compilers
                                    // that would unroll it too; nullptr: none
  const char* store_aligned = nullptr;
  bool only_moves_lanes = false;  // vectors are operands of WMMA, and no ALU op takes them
  // ASYNC_COPY of $A bytes to $I behind $P from $J behind $Q, with a gate where $0 is true;
  // ASYNC_COMMIT; ASYNC_WAIT for all but $0 groups. nullptr: the language has none.
  const char* async_copy = nullptr;
  const char* async_copy_gated = nullptr;
  const char* async_commit = nullptr;
  const char* async_wait = nullptr;
  // Of a constant that is cast, from a compiler that would compute the cast wrongly; nullptr: none.
  const Helper* hide = nullptr;
  // Stops a compiler whose type $T has not $A bytes; nullptr: the language fixes its sizes. $0 is
  // vector_advice for a vector, "" for a scalar.
  const char* size_check = nullptr;
  const char* vector_advice = "";
  // A comparison $0 of vectors of bytes as the mask type $T, where the language may give another
  // type (Clang: vectors of char, which some processors have unsigned); nullptr: it gives $T.
  const char* byte_mask = nullptr;
  // Written before the kernel where `splat` is used, of which it has the name; nullptr: nothing.
  const Helper* splat_helper = nullptr;
  // Takes a mask and two vectors; nullptr: `?:` takes vectors.
  const Helper* select = nullptr;
  // A helper of several lanes that has no vector text, $R its result, $0 its name and $P its
  // parameters: calls $1, the helper for one lane, with $A for each of the $N lanes. nullptr: the
  // scalar text holds for vectors too.
  const char* lane_by_lane = nullptr;
};

extern const Dialect kDialectC;
extern const Dialect kDialectCGcc;
extern const Dialect kDialectCuda;
extern const Dialect kDialectGlsl;
extern const Dialect kDialectOpencl;
// All of them; the first is the default.
extern const std::span<const Dialect* const> kDialects;

// Whether the rows hold every ALU op: adding an op without a row does not compile.
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
