#include "codegen/running_kernels.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/wide_integers.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kMostGroups = 65535;  // every device launches so many along its first axis
constexpr int64_t kScanPart = 256;      // terms added one by one

// Shorthand for instructions on one lane of the index dtype, and for buffers.
class Writer {
 public:
  Writer(bool wide, const pgr_device_caps& caps)
      : index_(wide ? DType::I64 : DType::I32), caps_(caps) {}

  uint32_t buffer(DType dtype, int64_t count, uint32_t flags) {
    const uint32_t number =
        ir_.param({PGR_PARAM_BUFFER, static_cast<uint32_t>(dtype), flags | PGR_PARAM_NO_ALIAS,
                   std::max(caps_.buffer_align_bytes, 1u), static_cast<uint64_t>(count), 0, 0});
    return ir_.inst(PGR_OP_PARAM, dtype, 1, {}, number);
  }
  uint32_t number(int64_t value) {
    return ir_.inst(PGR_OP_CONST, index_, 1, {}, static_cast<uint64_t>(value));
  }
  uint32_t alu(uint16_t op, uint32_t a, uint32_t b) { return ir_.inst(op, index_, 1, {a, b}); }
  uint32_t times(uint32_t a, int64_t n) { return n == 1 ? a : alu(PGR_OP_MUL, a, number(n)); }
  uint32_t plus(uint32_t a, uint32_t b) { return alu(PGR_OP_ADD, a, b); }
  uint32_t less(uint32_t a, uint32_t b) { return ir_.inst(PGR_OP_CMPLT, DType::Bool, 1, {a, b}); }
  uint32_t both(uint32_t a, uint32_t b) { return ir_.inst(PGR_OP_AND, DType::Bool, 1, {a, b}); }
  uint32_t as_index(uint32_t a, DType from) {
    return from == index_ ? a : ir_.inst(PGR_OP_CAST, index_, 1, {a});
  }
  uint32_t smaller(uint32_t a, uint32_t b) {
    return ir_.inst(PGR_OP_WHERE, index_, 1, {less(a, b), a, b});
  }
  uint32_t loop(uint32_t begin, uint32_t end) {
    return ir_.inst(PGR_OP_LOOP, index_, 1, {begin, end});
  }
  void end_loop(uint32_t loop) { ir_.inst(PGR_OP_END_LOOP, DType::Void, 1, {loop}); }
  uint32_t open_if(uint32_t condition) { return ir_.inst(PGR_OP_IF, DType::Void, 1, {condition}); }
  void end_if(uint32_t block) { ir_.inst(PGR_OP_END_IF, DType::Void, 1, {block}); }
  uint32_t load(DType dtype, uint32_t lanes, uint32_t from, uint32_t at) {
    return ir_.inst(PGR_OP_LOAD, dtype, lanes, {from, at});
  }
  void store(uint32_t lanes, uint32_t to, uint32_t at, uint32_t value) {
    ir_.inst(PGR_OP_STORE, DType::Void, lanes, {to, at, value});
  }
  uint32_t combine(Op op, DType dtype, uint32_t lanes, uint32_t a, uint32_t b) {
    return ir_.inst(static_cast<uint16_t>(op), dtype, lanes, {a, b});
  }
  uint32_t repeated(DType dtype, uint32_t lanes, uint64_t bits) {
    const uint32_t one = ir_.inst(PGR_OP_CONST, dtype, 1, {}, bits);
    return lanes == 1 ? one : ir_.inst(PGR_OP_VECTOR, dtype, lanes, {one});
  }
  uint32_t accumulator(DType dtype, uint32_t lanes) {
    const uint32_t row = ir_.array(
        {PGR_SPACE_PRIVATE, static_cast<uint32_t>(dtype), size_of(dtype) * lanes, lanes, lanes});
    return ir_.inst(PGR_OP_ARRAY, dtype, 1, {}, row);
  }

  // Opens a loop over the units of work that fall to this group.
  uint32_t units(int64_t count) {
    const int64_t share = (count + kMostGroups - 1) / kMostGroups;
    size_.group_count[0] = static_cast<uint64_t>((count + share - 1) / share);
    const uint32_t first = times(ir_.inst(PGR_OP_GROUP_ID, index_, 1, {}, 0), share);
    return loop(first, smaller(plus(first, number(share)), number(count)));
  }

  WrittenKernel finish(std::string_view name) {
    IrWriter done = needs_pairs(ir_, caps_) ? split_into_pairs(ir_, caps_) : std::move(ir_);
    return {done.finish(name, size_, 0), size_};
  }

 private:
  DType index_;
  const pgr_device_caps& caps_;
  IrWriter ir_;
  LaunchSize size_;
};

uint32_t lanes_of(const pgr_device_caps& caps, DType dtype) {
  return std::max(1u, caps.vector_lanes[static_cast<size_t>(dtype)]);
}

