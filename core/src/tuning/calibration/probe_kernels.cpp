#include "tuning/calibration/probe_kernels.h"

#include <algorithm>

#include "codegen/emit/ir_writer.h"

namespace plugrad::tuning {
namespace {

using Kind = cost::Probe::Kind;

constexpr int64_t kSums = 10;    // independent; usually enough to hide multiply-add latency
constexpr int64_t kRepeat = 16;  // unrolling, so that the loop counter costs little
constexpr int64_t kVectors = 8;  // of a block
constexpr int64_t kBitsOfHalf = 0x3f000000;

class Writer {
 public:
  Writer(DType dtype, const pgr_device_caps& caps, int64_t results)
      : dtype_(dtype), lanes_(std::max(1u, caps.vector_lanes[static_cast<size_t>(dtype)])) {
    const uint32_t align = std::max(caps.buffer_align_bytes, 1u);
    out_ = buffer(align, PGR_PARAM_WRITE, results * lanes_ * kMostProbeGroups);
    in_ = buffer(align, PGR_PARAM_READ | PGR_PARAM_WRITE, kProbeBytes / 4);
    if (claims(caps, PGR_OP_LOOP) && claims(caps, PGR_OP_MUL) && claims(caps, PGR_OP_ADD))
      index_ = DType::I64;  // addresses then need fewer instructions
    blocks_ = scalar();
    turns_ = scalar();
    zero_ = number(0);
    group_ = ir_.inst(PGR_OP_GROUP_ID, index_, 1, {}, 0);
  }

  int64_t lanes() const { return lanes_; }
  uint32_t number(int64_t value) {
    return ir_.inst(PGR_OP_CONST, index_, 1, {}, static_cast<uint64_t>(value));
  }
  uint32_t index(uint16_t op, uint32_t a, uint32_t b) { return ir_.inst(op, index_, 1, {a, b}); }
  uint32_t vector(uint16_t op, std::initializer_list<uint32_t> sources) {
    return ir_.inst(op, dtype_, lanes_, sources);
  }
  uint32_t repeated(uint32_t index) {
    const uint32_t one = index_ == dtype_ ? index : ir_.inst(PGR_OP_CAST, dtype_, 1, {index});
    return lanes_ == 1 ? one : ir_.inst(PGR_OP_VECTOR, dtype_, lanes_, {one});
  }
  uint32_t load(uint32_t at) { return vector(PGR_OP_LOAD, {in_, at}); }
  void store(uint32_t at, uint32_t value) {
    ir_.inst(PGR_OP_STORE, DType::Void, lanes_, {in_, at, value});
  }
  uint32_t sum() {
    const uint32_t row =
        ir_.array({PGR_SPACE_PRIVATE, static_cast<uint32_t>(dtype_), 4 * lanes_, lanes_, lanes_});
    return ir_.inst(PGR_OP_ARRAY, dtype_, 1, {}, row);
  }
  uint32_t get(uint32_t sum) { return vector(PGR_OP_LOAD, {sum, zero_}); }
  void set(uint32_t sum, uint32_t value) {
    ir_.inst(PGR_OP_STORE, DType::Void, lanes_, {sum, zero_, value});
  }
  uint32_t loop(uint32_t end) { return ir_.inst(PGR_OP_LOOP, index_, 1, {zero_, end}); }
  void end(uint32_t loop) { ir_.inst(PGR_OP_END_LOOP, DType::Void, 1, {loop}); }
  uint32_t turns() const { return turns_; }
  uint32_t blocks() const { return blocks_; }
  // The first element of vector `v` in the group's block.
  uint32_t at(uint32_t block, int64_t v) {
    const uint32_t all = index(PGR_OP_ADD, index(PGR_OP_MUL, group_, blocks_), block);
    return index(PGR_OP_ADD, index(PGR_OP_MUL, all, number(kVectors * lanes_)), number(v * lanes_));
  }
  void give(const std::vector<uint32_t>& sums) {
    const auto count = static_cast<int64_t>(sums.size());
    const uint32_t first = index(PGR_OP_MUL, group_, number(count * lanes_));
    for (int64_t i = 0; i < count; ++i)
      ir_.inst(
          PGR_OP_STORE, DType::Void, lanes_,
          {out_, index(PGR_OP_ADD, first, number(i * lanes_)), get(sums[static_cast<size_t>(i)])});
  }
  std::vector<std::byte> finish(const char* name, uint64_t groups) {
    return ir_.finish(name, {{groups, 1, 1}, {1, 1, 1}}, 0);
  }

 private:
  uint32_t buffer(uint32_t align, uint32_t flags, int64_t count) {
    const uint32_t row =
        ir_.param({PGR_PARAM_BUFFER, static_cast<uint32_t>(dtype_), flags | PGR_PARAM_NO_ALIAS,
                   align, static_cast<uint64_t>(count), 0, 0});
    return ir_.inst(PGR_OP_PARAM, dtype_, 1, {}, row);
  }
  uint32_t scalar() {
    const uint32_t row = ir_.param(
        {PGR_PARAM_SCALAR, static_cast<uint32_t>(DType::I32), PGR_PARAM_READ, 0, 0, 0, INT32_MAX});
    const uint32_t value = ir_.inst(PGR_OP_PARAM, DType::I32, 1, {}, row);
    return index_ == DType::I32 ? value : ir_.inst(PGR_OP_CAST, index_, 1, {value});
  }

