#include "rewrite/rule_table.h"

#include <array>
#include <bit>

#include "base/check.h"
#include "ir/fold.h"
#include "rewrite/disabled.h"

namespace plugrad {
namespace {

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> table{};
  const auto put = [&](DTypeClass dtype_class, std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) table[static_cast<uint8_t>(d)] = dtype_class;
  };
  put(kBoolClass, {DType::Bool});
  put(kSmallIntClass, {DType::I8, DType::U8, DType::I16, DType::U16});
  put(kI32Class, {DType::I32});
  put(kU32Class, {DType::U32});
  put(kWideIntClass, {DType::I64, DType::U64});
  put(kIndexClass, {DType::Index});
  put(kSmallFloatClass, {DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2});
  put(kRealClass, {DType::F32, DType::F64, DType::WeakFloat});
  return table;
}
constexpr auto kClasses = make_classes();
uint8_t class_of(DType dtype) {
  return kClasses[static_cast<uint8_t>(dtype)];
}

uint64_t literal_bits(bool is_double, uint64_t literal, DType dtype) {
  return is_double ? bits_of(std::bit_cast<double>(literal), dtype)
                   : bits_of(static_cast<int64_t>(literal), dtype);
}

bool literal_matches(const Node& n, bool is_double, uint64_t literal) {
  if (n.op != Op::Const || (is_double && (class_of(n.dtype) & kFloatClass) == 0)) return false;
  // A number that the dtype lacks (f8e4m3 has no infinity) matches no constant.
  if (is_double && bits_of(std::bit_cast<double>(literal), n.dtype) != literal) return false;
  return n.arg == literal_bits(is_double, literal, n.dtype);
}

bool is_constant(const PatternNode& n) {
  return n.kind == PatternKind::Constant || n.kind == PatternKind::Literal ||
         (n.kind == PatternKind::Op && n.op == Op::Const);
}

// Checks guards on the dtype class of one name as soon as the name is bound.
void hoist_classes(const Pattern& guard, int at, uint8_t (&classes)[kNameCount]) {
  const PatternNode& n = guard.nodes[at];
  if (n.kind == PatternKind::Op && n.op == Op::And) {
    hoist_classes(guard, n.child[0], classes);
    hoist_classes(guard, n.child[1], classes);
  } else if (n.kind == PatternKind::ClassGuard) {
    const uint8_t name = guard.nodes[n.child[0]].name;
    classes[name] = static_cast<uint8_t>(classes[name] & n.classes);
  }
}

int64_t evaluate_op(Op op, int64_t a, int64_t b) {
  const auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Add:
      return wrap(ua + ub);
    case Op::Sub:
      return wrap(ua - ub);
    case Op::Mul:
      return wrap(ua * ub);
    case Op::FloorDiv:
      return floor_div(a, b);
    case Op::FloorMod:
      return floor_mod(a, b);
    case Op::And:
      return a != 0 && b != 0;
    case Op::Or:
      return a != 0 || b != 0;
    case Op::CmpLt:
      return a < b;
    case Op::CmpEq:
      return a == b;
    default:
      return a != b;
  }
}

// Value of a guard on bound constants; for -x, write 0 - x.
int64_t evaluate(const Graph& g, const Pattern& p, int at, const Match& m) {
  const PatternNode& n = p.nodes[at];
  switch (n.kind) {
    case PatternKind::Literal:
      return static_cast<int64_t>(n.literal);
    case PatternKind::Op:
      return evaluate_op(n.op, evaluate(g, p, n.child[0], m), evaluate(g, p, n.child[1], m));
    case PatternKind::ClassGuard:
      return class_of(g[m.bound[p.nodes[n.child[0]].name]].dtype) & n.classes;
    default:
      return const_int(g, m.bound[n.name]);
  }
}

/// Builds the nodes of a right side.
struct Builder {
  Graph& g;
  const Pattern& p;
  const Match& m;
  MakeNode make;

  Id node(int at, DType wanted) {
    const PatternNode& n = p.nodes[at];
    if (n.kind == PatternKind::Literal)
      return g.add(Op::Const, wanted, {}, literal_bits(n.float_literal, n.literal, wanted));
    return n.kind == PatternKind::Op ? op(n, wanted) : m.bound[n.name];
  }

