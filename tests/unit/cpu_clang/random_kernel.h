// Random kernels over all dtypes, with their buffers.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "plugrad/plugin_api/device.h"
#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/ir_builder.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::testing {

class RandomKernel {
 public:
  using Value = sdk::IrBuilder::Value;
  static constexpr uint64_t kElems = 256;  // in every buffer
  static constexpr uint32_t kFirst = PGR_DTYPE_BOOL, kLast = PGR_DTYPE_F64;

  // Draws from ops that `caps` claims, in vectors of at most `most_lanes`: 1 or 32.
  RandomKernel(uint32_t seed, const pgr_device_caps& caps, uint32_t most_lanes = 32)
      : random_(seed), caps_(caps), most_lanes_(most_lanes), ir_("k") {
    for (uint32_t d = kFirst; d <= kLast; ++d) {
      const uint32_t kept = stored_dtype(d);
      inputs_[d] = ir_.buffer(kept, kElems, PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
      outputs_[d] = ir_.buffer(kept, kElems, PGR_PARAM_WRITE | PGR_PARAM_READ | PGR_PARAM_NO_ALIAS);
    }
    ir_.set_groups(2);
    group_ = ir_.group_id(0, PGR_DTYPE_I64);
    write_body();
  }
  std::vector<std::byte> block() const { return ir_.finish(); }

  // Contents of the parameters: inputs and outputs of each dtype alternate.
  std::vector<std::vector<std::byte>> contents() {
    std::vector<std::vector<std::byte>> all;
    for (uint32_t d = kFirst; d <= kLast; ++d) {
      all.push_back(random_elements(stored_dtype(d)));
      all.emplace_back(kElems * sdk::dtype_size(d), std::byte{0});
    }
    return all;
  }
  static uint32_t dtype_of_param(size_t index) { return kFirst + static_cast<uint32_t>(index / 2); }

  // A device without f16 gets bf16 instead.
  uint32_t stored_dtype(uint32_t d) const {
    return d == PGR_DTYPE_F16 && !(caps_.storage_dtypes >> d & 1) ? uint32_t{PGR_DTYPE_BF16} : d;
  }

 private:
  struct Typed {
    Value value;
    uint32_t dtype, lanes;
    bool is_loaded;  // its NaNs have known bits
  };

  uint32_t below(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  bool is_claimed(uint32_t op, uint32_t dtype) const { return caps_.op_dtypes[op] >> dtype & 1; }
  bool one_in(uint32_t count) { return below(count) == 0; }
  uint32_t any_dtype() {
    static constexpr uint32_t kCommon[] = {PGR_DTYPE_F32, PGR_DTYPE_F32, PGR_DTYPE_I32,
                                           PGR_DTYPE_BOOL};
    return stored_dtype(one_in(3) ? kCommon[below(4)] : kFirst + below(kLast - kFirst + 1));
  }
  uint32_t any_lanes() { return std::min(1u << below(5), most_lanes_); }
  static bool is_half(uint32_t d) { return d == PGR_DTYPE_F16 || d == PGR_DTYPE_BF16; }
  Value number(uint64_t value) { return ir_.constant_int(PGR_DTYPE_I64, int64_t(value)); }
  Value put(Typed typed) {
    pool_.push_back(typed);
    return typed.value;
  }

  std::vector<std::byte> random_elements(uint32_t d) {
    const uint32_t size = sdk::dtype_size(d);
    std::vector<std::byte> bytes(kElems * size);
    const double edges[] = {0, 1, -1, 2, 1.5, -2.5, 100, 1e-8, 7, 65504, INFINITY, NAN, NAN, 3e9};
    for (uint64_t i = 0; i < kElems; ++i) {
      uint64_t bits = random_();
      if (d == PGR_DTYPE_BOOL)
        bits &= 1;
      else if (sdk::dtype_info(d)->is_float && !one_in(4))
        bits = sdk::encode_float(d, edges[below(14)]);
      else if (!sdk::dtype_info(d)->is_float && one_in(3))
        bits = uint64_t(int64_t(below(9)) - 4);
      std::memcpy(&bytes[i * size], &bits, size);
    }
    return bytes;
  }

  // A value of the type, existing or new; sometimes a broadcast lane.
  Value get(uint32_t dtype, uint32_t lanes) {
    for (int tries = 0; tries < 6 && !pool_.empty(); ++tries) {
      const Typed& typed = pool_[below(uint32_t(pool_.size()))];
      if (typed.dtype == dtype && (typed.lanes == lanes || (typed.lanes == 1 && one_in(2))))
        return typed.value;
    }
    return one_in(5) ? constant(dtype) : load(dtype, lanes);
  }
  Value get_exact(uint32_t dtype, uint32_t lanes) {
    for (const Typed& typed : pool_)
      if (typed.dtype == dtype && typed.lanes == lanes && one_in(2)) return typed.value;
    return load(dtype, lanes);
  }
  Value constant(uint32_t dtype) {
    const auto bytes = random_elements(dtype);
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), sdk::dtype_size(dtype));
    if (sdk::dtype_info(dtype)->is_int) {
      const uint32_t shift = 64 - 8 * sdk::dtype_size(dtype);
      return ir_.constant_int(dtype, sdk::dtype_info(dtype)->is_signed
                                         ? int64_t(bits << shift) >> shift
                                         : int64_t(bits));
    }
    return ir_.constant_bits(dtype, bits);
  }

