// Runs rules that are made at run time on plugrad's rewrite engine: each becomes a table row whose
// right side calls the user's.
#include <algorithm>
#include <bit>
#include <deque>
#include <span>
#include <unordered_map>

#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "plugrad/uop.h"
#include "rewrite/rewrite.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/uop/session_nodes.h"

namespace plugrad::ir {

struct Pattern::Tree {
  PatternKind kind;
  std::string name = {};
  Op op = Op::Nop;
  bool is_float = false;
  uint64_t literal = 0;
  std::vector<Pattern> sources = {};
};

Pattern Pattern::any(std::string name) {
  return Pattern(std::make_shared<const Tree>(Tree{PatternKind::Name, std::move(name)}));
}
Pattern Pattern::constant(std::string name) {
  return Pattern(std::make_shared<const Tree>(Tree{PatternKind::Constant, std::move(name)}));
}
Pattern Pattern::literal(double value) {
  return Pattern(std::make_shared<const Tree>(
      Tree{PatternKind::Literal, {}, Op::Nop, true, std::bit_cast<uint64_t>(value)}));
}
Pattern Pattern::literal(int64_t value) {
  return Pattern(std::make_shared<const Tree>(
      Tree{PatternKind::Literal, {}, Op::Nop, false, static_cast<uint64_t>(value)}));
}
Pattern Pattern::op(std::string_view name, std::vector<Pattern> sources, std::string bound) {
  const auto op = op_from_name(name);
  require(op.has_value(), "[Pattern] there is no op \"{}\"", name);
  require(sources.size() <= 4, "[Pattern] {} over {} sources; a pattern names 4 at most", name,
          sources.size());
  return Pattern(std::make_shared<const Tree>(
      Tree{PatternKind::Op, std::move(bound), *op, false, 0, std::move(sources)}));
}

// clang-format off
Pattern operator+(const Pattern& a, const Pattern& b) { return Pattern::op("add", {a, b}); }
Pattern operator-(const Pattern& a, const Pattern& b) { return Pattern::op("sub", {a, b}); }
Pattern operator*(const Pattern& a, const Pattern& b) { return Pattern::op("mul", {a, b}); }
Pattern operator/(const Pattern& a, const Pattern& b) { return Pattern::op("floordiv", {a, b}); }
Pattern operator%(const Pattern& a, const Pattern& b) { return Pattern::op("floormod", {a, b}); }
Pattern operator<(const Pattern& a, const Pattern& b) { return Pattern::op("cmplt", {a, b}); }
Pattern operator-(const Pattern& a) { return Pattern::op("neg", {a}); }
// clang-format on

namespace {

using Names = std::vector<std::string>;

uint8_t number_of(const std::string& name, Names& names, const std::string& rule, bool may_add) {
  if (name.empty()) return kNoName;
  const auto at = std::ranges::find(names, name);
  if (at != names.end()) return static_cast<uint8_t>(at - names.begin());
  require(may_add, "[rule {}] its right side uses \"{}\", which its left side does not bind", rule,
          name);
  require(names.size() < kNameCount, "[rule {}] more than {} names", rule, kNameCount);
  names.push_back(name);
  return static_cast<uint8_t>(names.size() - 1);
}

/// Appends the tree, children first; returns the index of its root.
uint8_t append(const Pattern::Tree& tree, plugrad::Pattern& out, Names& names,
               const std::string& rule, bool left) {
  PatternNode node{.kind = tree.kind,
                   .op = tree.op,
                   .child_count = static_cast<uint8_t>(tree.sources.size()),
                   .float_literal = tree.is_float,
                   .literal = tree.literal};
  for (size_t i = 0; i < tree.sources.size(); ++i)
    node.child[i] = append(tree.sources[i].tree(), out, names, rule, left);
  require(out.count < plugrad::Pattern::kCapacity, "[rule {}] a pattern of more than {} nodes",
          rule, plugrad::Pattern::kCapacity);
  node.name = number_of(tree.name, names, rule, left);
  out.push(node);
  return static_cast<uint8_t>(out.count - 1);
}

}  // namespace

struct PatternMatcher::State {
  struct Entry {
    Rule given;
    plugrad::Rule rule;
    plugrad::Pattern right;  // empty if `given` has a function
    Names names;
  };
  std::deque<Entry> entries;  // a deque, because the table keeps pointers to the entries
  std::unordered_map<const plugrad::Rule*, const Entry*> by_rule;
  RuleTable table{std::span<const plugrad::Rule>{}};