  // A literal has the dtype of its first sibling that is no literal.
  Id op(const PatternNode& n, DType wanted) {
    Id sources[4] = {};
    DType sibling = wanted;
    for (int pass = 0; pass < 2; ++pass) {
      for (int i = 0; i < n.child_count; ++i) {
        const bool literal = p.nodes[n.child[i]].kind == PatternKind::Literal;
        if (literal != (pass == 1)) continue;
        const bool condition = n.op == Op::Where && i == 0;
        sources[i] = node(n.child[i], condition ? DType::Bool : sibling);
        if (!literal && !condition) sibling = g[sources[i]].dtype;
      }
    }
    const std::span<const Id> all(sources, n.child_count);
    return make(g, n.op, result_dtype(n, all, wanted), all);
  }

  DType result_dtype(const PatternNode& n, std::span<const Id> sources, DType wanted) const {
    if (is_compare(n.op)) return DType::Bool;
    if (n.typed) return static_cast<DType>(n.literal);
    if (n.op == Op::Cast || n.op == Op::Bitcast) return wanted;
    return g[sources[n.op == Op::Where ? 1 : 0]].dtype;
  }
};

Id make_folded(Graph& g, Op op, DType dtype, std::span<const Id> sources) {
  return add_folded(g, op, dtype, sources);
}

}  // namespace

void RuleTable::append(std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    const auto number = static_cast<uint32_t>(rules_.size());
    rules_.push_back(&rule);
    uint8_t classes[kNameCount];
    for (uint8_t& c : classes) c = kAnyClass;
    if (rule.guard.pattern.count != 0)
      hoist_classes(rule.guard.pattern, rule.guard.pattern.count - 1, classes);
    Pattern left = rule.left;
    for (int i = 0; i < left.count; ++i) {
      PatternNode& n = left.nodes[i];
      if (n.name != kNoName) n.classes = static_cast<uint8_t>(n.classes & classes[n.name]);
    }
    add_orders(left, 0, number);
  }
}

// The graph keeps constants right: only two operands that may both be variable have two orders.
void RuleTable::add_orders(Pattern left, int at, uint32_t rule) {
  for (; at < left.count; ++at) {
    PatternNode& n = left.nodes[at];
    if (n.kind != PatternKind::Op || n.child_count != 2 || !is_commutative(n.op)) continue;
    const bool left_const = is_constant(left.nodes[n.child[0]]),
               right_const = is_constant(left.nodes[n.child[1]]);
    if (left_const && !right_const) std::swap(n.child[0], n.child[1]);
    if (left_const || right_const || operands_ == Operands::AsWritten) continue;
    Pattern swapped = left;
    std::swap(swapped.nodes[at].child[0], swapped.nodes[at].child[1]);
    add_orders(swapped, at + 1, rule);
  }
  add_variant(left, rule);
}

void RuleTable::add_variant(const Pattern& left, uint32_t rule) {
  const auto first = static_cast<uint32_t>(checks_.size());
  bool bound[kNameCount] = {};
  struct Todo {
    uint8_t at, parent, child;
  };
  std::vector<Todo> todo{{static_cast<uint8_t>(left.count - 1), 0, 0}};
  while (!todo.empty()) {
    const Todo next = todo.back();
    todo.pop_back();
    const PatternNode& n = left.nodes[next.at];
    const auto number = static_cast<uint8_t>(checks_.size() - first);
    const bool repeated = n.name != kNoName && bound[n.name];
    if (n.name != kNoName) bound[n.name] = true;
    checks_.push_back({n.kind, n.op, n.name, n.classes, next.parent, next.child, n.child_count,
                       n.open, n.float_literal, repeated, n.literal});
    for (int k = n.child_count; k-- > 0;)
      todo.push_back({n.child[k], number, static_cast<uint8_t>(k)});
  }
  Variant variant{0, first, static_cast<uint32_t>(checks_.size()) - first, rule};
  const PatternNode& root = left.root();
  for (int k = 0; k < root.child_count; ++k) {
    const PatternNode& child = left.nodes[root.child[k]];
    if (is_constant(child))
      variant.need |= op_bit(Op::Const);
    else if (child.kind != PatternKind::Name && child.kind != PatternKind::OneOf)
      variant.need |= op_bit(child.op);
  }
  add_to_lists(variant, root);
}

// Symmetric patterns (x + y) need one variant only.
void RuleTable::add_to_lists(const Variant& variant, const PatternNode& root) {
  if (root.kind == PatternKind::OneOf) {
    for (uint8_t op = 0; op < 64; ++op)
      if (rules::is_in(root.literal, static_cast<Op>(op))) by_op_[op].push_back(variant);
    return;
  }
  if (is_listed(variant, root.op))
    checks_.resize(variant.first_check);
  else
    by_op_[static_cast<uint8_t>(root.op)].push_back(variant);
}

