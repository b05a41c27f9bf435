#include "sharding/propagation.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "fmt/ranges.h"
#include "ir/facts.h"

namespace plugrad::sharding {
namespace {

using Dims = std::vector<int64_t>;

Dims arg_of(const Subject& s) {
  const auto list = s.graph.arg_list(s.node);
  return {list.begin(), list.end()};
}

Spec without_partial(Spec spec) {
  spec.partial = 0;
  spec.reduction = Op::Add;
  return spec;
}

// ---- Elementwise ----

/// Adds to `spec` the cuts of `other` whose axes are free in it.
void take_cuts(Spec& spec, const Spec& other) {
  for (size_t d = 0; d < spec.dims.size(); ++d)
    if (spec.dims[d] == 0 && (other.dims[d] & (spec.cut() | spec.partial)) == 0)
      spec.dims[d] = other.dims[d];
}

/// The sources that have elements of their own, those that are dearest to move first: terms of
/// sums are moved anyway, constants never.
std::vector<size_t> by_cost_to_move(const Subject& s) {
  std::vector<size_t> order(s.sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return s.sources[i].shape.size() != s.shape.size(); });
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const auto rank = [&](size_t i) {
      const Operand& x = s.sources[i];
      return std::pair(x.is_constant ? 2 : x.spec.partial != 0 ? 1 : 0, ~x.bytes);
    };
    return rank(a) < rank(b);
  });
  return order;
}

Propagation elementwise_of(const Subject& s, Spec result) {
  Propagation p{{}, std::move(result)};
  for (const Operand& x : s.sources)
    p.sources.push_back(x.shape.size() == s.shape.size() ? without_partial(p.result)
                                                         : Spec::replicated(x.shape.size()));
  return p;
}

/// All sources are cut alike; terms of sums are added first.
Propagation elementwise(const Subject& s) {
  Spec result = Spec::replicated(s.shape.size());
  for (const size_t i : by_cost_to_move(s)) take_cuts(result, s.sources[i].spec);
  return elementwise_of(s, std::move(result));
}

/// A function of one source that each term may pass through on its own.
Propagation linear(const Subject& s) {
  return {{s.sources[0].spec}, s.sources[0].spec};
}

/// -(a + b) is (-a) + (-b), but for the sign of a sum that is 0: of floats a part of the fast set. Of
/// a maximum or a product it is not.
Propagation negate(const Subject& s) {
  const bool is_exact = s.fast_math || !is_float(s.graph[s.node].dtype);
  return is_exact && s.sources[0].spec.reduction == Op::Add ? linear(s) : elementwise(s);
}

/// a + b of terms of both: exact up to the order of the sum, so a part of the fast set.
Propagation add(const Subject& s) {
  const Spec& a = s.sources[0].spec;
  const Spec& b = s.sources[1].spec;
  const bool alike = a.partial != 0 && a == b && a.reduction == Op::Add;
  return s.fast_math && alike ? Propagation{{a, b}, a} : elementwise(s);
}

/// (a + b) * c is a*c + b*c up to rounding, so a part of the fast set.
Propagation multiply(const Subject& s) {
  for (size_t i = 0; s.fast_math && i < 2; ++i) {
    const Spec& term = s.sources[i].spec;
    const Spec& factor = s.sources[1 - i].spec;
    if (term.partial == 0 || term.reduction != Op::Add || factor.partial != 0) continue;
    if ((factor.cut() & term.partial) != 0 || term.dims.size() != s.shape.size()) continue;
    Spec result = term;
    if (factor.dims.size() == result.dims.size()) take_cuts(result, factor);
    Propagation p = elementwise_of(s, result);
    p.sources[i].partial = term.partial;
    return p;
  }
  return elementwise(s);
}

/// Terms in f32 of a value that becomes bf16 are rounded each, so that half of the bytes move: a part of
/// the fast set. Not so for f16, in which a term may overflow where the sum does not.
Propagation cast(const Subject& s) {
  const Id source = s.graph.sources(s.node)[0];
  const bool narrows = s.graph[source].dtype == DType::F32 && s.graph[s.node].dtype == DType::BF16;
  return s.fast_math && narrows ? linear(s) : elementwise(s);
}

// ---- Movement: each term of a sum moves alike ----

/// The source's spec without the cuts of dimensions for which moves(d) is true.
template <class Moves>
Spec uncut_where(const Subject& s, Moves moves) {
  Spec spec = s.sources[0].spec;
  for (size_t d = 0; d < spec.dims.size(); ++d)
    if (moves(d)) spec.dims[d] = 0;
  return spec;
}

/// Zeros around terms are terms of zeros: of sums, products and maxima.
Propagation pad(const Subject& s) {
  const Dims pads = arg_of(s);
  const Spec spec =
      uncut_where(s, [&](size_t d) { return pads[2 * d] != 0 || pads[2 * d + 1] != 0; });
  return {{spec}, spec};
}

