#include "conformance/kernels/random/random_kernel.h"

#include <algorithm>

#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

constexpr int64_t kBufferElements = 2048;  // of each buffer
constexpr int64_t kTrips = 3, kMostScalar = 5, kArray = 6;

struct Typed {
  Value value;
  uint32_t dtype, lanes;
  bool is_loaded;  // from an input: the bits of its NaNs are known
};

class Generator {
 public:
  Generator(const pgr_device_caps& caps, Random& random)
      : caps_(caps), random_(random), ir_("random_kernel") {
    choose_dtypes();
    make_parameters();
    make_ids();
    write_body();
  }
  Bytes block() const { return ir_.finish(); }

 private:
  uint32_t below(uint64_t count) { return static_cast<uint32_t>(random_() % count); }
  bool one_in(uint32_t count) { return below(count) == 0; }
  bool claims(uint32_t op, uint32_t dtype) const { return caps_.op_dtypes[op] >> dtype & 1; }
  bool stores(uint32_t dtype) const { return caps_.storage_dtypes >> dtype & 1; }

  // Chooses f32, i32, bool and up to three other dtypes.
  void choose_dtypes() {
    dtypes_ = {PGR_DTYPE_F32, PGR_DTYPE_I32, PGR_DTYPE_BOOL};
    for (int tries = 0; tries < 3; ++tries) {
      const uint32_t dtype = 1 + below(PGR_DTYPE_COUNT - 1);
      if (stores(dtype) && std::find(dtypes_.begin(), dtypes_.end(), dtype) == dtypes_.end())
        dtypes_.push_back(dtype);
    }
  }
  uint32_t any_dtype() { return dtypes_[below(dtypes_.size())]; }
  uint32_t any_lanes(uint32_t dtype) {
    const uint32_t widest =
        std::min({caps_.vector_lanes[dtype], caps_.vector_lanes[PGR_DTYPE_BOOL], 64u});
    if (widest < 2 || !claims(PGR_OP_VECTOR, dtype) || one_in(2)) return 1;
    uint32_t lanes = 2;
    while (lanes * 2 <= widest && one_in(2)) lanes *= 2;
    return lanes;
  }

  void make_parameters() {
    for (uint32_t dtype : dtypes_) {
      inputs_[dtype] = ir_.buffer(dtype, kBufferElements, kInput);
      outputs_[dtype] = ir_.buffer(dtype, kBufferElements, kBoth);
      const bool is_math = dtype >= PGR_DTYPE_F16 && dtype <= PGR_DTYPE_F64;
      if (is_math) near_[dtype] = ir_.buffer(dtype, kBufferElements, kOutput);
      if (is_integer(dtype) && claims(PGR_OP_ATOMIC_ADD, dtype))
        sums_[dtype] = ir_.buffer(dtype, 4, kBoth);
    }
    scalar_ = ir_.scalar(PGR_DTYPE_I32, 0, kMostScalar);
  }

  // Every work-item has its own elements in all outputs.
  void make_ids() {
    const uint32_t groups = 1 + below(4);
    const bool has_groups = caps_.has_local && caps_.max_local_total >= 4 &&
                            caps_.max_local_size[0] >= 4 && caps_.local_bytes >= 4096;
    local_size_ = has_groups && one_in(2) ? 4 : 1;
    ir_.set_groups(groups);
    ir_.set_local(local_size_);
    span_ = kBufferElements / (groups * local_size_) - 64 - kTrips - kMostScalar;
    Value item = ir_.group_id(0);
    if (local_size_ > 1) {
      local_id_ = ir_.local_id(0);
      item = ir_.alu(PGR_OP_ADD, {ir_.alu(PGR_OP_MUL, {item, number(local_size_)}), local_id_});
    }
    base_ = ir_.alu(PGR_OP_MUL, {item, number(kBufferElements / (groups * local_size_))});
  }

  Value number(int64_t value) { return ir_.constant_int(PGR_DTYPE_I32, value); }
  Value put(const Typed& typed) {
    pool_.push_back(typed);
    return typed.value;
  }

  // Leaves room for 64 lanes.
  Value index() {
    Value at = ir_.alu(PGR_OP_ADD, {base_, number(below(static_cast<uint64_t>(span_)))});
    if (in_loop_ && one_in(2)) at = ir_.alu(PGR_OP_ADD, {at, loop_});
    if (one_in(3)) at = ir_.alu(PGR_OP_ADD, {at, scalar_});
    return at;
  }
  Value constant(uint32_t dtype) {
    const std::vector<uint64_t> edges = edge_values(dtype);
    const uint64_t bits = one_in(2) ? edges[below(edges.size())] : tame_value(dtype, random_);
    if (!is_signed(dtype)) return ir_.constant_bits(dtype, bits);
    const int unused = 64 - width_of(dtype);
    return ir_.constant_int(dtype, static_cast<int64_t>(bits << unused) >> unused);
  }
  Value load(uint32_t dtype, uint32_t lanes) {
    const Value at = index();
    if (depth_ > 2 || !one_in(4))
      return put({ir_.load(inputs_[dtype], at, lanes), dtype, lanes, true});
    ++depth_;
    const Value gate = get(PGR_DTYPE_BOOL, lanes), other = get(dtype, lanes);
    --depth_;
    return put({ir_.load_gated(inputs_[dtype], at, gate, other, lanes), dtype, lanes, false});
  }