// Compares texts without renaming: only rules with the same swapped text are equal.
bool RuleTable::is_listed(const Variant& variant, Op op) const {
  for (const Variant& other : by_op_[static_cast<uint8_t>(op)]) {
    if (other.rule != variant.rule || other.check_count != variant.check_count) continue;
    bool same = true;
    for (uint32_t i = 0; same && i < variant.check_count; ++i) {
      const Check &a = checks_[variant.first_check + i], &b = checks_[other.first_check + i];
      same = a.kind == b.kind && a.op == b.op && a.name == b.name && a.literal == b.literal &&
             a.parent == b.parent && a.child == b.child && a.classes == b.classes;
    }
    if (same) return true;
  }
  return false;
}

bool RuleTable::match(const Graph& g, const Variant& variant, Match& m) const {
  Id ids[Pattern::kCapacity];
  ids[0] = m.root;
  const Check* checks = checks_.data() + variant.first_check;
  for (uint32_t i = 0; i < variant.check_count; ++i) {
    const Check& s = checks[i];
    if (i != 0) {
      const Node& parent = g[ids[s.parent]];
      ids[i] = parent.src_count <= 3 ? parent.src[s.child] : g.sources(parent)[s.child];
    }
    const Node& n = g[ids[i]];
    if (s.classes != kAnyClass && (class_of(n.dtype) & s.classes) == 0) return false;
    switch (s.kind) {
      case PatternKind::Op:
        if (n.op != s.op || (s.open ? n.src_count < s.src_count : n.src_count != s.src_count))
          return false;
        break;
      case PatternKind::OpAny:
        if (n.op != s.op) return false;
        break;
      case PatternKind::OneOf:
        if (!rules::is_in(s.literal, n.op) || (s.src_count != 0 && n.src_count != s.src_count))
          return false;
        break;
      case PatternKind::Constant:
        if (n.op != Op::Const) return false;
        break;
      case PatternKind::Literal:
        if (!literal_matches(n, s.float_literal, s.literal)) return false;
        break;
      default:
        break;
    }
    if (s.name == kNoName) continue;
    if (s.repeated && m.bound[s.name] != ids[i]) return false;
    m.bound[s.name] = ids[i];
  }
  return true;
}

bool holds(const Graph& g, const RuleGuard& guard, const Match& m) {
  if (guard.pattern.count != 0 && evaluate(g, guard.pattern, guard.pattern.count - 1, m) == 0)
    return false;
  return guard.predicate == nullptr || guard.predicate(g, m);
}

Id build(Graph& g, const Pattern& pattern, const Match& m) {
  return Builder{g, pattern, m, make_folded}.node(pattern.count - 1, g[m.root].dtype);
}

Id build_source(Graph& g, const Pattern& pattern, int source, const Match& m, DType wanted,
                MakeNode make) {
  return Builder{g, pattern, m, make}.node(pattern.root().child[source], wanted);
}

void RuleContext::report_type() {
  fail(ErrorKind::Internal, "[rewrite] a rule asked for a context of another type");
}

Id RuleTable::apply(Graph& g, Id id, RuleContext context, uint32_t& rule, Id before) const {
  const Node& n = g[id];
  Match m;
  m.root = id;
  m.before = before == kNoId ? id : before;
  m.user = context;
  for (const Variant& variant : by_op_[static_cast<uint8_t>(n.op)]) {
    if ((variant.need & ~n.src_ops) != 0 || !match(g, variant, m)) continue;
    const Rule& r = *rules_[variant.rule];
    m.rule = &r;
    if (!holds(g, r.guard, m) || is_disabled(r.name)) continue;
    const Id result = r.function ? r.function(g, m) : build(g, r.right, m);
    if (result == kNoMatch || result == id) continue;
    rule = variant.rule;
    return result;
  }
  return kNoMatch;
}

const Rule* RuleTable::find(const Graph& g, Id id, RuleContext context, Match& m) const {
  const Node& n = g[id];
  m.root = m.before = id;
  m.user = context;
  const Rule* switched_off = nullptr;
  for (const Variant& variant : by_op_[static_cast<uint8_t>(n.op)]) {
    if ((variant.need & ~n.src_ops) != 0 || !match(g, variant, m)) continue;
    m.rule = rules_[variant.rule];
    if (!holds(g, m.rule->guard, m)) continue;
    if (!is_disabled(m.rule->name)) return m.rule;
    if (!switched_off) switched_off = m.rule;
  }
  m.rule = switched_off;
  return nullptr;
}

}  // namespace plugrad