  static bool claims(const pgr_device_caps& caps, uint32_t op) {
    return (caps.op_dtypes[op] >> PGR_DTYPE_I64 & 1) != 0;
  }

  codegen::IrWriter ir_;
  DType dtype_, index_ = DType::I32;
  uint32_t lanes_;
  uint32_t out_ = 0, in_ = 0, blocks_ = 0, turns_ = 0, zero_ = 0, group_ = 0;
};

// sum = (sum + a) ^ b: two operations that compilers cannot merge
ProbeKernel write_chain(const char* name, uint64_t groups, pgr_device_caps caps) {
  caps.vector_lanes[static_cast<size_t>(DType::I32)] = 1;
  Writer w(DType::I32, caps, 1);
  const uint32_t a = w.load(w.number(1)), b = w.load(w.number(2)), sum = w.sum();
  w.set(sum, a);
  const uint32_t turn = w.loop(w.turns());
  uint32_t value = w.get(sum);
  for (int64_t i = 0; i < kRepeat; ++i)
    value = w.vector(PGR_OP_XOR, {w.vector(PGR_OP_ADD, {value, a}), b});
  w.set(sum, value);
  w.end(turn);
  w.give({sum});
  return {w.finish(name, groups), 2 * kRepeat, 1, 0};
}

// sum = sum * a + b
ProbeKernel write_sums(const char* name, uint64_t groups, const pgr_device_caps& caps,
                       int64_t count) {
  const bool fuses = (caps.op_dtypes[PGR_OP_FMA] >> PGR_DTYPE_F32 & 1) != 0;
  Writer w(DType::F32, caps, count);
  const uint32_t a = w.load(w.number(0)), b = w.load(w.number(w.lanes()));
  std::vector<uint32_t> sums;
  for (int64_t i = 0; i < count; ++i) {
    sums.push_back(w.sum());
    w.set(sums.back(), w.load(w.number((i + 2) * w.lanes())));
  }
  const uint32_t turn = w.loop(w.turns());
  std::vector<uint32_t> values;
  for (uint32_t sum : sums) values.push_back(w.get(sum));
  for (int64_t i = 0; i < kRepeat; ++i)
    for (uint32_t& v : values)
      v = fuses ? w.vector(PGR_OP_FMA, {v, a, b})
                : w.vector(PGR_OP_ADD, {w.vector(PGR_OP_MUL, {v, a}), b});
  for (size_t i = 0; i < sums.size(); ++i) w.set(sums[i], values[i]);
  w.end(turn);
  w.give(sums);
  return {w.finish(name, groups), static_cast<double>(kRepeat * count), count * w.lanes(), 0};
}

ProbeKernel write_loads(const char* name, uint64_t groups, const pgr_device_caps& caps) {
  Writer w(DType::I32, caps, kVectors);
  std::vector<uint32_t> sums;
  for (int64_t v = 0; v < kVectors; ++v) {
    sums.push_back(w.sum());
    w.set(sums.back(), w.repeated(w.number(v)));
  }
  const uint32_t turn = w.loop(w.turns());
  const uint32_t block = w.loop(w.blocks());
  for (int64_t v = 0; v < kVectors; ++v) {
    const uint32_t sum = sums[static_cast<size_t>(v)];
    w.set(sum, w.vector(PGR_OP_ADD, {w.get(sum), w.load(w.at(block, v))}));
  }
  w.end(block);
  w.end(turn);
  w.give(sums);
  return {w.finish(name, groups), kVectors, kVectors * w.lanes(), kVectors * w.lanes()};
}

ProbeKernel write_stores(const char* name, uint64_t groups, const pgr_device_caps& caps) {
  Writer w(DType::I32, caps, 1);
  const uint32_t turn = w.loop(w.turns());
  // as f32 these bits are normal numbers, which other probes read
  const uint32_t value = w.repeated(w.index(PGR_OP_ADD, turn, w.number(kBitsOfHalf)));
  const uint32_t block = w.loop(w.blocks());
  for (int64_t v = 0; v < kVectors; ++v) w.store(w.at(block, v), value);
  w.end(block);
  w.end(turn);
  return {w.finish(name, groups), kVectors, w.lanes(), kVectors * w.lanes()};
}

}  // namespace

ProbeKernel write_probe(Kind kind, const char* name, uint64_t groups, const pgr_device_caps& caps) {
  if (kind == Kind::Chain) return write_chain(name, groups, caps);
  if (kind == Kind::MultiplyAdds) return write_sums(name, groups, caps, kSums);
  if (kind == Kind::Latency || kind == Kind::Wake) return write_sums(name, groups, caps, 1);
  return kind == Kind::Loads ? write_loads(name, groups, caps) : write_stores(name, groups, caps);
}

}  // namespace plugrad::tuning