// What changes nothing: 0, 1, or the lowest value.
uint64_t identity_bits(Op op, DType dtype) {
  if (op == Op::Add) return 0;
  const bool is_max = op == Op::Max;
  if (dtype == DType::F32) return is_max ? 0xff800000 : 0x3f800000;
  if (dtype == DType::F64) return is_max ? 0xfff0000000000000 : 0x3ff0000000000000;
  return is_max ? ~uint64_t{0} << (size_of(dtype) * 8 - 1) : 1;
}

bool needs_wide(int64_t elements) {
  return elements > INT32_MAX / 2;
}

// Whole vectors along the innermost axis, then its rest element by element: body(lanes, first
// element).
template <class Body>
void along_inner(Writer& w, int64_t inner, uint32_t lanes, uint32_t piece, Body body) {
  const int64_t vectors = inner / lanes;
  if (vectors > 0) {
    const uint32_t block = w.open_if(w.less(piece, w.number(vectors)));
    body(lanes, w.times(piece, lanes));
    w.end_if(block);
  }
  if (inner % lanes == 0) return;
  const uint32_t block = w.open_if(w.less(w.number(vectors - 1), piece));
  body(1u, w.plus(piece, w.number(vectors * lanes - vectors)));
  w.end_if(block);
}

int64_t pieces_of(int64_t inner, uint32_t lanes) {
  return inner / lanes + inner % lanes;
}

}  // namespace

WrittenKernel write_scan(const ScanForm& form, std::string_view name, const pgr_device_caps& caps) {
  const int64_t rows = form.outer * form.inner, count = rows * form.length;
  Writer w(needs_wide(count), caps);
  const uint32_t out = w.buffer(form.dtype, count, PGR_PARAM_WRITE),
                 x = w.buffer(form.dtype, count, PGR_PARAM_READ),
                 before = form.has_before ? w.buffer(form.dtype, rows, PGR_PARAM_READ) : 0;
  const uint32_t widest = form.inner == 1 ? 1 : lanes_of(caps, form.dtype);
  const int64_t pieces = pieces_of(form.inner, widest);
  const uint32_t unit = w.units(form.outer * pieces);
  const uint32_t a = w.alu(PGR_OP_IDIV, unit, w.number(pieces)),
                 piece = w.alu(PGR_OP_MOD, unit, w.number(pieces));
  along_inner(w, form.inner, widest, piece, [&](uint32_t lanes, uint32_t b) {
    const uint32_t zero = w.number(0), sum = w.accumulator(form.dtype, lanes);
    const uint32_t identity = w.repeated(form.dtype, lanes, identity_bits(form.op, form.dtype));
    const uint32_t start =
        form.has_before ? w.load(form.dtype, lanes, before, w.plus(w.times(a, form.inner), b))
                        : identity;
    const uint32_t first = w.plus(w.times(a, form.length * form.inner), b);
    const auto combined = [&](uint32_t accumulator, uint32_t value) {
      return w.combine(form.op, form.dtype, lanes, w.load(form.dtype, lanes, accumulator, zero),
                       value);
    };
    const auto step = [&](uint32_t i) {
      const uint32_t at = w.plus(first, w.times(i, form.inner));
      const uint32_t next = combined(sum, w.load(form.dtype, lanes, x, at));
      w.store(lanes, sum, zero, next);
      return std::pair(at, next);
    };
    if (form.op != Op::Add || !is_float(form.dtype)) {
      w.store(lanes, sum, zero, start);
      const uint32_t i = w.loop(zero, w.number(form.length));
      const auto [at, next] = step(i);
      w.store(lanes, out, at, next);
      w.end_loop(i);
      return;
    }
    // Parts begin anew, so that terms are added to numbers of their own size (long_sums.h).
    const uint32_t total = w.accumulator(form.dtype, lanes);
    w.store(lanes, total, zero, start);
    const uint32_t part = w.loop(zero, w.number((form.length + kScanPart - 1) / kScanPart));
    w.store(lanes, sum, zero, identity);
    const uint32_t begin = w.times(part, kScanPart);
    const uint32_t i =
        w.loop(begin, w.smaller(w.plus(begin, w.number(kScanPart)), w.number(form.length)));
    const auto [at, next] = step(i);
    w.store(lanes, out, at, combined(total, next));
    w.end_loop(i);
    w.store(lanes, total, zero, combined(total, w.load(form.dtype, lanes, sum, zero)));
    w.end_loop(part);
  });
  w.end_loop(unit);
  return w.finish(name);
}

std::string name_of(const ScanForm& f) {
  return fmt::format("scan_{}_{}_{}_{}_{}{}", op_info(f.op).name, plugrad::name_of(f.dtype),
                     f.outer, f.length, f.inner, f.has_before ? "_on" : "");
}

}  // namespace plugrad::codegen