  explicit State(std::span<const Rule> rules) {
    for (const Rule& rule : rules) add(rule);
  }

  void add(const Rule& given) {
    Entry& entry = entries.emplace_back(Entry{given, {}, {}, {}});
    const std::string& name = entry.given.name;
    append(given.left.tree(), entry.rule.left, entry.names, name, true);
    require(entry.rule.left.root().kind == PatternKind::Op,
            "[rule {}] its left side is no op; begin with one", name);
    entry.rule.function = call;
    if (!given.right.empty()) {
      append(given.right[0].tree(), entry.right, entry.names, name, false);
      for (int i = 0; i < entry.right.count; ++i)
        require(entry.right.nodes[i].kind != PatternKind::Op || is_alu(entry.right.nodes[i].op),
                "[rule {}] {} on a right side: a pattern builds arithmetic, use a function", name,
                printed_name(entry.right.nodes[i].op));
    }
    entry.rule.name = name.c_str();
    by_rule[&entry.rule] = &entry;
    table.append(std::span(&entry.rule, 1));
  }

  /// The right side of every rule; its result has the dtype and shape of the matched node.
  static Id call(Graph& g, const plugrad::Match& m) {
    const Entry& entry = *m.context<const State>().by_rule.at(m.rule);
    const Id id = entry.right.count != 0 ? build(g, entry.right, m) : called(entry, m);
    if (id == kNoMatch) return id;
    tensor::Recorder r("rewrite");
    require(g[id].dtype == g[m.root].dtype, "[rule {}] made {} of {}: a rule keeps the dtype",
            entry.given.name, print_node(g, id), print_node(g, m.root));
    const Shape made = r.shape(id), wanted = r.shape(m.root);
    require(made.empty() || made == wanted, "[rule {}] made {} of {}: a rule keeps the shape",
            entry.given.name, tensor::lazy_text(made), tensor::lazy_text(wanted));
    return r.broadcast_to(id, wanted);
  }

  static Id called(const Entry& entry, const plugrad::Match& m) {
    engine::Session& session = engine::Session::current();
    Match match;
    match.root_ = tensor::uop_of(session.make(m.root));
    for (size_t i = 0; i < entry.names.size(); ++i)
      match.bound_.emplace_back(entry.names[i], tensor::uop_of(session.make(m.bound[i])));
    const UOp result = entry.given.function(match);
    return result.defined() ? tensor::state_of(result)->node : kNoMatch;
  }
};

const UOp& Match::operator[](std::string_view name) const {
  for (const auto& [bound, node] : bound_)
    if (bound == name) return node;
  fail(ErrorKind::User, "[Match] the pattern has no name \"{}\"", name);
}

PatternMatcher::PatternMatcher(std::initializer_list<Rule> rules)
    : state_(std::make_shared<const State>(std::span(rules.begin(), rules.size()))) {}

PatternMatcher::PatternMatcher(std::vector<Rule> rules)
    : state_(std::make_shared<const State>(rules)) {}

UOp PatternMatcher::apply(const UOp& node) const {
  tensor::Recorder r("apply");
  require(node.defined(), "[apply] the UOp is undefined; assign it a node first");
  uint32_t rule = 0;
  const Id to = state_->table.apply(r.graph(), tensor::state_of(node)->node, state_.get(), rule);
  return to == kNoMatch ? UOp() : tensor::uop_of(r.session().make(to));
}

UOp PatternMatcher::rewrite(const UOp& node) const {
  tensor::Recorder r("rewrite");
  require(node.defined(), "[rewrite] the UOp is undefined; assign it a node first");
  return as_user_error([&] {  // rules that do not terminate
    const Id to = plugrad::rewrite(r.graph(), tensor::state_of(node)->node, state_->table,
                                   {.fixpoint = true, .context = state_.get()});
    return tensor::uop_of(r.session().make(to));
  });
}

}  // namespace plugrad::ir