  // An index that leaves room for the lanes.
  Value index(uint32_t lanes) {
    const Value base = ir_.alu(PGR_OP_MUL, {group_, number(kElems / 2)});
    const Value row = in_loop_ ? ir_.alu(PGR_OP_ADD, {base, loop_}) : base;
    return ir_.alu(PGR_OP_ADD, {row, number(below(uint32_t(kElems / 2 - lanes - 3)))});
  }
  Value load(uint32_t dtype, uint32_t lanes) {
    const Value at = index(lanes);
    if (!one_in(3)) return put({ir_.load(inputs_[dtype], at, lanes), dtype, lanes, true});
    const Value gate = get_exact_or_one(PGR_DTYPE_BOOL, lanes);
    const Value other = one_in(2) ? constant(dtype) : get_exact_or_one(dtype, lanes);
    return put({ir_.load_gated(inputs_[dtype], at, gate, other, lanes), dtype, lanes, false});
  }
  Value get_exact_or_one(uint32_t dtype, uint32_t lanes) {
    if (depth_ > 3) return constant(dtype);
    ++depth_;
    const Value value = get_exact(dtype, one_in(3) ? 1 : lanes);
    --depth_;
    return value;
  }

  void add_alu() {
    static constexpr uint32_t kNumberOps[] = {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_MAX,
                                              PGR_OP_NEG};
    static constexpr uint32_t kIntOps[] = {PGR_OP_IDIV, PGR_OP_MOD, PGR_OP_AND, PGR_OP_OR,
                                           PGR_OP_XOR,  PGR_OP_SHL, PGR_OP_SHR};
    static constexpr uint32_t kFloatOps[] = {PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_SQRT, PGR_OP_FMA,
                                             PGR_OP_TRUNC};
    static constexpr uint32_t kBoolOps[] = {PGR_OP_AND, PGR_OP_OR, PGR_OP_XOR, PGR_OP_MAX};
    const uint32_t d = any_dtype(), lanes = any_lanes();
    if (is_half(d)) return;
    const bool is_float = sdk::dtype_info(d)->is_float;
    uint32_t op = kNumberOps[below(5)];
    if (one_in(2)) op = is_float ? kFloatOps[below(5)] : kIntOps[below(7)];
    if (d == PGR_DTYPE_BOOL) op = kBoolOps[below(4)];
    if (!is_claimed(op, d)) return;
    const uint32_t count = sdk::op_info(op)->min_sources;
    std::vector<Value> sources = {get(d, lanes)};
    while (sources.size() < count) sources.push_back(get(d, lanes));
    // One source at least has all the lanes.
    sources[below(count)] = get_exact(d, lanes);
    Value value = ir_.emit(op, d, lanes, sources);
    // The sign of a zero result of max is unspecified.
    if (op == PGR_OP_MAX && is_float)
      value = ir_.alu(PGR_OP_ADD, {value, ir_.constant_float(d, 0)});
    put({value, d, lanes, false});
  }
  void add_compare() {
    static constexpr uint32_t kOps[] = {PGR_OP_CMPLT, PGR_OP_CMPEQ, PGR_OP_CMPNE};
    const uint32_t d = any_dtype(), lanes = any_lanes();
    if (is_half(d)) return;
    put({ir_.emit(kOps[below(3)], PGR_DTYPE_BOOL, lanes, {get_exact(d, lanes), get(d, lanes)}),
         PGR_DTYPE_BOOL, lanes, false});
  }
  void add_where() {
    const uint32_t d = any_dtype(), lanes = any_lanes();
    const Value yes = get_exact(d, lanes), no = get(d, lanes);
    put({ir_.emit(PGR_OP_WHERE, d, lanes, {get(PGR_DTYPE_BOOL, lanes), yes, no}), d, lanes, false});
  }
  void add_cast() {
    const uint32_t lanes = any_lanes(), from = any_dtype(), to = any_dtype();
    if (!is_claimed(PGR_OP_CAST, from) || !is_claimed(PGR_OP_CAST, to)) return;
    put({ir_.cast(get_exact(from, lanes), to), to, lanes, false});
  }
  // Casts the bits of loaded values only: the bits of a computed NaN are unspecified.
  void add_bitcast() {
    const uint32_t lanes = any_lanes(), from = any_dtype(), to = any_dtype();
    if (from == PGR_DTYPE_BOOL || to == PGR_DTYPE_BOOL ||
        sdk::dtype_size(from) != sdk::dtype_size(to))
      return;
    const Value loaded = ir_.load(inputs_[from], index(lanes), lanes);
    put({ir_.bitcast(loaded, to), to, lanes, false});
  }
  void add_lanes() {
    if (most_lanes_ == 1) return;
    const uint32_t d = any_dtype(), lanes = any_lanes();
    if (one_in(2) && lanes > 1) {
      const uint32_t part = lanes / 2;
      put({ir_.lane(get_exact(d, lanes), below(part + 1), part), d, part, false});
    } else if (one_in(3)) {
      put({ir_.vector({get_exact(d, 1), get_exact(d, 1), get_exact(d, 2)}), d, 4, false});
    } else {
      put({ir_.vector({get_exact(d, lanes), get_exact(d, lanes)}), d, lanes * 2, false});
    }
  }

