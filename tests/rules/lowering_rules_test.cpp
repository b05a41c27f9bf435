// Every lowering row alone: an instance of its left side on a device that lacks the lowered op;
// both sides have the same value, within the bounds of docs/accuracy.md, for random values, NaN,
// -0, infinities, denormals and the ends of the integers.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "codegen/kernel.h"
#include "codegen/lowering/lowering.h"
#include "codegen/passes/passes.h"
#include "ir/fold.h"
#include "ir/range.h"
#include "ir/text/printer.h"
#include "plugrad/error.h"
#include "rewrite/print_rule.h"
#include "rules/random_values.h"

namespace plugrad {
namespace {

constexpr DType kDtypes[] = {DType::Bool, DType::I8,     DType::U8,     DType::I16, DType::U16,
                             DType::I32,  DType::U32,    DType::I64,    DType::U64, DType::F16,
                             DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::F32, DType::F64};

uint8_t class_of(DType dtype) {
  if (dtype == DType::Bool) return kBoolClass;
  if (dtype == DType::I32) return kI32Class;
  if (dtype == DType::U32) return kU32Class;
  if (dtype == DType::F32 || dtype == DType::F64) return kRealClass;
  if (is_float(dtype)) return kSmallFloatClass;
  return size_of(dtype) == 8 ? kWideIntClass : kSmallIntClass;
}

bool takes(Op op, DType dtype) {
  if (dtype == DType::Bool && rules::is_in(rules::set_of({Op::Sub, Op::Neg, Op::Shl, Op::Shr,
                                                          Op::IDiv, Op::Mod, Op::Fma, Op::Bitcast}),
                                           op))
    return false;
  switch (op) {
    case Op::Recip:
    case Op::FDiv:
    case Op::Sqrt:
    case Op::Trunc:
    case Op::Exp2:
    case Op::Log2:
    case Op::Sin:
    case Op::Exp:
    case Op::Log:
    case Op::Pow:
    case Op::Cos:
    case Op::Tan:
      return is_float(dtype);
    case Op::IDiv:
    case Op::Mod:
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::Shl:
    case Op::Shr:
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return !is_float(dtype);
    case Op::Threefry0:
    case Op::Threefry1:
      return dtype == DType::U32;
    default:
      return true;
  }
}

/// Values of nodes by constant folding; the bits of a NaN are not compared.
class Values {
 public:
  explicit Values(const Graph& g, const std::map<Id, uint64_t>& leaves) : g_(g), leaves_(leaves) {}
  bool defined = true;

  uint64_t of(Id id) {
    if (const auto at = known_.find(id); at != known_.end()) return at->second;
    return known_[id] = compute(id);
  }

 private:
  uint64_t compute(Id id) {
    const Node& n = g_[id];
    if (const auto at = leaves_.find(id); at != leaves_.end()) return at->second;
    if (n.op == Op::Const) return n.arg;
    if (n.op == Op::Load) return loaded(id);
    if (n.op == Op::Store) return of(g_.sources(id)[2]);
    if (n.op == Op::Reduce) return reduced(id);
    std::vector<std::pair<DType, uint64_t>> sources;
    for (Id s : g_.sources(id)) sources.emplace_back(g_[s].dtype, of(s));
    return folded(n.op, n.dtype, sources);
  }
  // The loaded value of the leaf that represents memory, in the dtype of the load.
  uint64_t loaded(Id id) {
    for (const auto& [leaf, value] : leaves_)
      if (g_[leaf].op == Op::Load)
        return g_[leaf].dtype == DType::Bool
                   ? value
                   : folded(Op::Bitcast, g_[id].dtype, {{g_[leaf].dtype, value}});
    return 0;
  }
  // Reduces over one range with one iteration: one value after the other, small floats in f32.
  uint64_t reduced(Id id) {
    const auto parts = codegen::reduce_parts(g_, id);
    const DType dtype = g_[id].dtype;
    const DType sum = codegen::is_small_float(dtype) ? DType::F32 : dtype;
    uint64_t all = of(parts.values[0]);  // a constant has the same bits in f32
    for (Id v : parts.values.subspan(1)) all = folded(parts.op, sum, {{sum, all}, {sum, of(v)}});
    return sum == dtype ? all : folded(Op::Cast, dtype, {{sum, all}});
  }
  uint64_t folded(Op op, DType dtype, std::vector<std::pair<DType, uint64_t>> sources) {
    Graph scratch;
    std::vector<Id> ids;
    for (const auto& [type, bits] : sources) ids.push_back(scratch.add(Op::Const, type, {}, bits));
    if (const auto bits = fold(scratch, op, dtype, ids)) return *bits;
    const bool from_float = is_float(sources[0].first);
    if (op != Op::Bitcast || from_float) defined = false;
    return is_float(dtype) && !from_float ? bits_of(std::nan(""), dtype) : 0;
  }