  // A value of the type, or a scalar, which is splatted.
  Value get(uint32_t dtype, uint32_t lanes) {
    for (int tries = 0; tries < 8 && !pool_.empty(); ++tries) {
      const Typed& typed = pool_[below(pool_.size())];
      if (typed.dtype == dtype && (typed.lanes == lanes || (typed.lanes == 1 && one_in(3))))
        return typed.value;
    }
    return one_in(6) ? constant(dtype) : load(dtype, lanes);
  }
  Value get_wide(uint32_t dtype, uint32_t lanes) {
    for (int tries = 0; tries < 8 && !pool_.empty(); ++tries) {
      const Typed& typed = pool_[below(pool_.size())];
      if (typed.dtype == dtype && typed.lanes == lanes) return typed.value;
    }
    return load(dtype, lanes);
  }

  void add_alu() {
    const auto ops = sdk::all_ops();
    const sdk::OpInfo& op = ops[below(ops.size())];
    const uint32_t dtype = any_dtype(), lanes = any_lanes(dtype);
    const Operation o = make_operation(op.number, dtype);
    const bool is_plain = op.op_class == PGR_OP_CLASS_ALU && op.number != PGR_OP_CAST &&
                          op.number != PGR_OP_BITCAST && is_operation(o.op, o.from, o.to);
    if (!is_plain || !claims(o.op, dtype)) return;
    std::vector<Value> sources;
    for (uint32_t s = 0; s < o.source_count(); ++s)
      sources.push_back(s == o.source_count() - 1 ? get_wide(o.source_dtype(s), lanes)
                                                  : get(o.source_dtype(s), lanes));
    Value value = ir_.emit(o.op, o.to, lanes, sources);
    if (!is_reproducible(o.op, dtype, caps_)) {
      if (near_.contains(o.to)) ir_.store(near_[o.to], index(), value);
      return;
    }
    // The sign of a zero result is unspecified.
    if (o.op == PGR_OP_MAX && is_float(dtype))
      value = ir_.alu(PGR_OP_ADD, {value, ir_.constant_bits(dtype, 0)});
    put({value, o.to, lanes, false});
  }

  // Between float and integer: clamps well into the integer's range.
  Value inside(Value value, uint32_t from, uint32_t to) {
    const double most = width_of(to) == 8 ? 100 : 30000;
    const Value low = ir_.constant_float(from, is_signed(to) ? -most : -0.5);
    const Value high = ir_.constant_float(from, most);
    const Value gate = ir_.alu(
        PGR_OP_AND, {ir_.alu(PGR_OP_CMPLT, {low, value}), ir_.alu(PGR_OP_CMPLT, {value, high})});
    return ir_.alu(PGR_OP_WHERE, {gate, value, ir_.constant_bits(from, 0)});
  }
  void add_cast() {
    const uint32_t from = any_dtype(), to = any_dtype();
    const uint32_t lanes = std::min(any_lanes(from), any_lanes(to));
    if (!claims(PGR_OP_CAST, from) || !claims(PGR_OP_CAST, to)) return;
    if (!is_reproducible(PGR_OP_CAST, from, caps_) || !is_reproducible(PGR_OP_CAST, to, caps_))
      return;
    Value value = get_wide(from, lanes);
    if (is_float(from) && is_integer(to)) {
      if (!is_operation(PGR_OP_CMPLT, from, PGR_DTYPE_BOOL) || !claims(PGR_OP_CMPLT, from) ||
          !is_reproducible(PGR_OP_CMPLT, from, caps_))
        return;
      value = inside(value, from, to);
    }
    put({ir_.cast(value, to), to, lanes, false});
  }
  void add_bitcast() {
    const uint32_t from = any_dtype(), to = any_dtype();
    if (!is_operation(PGR_OP_BITCAST, from, to) || !claims(PGR_OP_BITCAST, from)) return;
    const uint32_t lanes = std::min(any_lanes(from), any_lanes(to));
    const Value value =
        is_float(from) ? ir_.load(inputs_[from], index(), lanes) : get_wide(from, lanes);
    put({ir_.bitcast(value, to), to, lanes, false});
  }
  void add_lanes() {
    const uint32_t dtype = any_dtype(), lanes = any_lanes(dtype);
    if (lanes == 1) return;
    const uint32_t half = lanes / 2;
    if (one_in(2))
      put({ir_.lane(get_wide(dtype, lanes), below(half + 1), half), dtype, half, false});
    else if (one_in(2))
      put({ir_.vector({get_wide(dtype, half), get_wide(dtype, half)}), dtype, lanes, false});
    else
      put({ir_.splat(get_wide(dtype, 1), lanes), dtype, lanes, false});
  }