  // A running sum, as reductions are written.
  void add_accumulator() {
    const uint32_t d = one_in(2) ? PGR_DTYPE_F32 : PGR_DTYPE_I32, lanes = any_lanes();
    const Value acc = ir_.array(PGR_SPACE_PRIVATE, d, lanes, lanes);
    ir_.store(acc, number(0), get_exact(d, lanes));
    const Value loop = ir_.loop(number(0), number(3));
    const size_t before = pool_.size();
    const Value at = ir_.alu(PGR_OP_ADD, {index(lanes + 3), loop});
    const Value term = ir_.load(inputs_[d], at, lanes);
    ir_.store(acc, number(0), ir_.alu(PGR_OP_ADD, {ir_.load(acc, number(0), lanes), term}));
    ir_.end_loop(loop);
    pool_.resize(before);
    put({ir_.load(acc, number(0), lanes), d, lanes, false});
  }

  void add_store(uint32_t which) {
    const Typed& typed = pool_[which];
    const uint32_t d = typed.dtype, lanes = typed.lanes;
    const Value value = typed.value, at = index(lanes);
    if (one_in(3))
      ir_.store_gated(outputs_[d], at, value, get_exact_or_one(PGR_DTYPE_BOOL, lanes));
    else
      ir_.store(outputs_[d], at, value);
  }

  void add_some(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      switch (below(10)) {
        case 0:
          add_compare();
          break;
        case 1:
          add_where();
          break;
        case 2:
        case 3:
          add_cast();
          break;
        case 4:
          add_bitcast();
          break;
        case 5:
          add_lanes();
          break;
        case 6:
          if (!in_loop_) add_accumulator();
          break;
        default:
          add_alu();
      }
      if (!pool_.empty() && !one_in(3))
        add_store(one_in(3) ? below(uint32_t(pool_.size())) : uint32_t(pool_.size()) - 1);
    }
  }

  void write_body() {
    add_some(10 + below(15));
    const size_t outside = pool_.size();
    loop_ = ir_.loop(number(0), number(3));
    in_loop_ = true;
    add_some(5 + below(10));
    const Value gate = ir_.alu(PGR_OP_CMPLT, {loop_, number(2)});
    const size_t in_loop = pool_.size();
    const Value opener = ir_.begin_if(gate);
    add_some(4);
    ir_.end_if(opener);
    pool_.resize(in_loop);
    add_some(3);
    ir_.end_loop(loop_);
    in_loop_ = false;
    pool_.resize(outside);
    add_some(5);
  }

  std::mt19937_64 random_;
  pgr_device_caps caps_;
  uint32_t most_lanes_;
  sdk::IrBuilder ir_;
  std::map<uint32_t, Value> inputs_, outputs_;
  std::vector<Typed> pool_;
  Value group_ = 0, loop_ = 0;
  bool in_loop_ = false;
  int depth_ = 0;
};

}  // namespace plugrad::testing