  const Graph& g_;
  const std::map<Id, uint64_t>& leaves_;
  std::map<Id, uint64_t> known_;
};

/// A node that the left side of a rule may match.
class LoweredInstance {
 public:
  LoweredInstance(Graph& g, testing::RandomValues& random) : g_(g), random_(random) {}

  Id build(const Pattern& p, int at, DType wanted) {
    const PatternNode& n = p.nodes[at];
    if (n.name != kNoName && bound_.contains(n.name)) return bound_[n.name];
    const Id id = make(p, n, wanted);
    if (n.name != kNoName) bound_[n.name] = id;
    return id;
  }
  DType dtype(uint8_t classes) {
    for (;;)
      if (const DType d = random_.pick_of(kDtypes); (class_of(d) & classes) != 0) return d;
  }
  const std::vector<Id>& leaves() const { return leaves_; }

 private:
  Id leaf(DType dtype) {
    if (random_.pick(8) == 0) return g_.add(Op::Const, dtype, {}, random_.bits(dtype));
    leaves_.push_back(
        g_.add(Op::Param, dtype, {}, g_.list({static_cast<int64_t>(leaves_.size()), 0, 1, 1})));
    return leaves_.back();
  }
  Id make(const Pattern& p, const PatternNode& n, DType wanted) {
    if (n.kind == PatternKind::Name) return leaf(wanted);
    if (n.kind == PatternKind::Constant) return g_.add(Op::Const, wanted, {}, constant(wanted));
    const Op op = n.kind == PatternKind::OneOf ? pick(n.literal) : n.op;
    if (op == Op::Load || op == Op::Store) return access(op, wanted);
    if (op == Op::Reduce) return reduce(wanted);
    const int count = n.child_count != 0 ? n.child_count : op_info(op).min_sources;
    DType operand = wanted;
    if (is_compare(op) || op == Op::Cast || op == Op::Bitcast)
      operand = dtype(n.child_count != 0 ? p.nodes[n.child[0]].classes : uint8_t{kAnyClass});
    std::vector<Id> sources;
    for (int i = 0; i < count; ++i) {
      const DType type = op == Op::Where && i == 0 ? DType::Bool : operand;
      sources.push_back(n.child_count != 0 ? build(p, n.child[i], type) : leaf(type));
    }
    return g_.add(op, is_compare(op) ? DType::Bool : wanted, sources);
  }
  Op pick(uint64_t ops) {
    for (;;)
      if (const auto op = static_cast<Op>(random_.pick(64)); rules::is_in(ops, op)) return op;
  }
  // Now and then a power of two, for shifts.
  uint64_t constant(DType dtype) {
    if (random_.pick(2) || is_float(dtype)) return random_.bits(dtype);
    return bits_of(int64_t{1} << random_.pick(6), dtype);
  }
  Id access(Op op, DType dtype) {
    const Id memory = g_.add(Op::Param, dtype, {}, g_.list({0, 0, 1, 1}));
    if (op == Op::Store)
      return g_.add(op, DType::Void, {memory, g_.constant(DType::I32, int64_t{0}), leaf(dtype)});
    leaves_.push_back(g_.add(op, dtype, {memory, g_.constant(DType::I32, int64_t{0})}));
    return leaves_.back();
  }
  Id reduce(DType dtype) {
    const Op ops[] = {Op::Add, Op::Mul, Op::Max};
    const Id range = make_range(g_, 1, 0, AxisKind::Reduce);
    const Id values[] = {leaf(dtype), leaf(dtype), leaf(dtype)};
    return codegen::make_reduce(g_, random_.pick_of(ops), values, {&range, 1});
  }