Propagation shrink(const Subject& s) {
  const Dims box = arg_of(s);
  const Spec spec = uncut_where(
      s, [&](size_t d) { return box[2 * d] != 0 || box[2 * d + 1] != s.sources[0].shape[d]; });
  return {{spec}, spec};
}

Propagation flip(const Subject& s) {
  const Dims flags = arg_of(s);
  const Spec spec = uncut_where(s, [&](size_t d) { return flags[d] != 0; });
  return {{spec}, spec};
}

Propagation permute(const Subject& s) {
  const Dims order = arg_of(s);
  const Spec& from = s.sources[0].spec;
  Spec to = from;
  for (size_t d = 0; d < order.size(); ++d) to.dims[d] = from.dims[static_cast<size_t>(order[d])];
  return {{from}, to};
}

Propagation expand(const Subject& s) {
  const Spec spec = uncut_where(s, [&](size_t d) { return s.sources[0].shape[d] != s.shape[d]; });
  return {{spec}, spec};
}

/// Dimensions [from, from_end) of the source have the elements of [to, to_end) of the result.
struct Group {
  size_t from, from_end, to, to_end;
};

/// The first dimension of [begin, end) whose size is not 1; end if there is none.
size_t outermost(std::span<const int64_t> shape, size_t begin, size_t end) {
  while (begin < end && shape[begin] == 1) ++begin;
  return begin;
}

/// The outermost dimension of a group stays cut: alone if the group only adds or drops sizes of 1,
/// else if it and its counterpart have equal parts. Other cuts of the group would be strided.
void reshape_group(const Subject& s, const Group& g, Spec& from, Spec& to) {
  const auto& shape = s.sources[0].shape;
  const size_t a = outermost(shape, g.from, g.from_end), b = outermost(s.shape, g.to, g.to_end);
  for (size_t d = g.from; d < g.from_end; ++d) {
    const AxisSet along = from.dims[d];
    if (along == 0) continue;
    const bool fits = d == a && b < g.to_end &&
                      (shape[a] == s.shape[b] ||
                       (is_even(s.mesh, along, shape[a]) && is_even(s.mesh, along, s.shape[b])));
    if (fits)
      to.dims[b] = along;
    else
      from.dims[d] = 0;
  }
}

Propagation reshape(const Subject& s) {
  Spec from = s.sources[0].spec;
  Spec to{std::vector<AxisSet>(s.shape.size()), from.partial, from.reduction};
  if (std::ranges::count(s.shape, 0) != 0)
    std::ranges::fill(from.dims, AxisSet{0});
  else
    each_reshape_group(s.shape, s.sources[0].shape,
                       [&](size_t to_begin, size_t to_end, size_t begin, size_t end) {
                         reshape_group(s, {begin, end, to_begin, to_end}, from, to);
                       });
  return {{from}, to};
}

// ---- The others ----

/// A reduction of cut dimensions leaves terms; terms of an equal reduction stay.
Propagation reduce(const Subject& s) {
  const Dims list = arg_of(s);
  const auto op = static_cast<Op>(list[0]);
  Spec from = s.sources[0].spec;
  if (from.reduction != op) from = without_partial(from);
  Spec to = from;
  to.reduction = op;
  for (size_t i = 1; i < list.size(); ++i)
    to.partial |= std::exchange(to.dims[static_cast<size_t>(list[i])], AxisSet{0});
  if (to.partial == 0) to.reduction = Op::Add;
  return {{from}, to};
}

Propagation shard(const Subject& s) {
  const Dims arg = arg_of(s);
  const Spec spec = spec_of_arg(arg);
  return {{spec}, spec};
}

Propagation replicate(const Subject& s) {
  Propagation p{{}, Spec::replicated(s.shape.size())};
  for (const Operand& x : s.sources) p.sources.push_back(Spec::replicated(x.shape.size()));
  return p;
}

/// The value is source 0. The others serve gradients, or are the report on all indices, which ends
/// in a Where: every position has all of it.
Propagation function(const Subject& s) {
  Propagation p{{}, s.sources[0].spec};
  for (const Operand& x : s.sources) p.sources.push_back(x.spec);
  return p;
}

[[noreturn]] void fail_without_rule(const Subject& s) {
  std::string sources;
  for (const Operand& x : s.sources)
    sources += fmt::format("{}({}) {}", sources.empty() ? "" : ", ", fmt::join(x.shape, ", "),
                           to_string(s.mesh, x.spec));
  fail(ErrorKind::Unsupported,
       "[shard] {} has no rule for sharded sources: {} on the mesh {}. Reshard them to be "
       "replicated first: x.shard(mesh); or move them to one device: x.unshard()",
       op_info(s.graph[s.node].op).name, sources, to_string(s.mesh));
}