  // Fills an array in a loop, reads it in another, and sums it, as in reductions and tiles.
  void add_array() {
    const uint32_t dtype = any_dtype();
    const bool adds = claims(PGR_OP_ADD, dtype) && is_operation(PGR_OP_ADD, dtype, dtype) &&
                      is_reproducible(PGR_OP_ADD, dtype, caps_);
    const Value array = ir_.array(PGR_SPACE_PRIVATE, dtype, kArray);
    const Value first = get_wide(dtype, 1), start = index();
    const Value fill = ir_.loop(number(0), number(kArray));
    const Value loaded = ir_.load(inputs_[dtype], ir_.alu(PGR_OP_ADD, {start, fill}));
    ir_.store(array, fill, adds ? ir_.alu(PGR_OP_ADD, {loaded, first}) : loaded);
    ir_.end_loop(fill);
    if (adds) {
      const Value sum = ir_.loop(number(1), ir_.alu(PGR_OP_ADD, {scalar_, number(1)}));
      const Value total = ir_.alu(PGR_OP_ADD, {ir_.load(array, number(0)), ir_.load(array, sum)});
      ir_.store(array, number(0), total);
      ir_.end_loop(sum);
    }
    put({ir_.load(array, number(below(kArray))), dtype, 1, false});
    put({ir_.load(array, scalar_), dtype, 1, false});
  }

  // Exchanges values between the work-items of a group; all of them must execute it.
  void add_exchange() {
    if (local_size_ == 1 || in_block_ || !claims(PGR_OP_BARRIER, PGR_DTYPE_BOOL)) return;
    const uint32_t dtype = any_dtype();
    const Value array = ir_.array(PGR_SPACE_LOCAL, dtype, local_size_);
    ir_.store(array, local_id_, get_wide(dtype, 1));
    ir_.barrier();
    const Value next = ir_.alu(PGR_OP_ADD, {local_id_, number(1 + below(3))});
    const Value at = ir_.alu(PGR_OP_MOD, {next, number(local_size_)});
    put({ir_.load(array, at), dtype, 1, false});
  }
  void add_atomic() {
    if (sums_.empty()) return;
    auto sum = sums_.begin();
    std::advance(sum, below(sums_.size()));
    ir_.atomic_add(sum->second, number(below(4)), get_wide(sum->first, 1));
  }

  void add_store(const Typed& typed) {
    const Value at = index();
    if (one_in(3))
      ir_.store_gated(outputs_[typed.dtype], at, typed.value, get(PGR_DTYPE_BOOL, typed.lanes));
    else
      ir_.store(outputs_[typed.dtype], at, typed.value);
  }

  void add_some(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t choice = below(14);
      if (choice < 7) add_alu();
      if (choice == 7 || choice == 8) add_cast();
      if (choice == 9) add_bitcast();
      if (choice == 10) add_lanes();
      if (choice == 11 && !in_loop_) add_array();
      if (choice == 12) add_exchange();
      if (choice == 13) add_atomic();
      if (!pool_.empty() && !one_in(3))
        add_store(one_in(3) ? pool_[below(pool_.size())] : Typed(pool_.back()));
    }
  }

  void write_if(uint32_t count) {
    const size_t outside = pool_.size();
    const bool was_in_block = in_block_;
    const Value opener = ir_.begin_if(get_wide(PGR_DTYPE_BOOL, 1));
    in_block_ = true;
    const size_t inside_from = pool_.size();
    add_some(count);
    ir_.end_if(opener);
    in_block_ = was_in_block;
    pool_.resize(std::max(outside, inside_from));
  }

  void write_body() {
    add_some(8 + below(16));
    if (one_in(2)) write_if(4);
    const size_t outside = pool_.size();
    loop_ = ir_.loop(one_in(3) ? scalar_ : number(0), number(kTrips));
    in_loop_ = in_block_ = true;
    add_some(4 + below(8));
    if (one_in(2)) write_if(3);
    ir_.end_loop(loop_);
    in_loop_ = in_block_ = false;
    pool_.resize(outside);
    add_some(4);
    ir_.store(outputs_[PGR_DTYPE_I32], index(), get_wide(PGR_DTYPE_I32, 1));
  }

  const pgr_device_caps& caps_;
  Random& random_;
  IrBuilder ir_;
  std::vector<uint32_t> dtypes_;
  std::map<uint32_t, Value> inputs_, outputs_, near_, sums_;
  std::vector<Typed> pool_;
  Value base_ = 0, loop_ = 0, scalar_ = 0, local_id_ = 0;
  uint32_t local_size_ = 1;
  int64_t span_ = 1;
  bool in_loop_ = false, in_block_ = false;
  int depth_ = 0;
};

}  // namespace

Bytes make_random_kernel(const pgr_device_caps& caps, Random& random) {
  return Generator(caps, random).block();
}

}  // namespace plugrad::conformance