  Graph& g_;
  testing::RandomValues& random_;
  std::map<uint8_t, Id> bound_;
  std::vector<Id> leaves_;
};

// Claims everything, except the requirement of the node and, at random, some more.
pgr_device_caps lacking(const Graph& g, Id id, testing::RandomValues& random) {
  pgr_device_caps caps = {};
  for (uint32_t& dtypes : caps.op_dtypes) dtypes = UINT32_MAX;
  const auto drop = [&](Op op, DType dtype) {
    caps.op_dtypes[static_cast<size_t>(op)] &= ~(uint32_t{1} << static_cast<size_t>(dtype));
  };
  const Node& n = g[id];
  if (n.op == Op::Load || n.op == Op::Store) {
    const DType dtype = n.op == Op::Load ? n.dtype : g[g.sources(id)[2]].dtype;
    drop(Op::Load, dtype);
    drop(Op::Store, dtype);
  } else if (n.op == Op::Reduce) {
    drop(codegen::reduce_parts(g, id).op, n.dtype);
    drop(Op::CmpLt, n.dtype);
  } else if (n.op == Op::Cast) {
    drop(Op::Cast, random.pick(2) ? n.dtype : g[n.src[0]].dtype);
    if (random.pick(4) == 0) drop(Op::Cast, n.dtype);
  } else if (static_cast<uint8_t>(n.op) < 64) {
    drop(n.op, codegen::operand_dtype(g, n));
  }
  if (n.op == Op::Exp && random.pick(2)) drop(Op::Exp2, n.dtype);
  if (random.pick(4) == 0) drop(Op::Shr, DType::U32);
  return caps;
}

// Finds bitcasts that are not between dtypes of one size, or that involve bool.
bool has_bad_bits(const Graph& g) {
  for (Id id = 0; id < g.size(); ++id) {
    if (g[id].op != Op::Bitcast) continue;
    const DType from = g[g[id].src[0]].dtype, to = g[id].dtype;
    if (size_of(from) != size_of(to) || from == DType::Bool || to == DType::Bool) return true;
  }
  return false;
}

double ulps(DType dtype, uint64_t a, uint64_t b) {
  const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b);
  if (!std::isfinite(x) || !std::isfinite(y)) return 1e9;
  int exponent;
  std::frexp(x, &exponent);
  const double ulp = dtype == DType::F64 ? std::ldexp(1.0, std::max(exponent - 53, -1074))
                                         : std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(x - y) / ulp;
}

bool agree(const Graph& g, Id root, uint64_t a, uint64_t b) {
  const Node& n = g[root];
  const DType dtype = n.dtype == DType::Void ? g[g.sources(n)[2]].dtype : n.dtype;
  if (testing::same_value(dtype, a, b)) return true;
  const bool has_max = n.op == Op::Max ||
                       (n.op == Op::Reduce && g.arg_list(root)[0] == static_cast<int64_t>(Op::Max));
  if (has_max && testing::both_zero(dtype, a, b)) return true;
  if (is_transcendental(n.op)) return ulps(dtype, a, b) <= 4;
  return false;
}

// A float beyond the integers of the cast has no specified value.
bool is_specified(const Graph& g, Id root, const std::map<Id, uint64_t>& values) {
  const Node& n = g[root];
  if (n.op != Op::Cast || !is_integer(n.dtype) || !is_float(g[n.src[0]].dtype)) return true;
  const auto at = values.find(n.src[0]);
  const double value = std::bit_cast<double>(at == values.end() ? g[n.src[0]].arg : at->second);
  const int bits = static_cast<int>(size_of(n.dtype)) * 8;
  const double low = is_unsigned(n.dtype) ? 0 : -std::ldexp(1.0, bits - 1);
  const double high = std::ldexp(1.0, is_unsigned(n.dtype) ? bits : bits - 1);
  return value >= low && value < high;
}

std::string compare(Graph& g, const Rule& rule, Id before, Id after, const std::vector<Id>& leaves,
                    testing::RandomValues& random) {
  for (int round = 0; round < 16; ++round) {
    std::map<Id, uint64_t> values;
    for (Id leaf : leaves) values[leaf] = random.bits(g[leaf].dtype);
    Values exact(g, values), made(g, values);
    const uint64_t a = exact.of(before), b = made.of(after);
    const bool stored =
        g[after].op == Op::Store && g[g.sources(after)[2]].dtype != g[g.sources(before)[2]].dtype;
    if (stored || !exact.defined || !made.defined || !is_specified(g, before, values)) continue;
    if (agree(g, before, a, b)) continue;
    std::string text;
    for (const auto& [leaf, bits] : values)
      text +=
          " %" + std::to_string(leaf) + "=" + std::to_string(static_cast<int64_t>(bits)) +
          (is_float(g[leaf].dtype) ? " (" + std::to_string(std::bit_cast<double>(bits)) + ")" : "");
    return std::string(rule.name) + ": " + std::to_string(static_cast<int64_t>(a)) + " became " +
           std::to_string(static_cast<int64_t>(b)) + " for" + text + "\n" + print(g, before) +
           "became\n" + print(g, after);
  }
  return "";
}

DType wanted_dtype(LoweredInstance& instance, const Rule& rule) {
  const PatternNode& root = rule.left.root();
  if (root.kind != PatternKind::OneOf && is_compare(root.op)) return DType::Bool;
  return instance.dtype(root.classes);
}

// Returns how often the row applied.
int exercise_lowering(const Rule& rule, unsigned seed, int rounds) {
  const RuleTable table(std::span(&rule, 1));
  testing::RandomValues random(seed);
  int hits = 0;
  for (int round = 0; round < rounds && hits < 60; ++round) {
    Graph g;
    LoweredInstance instance(g, random);
    const Id before = instance.build(rule.left, rule.left.count - 1, wanted_dtype(instance, rule));
    const Node& n = g[before];
    if (is_alu(n.op) && !takes(n.op, codegen::operand_dtype(g, n))) continue;
    if (n.op == Op::Cast && g[n.src[0]].dtype == n.dtype) continue;
    if (has_bad_bits(g)) continue;
    const pgr_device_caps caps = lacking(g, before, random);
    codegen::Lowering device(caps);
    if (n.op == Op::Cast) {  // of a maximum, which is exact
      const Id wide = g.unary(Op::Neg, g.unary(Op::Neg, g.cast(n.src[0], DType::F32)));
      if (codegen::is_small_float(g[n.src[0]].dtype)) device.record_exact(n.src[0], wide);
    }
    uint32_t number;
    const Id after = table.apply(g, before, &device, number);
    if (after == kNoMatch) continue;
    ++hits;
    const std::string wrong = compare(g, rule, before, after, instance.leaves(), random);
    EXPECT_EQ(wrong, "");
    if (!wrong.empty()) return hits;
  }
  return hits;
}

TEST(LoweringRules, KeepTheValue) {
  const RuleTable& table = codegen::lowering_table();
  std::string idle;
  for (uint32_t i = 0; i < table.size(); ++i)
    if (exercise_lowering(table[i], 300 + i, 4000) == 0) idle += std::string(" ") + table[i].name;
  EXPECT_EQ(idle, "") << "these rows never applied";
}

// Floor division of machine integers. The bounds say of index arithmetic which operands may be
// negative: here of constants and ranges.
TEST(IndexRules, KeepTheValue) {
  const auto rules = codegen::index_lowering_rules();
  testing::RandomValues random(7);
  for (const Rule& rule : rules) {
    const RuleTable table(std::span(&rule, 1));
    int hits = 0;
    for (int round = 0; round < 400; ++round) {
      Graph g;
      const bool negative = random.pick(2) != 0;
      const Id range = make_range(g, 40, 0, AxisKind::Loop);
      const Id a = negative ? g.binary(Op::Add, range, g.index(-20)) : range;
      const int64_t divisor = random.pick(2) ? int64_t{1} << random.pick(5) : random.pick(15) - 7;
      const Id before = g.binary(rule.left.root().op, a, g.index(divisor));
      codegen::IndexLowering lowering{Bounds(g)};
      uint32_t number;
      const Id after = table.apply(g, before, &lowering, number);
      if (after == kNoMatch) continue;
      ++hits;
      for (int64_t value = 0; value < 40; ++value) {
        const std::map<Id, uint64_t> values = {{range, static_cast<uint64_t>(value)}};
        Values exact(g, values), made(g, values);
        EXPECT_EQ(exact.of(before), made.of(after))
            << rule.name << " of " << value << " by " << divisor;
      }
    }
    EXPECT_GT(hits, 0) << rule.name;
  }
}

}  // namespace
}  // namespace plugrad