/// Runs on every device if every device has all of the sources.
Propagation replicated_only(const Subject& s) {
  for (const Operand& x : s.sources)
    if (!x.spec.is_replicated()) fail_without_rule(s);
  return replicate(s);
}

#define ELEMENTWISE(op) \
  Rule{Op::op, elementwise, "all sources are cut alike; terms are reduced first"}
constexpr std::array kRules = {
    ELEMENTWISE(Sub),
    ELEMENTWISE(IDiv),
    ELEMENTWISE(Mod),
    ELEMENTWISE(Max),
    ELEMENTWISE(Recip),
    ELEMENTWISE(FDiv),
    ELEMENTWISE(Sqrt),
    ELEMENTWISE(Fma),
    ELEMENTWISE(Trunc),
    ELEMENTWISE(And),
    ELEMENTWISE(Or),
    ELEMENTWISE(Xor),
    ELEMENTWISE(Shl),
    ELEMENTWISE(Shr),
    ELEMENTWISE(CmpLt),
    ELEMENTWISE(CmpEq),
    ELEMENTWISE(CmpNe),
    ELEMENTWISE(Where),
    ELEMENTWISE(Bitcast),
    ELEMENTWISE(Exp2),
    ELEMENTWISE(Log2),
    ELEMENTWISE(Sin),
    ELEMENTWISE(Exp),
    ELEMENTWISE(Log),
    ELEMENTWISE(Pow),
    ELEMENTWISE(Cos),
    ELEMENTWISE(Tan),
    ELEMENTWISE(FloorDiv),
    ELEMENTWISE(FloorMod),
    ELEMENTWISE(Threefry0),
    ELEMENTWISE(Threefry1),
    Rule{Op::Neg, negate, "as elementwise; of integers or with fast math, terms of a sum pass"},
    Rule{Op::Add, add, "as elementwise; with fast math, terms of two sums pass"},
    Rule{Op::Mul, multiply, "as elementwise; with fast math, terms of one factor pass"},
    Rule{Op::Cast, cast, "as elementwise; with fast math, terms of f32 pass to bf16"},
    Rule{Op::Reshape, reshape, "the outermost dimension of merged or split ones stays cut"},
    Rule{Op::Permute, permute, "cuts move with their dimensions"},
    Rule{Op::Expand, expand, "new elements are on every device"},
    Rule{Op::Pad, pad, "a padded dimension is not cut"},
    Rule{Op::Shrink, shrink, "a shrunk dimension is not cut"},
    Rule{Op::Flip, flip, "a flipped dimension is not cut"},
    Rule{Op::Reduce, reduce, "cut dimensions that are reduced leave terms"},
    Rule{Op::Contiguous, linear, "as the source"},
    Rule{Op::Detach, linear, "as the source"},
    Rule{Op::Function, function, "as source 0"},
    Rule{Op::Shard, shard, "as the argument says"},
    Rule{Op::Copy, replicate, "every device has all of it"},
    Rule{Op::UserKernel, replicated_only, "every device runs it; its sources are not cut"},
    Rule{Op::Bounded, replicated_only, "a variable size is that of a replicated value"},
};
#undef ELEMENTWISE

}  // namespace

std::span<const Rule> propagation_rules() {
  return kRules;
}

std::optional<Spec> source_spec(const Subject& s, const Spec& wanted) {
  const Op op = s.graph[s.node].op;
  Spec spec{{}, wanted.partial, wanted.reduction};
  if (op == Op::Expand) {
    spec.dims = wanted.dims;
    for (size_t d = 0; d < spec.dims.size(); ++d)
      if (s.sources[0].shape[d] != s.shape[d]) spec.dims[d] = 0;
    return spec;
  }
  if (op == Op::Permute) {
    const Dims order = arg_of(s);
    spec.dims.resize(order.size());
    for (size_t d = 0; d < order.size(); ++d)
      spec.dims[static_cast<size_t>(order[d])] = wanted.dims[d];
    return spec;
  }
  if (op != Op::Reshape) return std::nullopt;
  const Operand result{wanted, {s.shape.begin(), s.shape.end()}};
  const Subject back{s.graph, s.node, s.sources[0].shape, std::span(&result, 1), s.mesh, false};
  const Propagation p = reshape(back);
  return p.sources[0] == wanted ? std::optional(p.result) : std::nullopt;
}

Propagation propagate(const Subject& subject) {
  const auto rule = std::ranges::find(kRules, subject.graph[subject.node].op, &Rule::op);
  if (rule == kRules.end()) fail_without_rule(subject);
  return rule->propagate(subject);
}

}  // namespace plugrad::sharding
