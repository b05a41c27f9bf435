#include "engine/plan/canonical.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "engine/execute/loop_body.h"
#include "engine/plan/index_report.h"
#include "ir/kernel_ast.h"
#include "ir/user.h"

namespace plugrad::engine {

void CanonicalGraph::begin(const Graph& graph) {
  graph_ = &graph;
  if (walk_of_.size() < graph.size()) {
    number_of_.resize(graph.size() + graph.size() / 2);
    walk_of_.resize(number_of_.size());  // last: its size says that both have it
  }
  ++walk_;
  visited_.clear();
  reached_.clear();
  sources_.clear();
  own_words_.clear();
  reached_values_.clear();
  order_.clear();
  is_input_.clear();
  range_checks_.clear();
  has_range_checks_ = false;
  words_.clear();
  end_of_own_.clear();
  roots_.clear();
  inputs_.clear();
  devices_used_.clear();
  stack_.clear();  // left over from a walk that threw
}

void CanonicalGraph::note_device(uint32_t device) {
  if (std::ranges::find(devices_used_, device) == devices_used_.end())
    devices_used_.push_back(device);
}

void CanonicalGraph::walk(const Graph& graph, Shapes& shapes, Devices& devices, uint32_t device,
                          const ValueTable& values, std::span<const Id> roots) {
  begin(graph);
  shapes_ = &shapes;
  devices_ = &devices;
  device_ = device;
  for (Id root : roots) reach_from(root, values);
  number_all(roots);
  number_collectives();
  for (Id root : roots) roots_.push_back(number_of_[root]);
  words_.push_back(roots_.size());
  for (uint32_t number : roots_) words_.push_back(number);
}

bool CanonicalGraph::is_input(Id id, const ValueTable& values) {
  const Value* value = values.find(id);
  return value && ((*devices_)[id] != 0 || value->device == device_);
}

void CanonicalGraph::reach_from(Id root, const ValueTable& values) {
  if (is_visited(root)) return;
  stack_.emplace_back(root, 0);
  while (!stack_.empty()) {
    auto& [id, next] = stack_.back();
    if (next == 0 && is_input(id, values)) {
      finish_input(id, values.share(id));
      stack_.pop_back();
      continue;
    }
    auto sources = graph_->sources(id);
    if ((*graph_)[id].op == Op::Function) sources = sources.first(1);
    while (next < sources.size() && is_visited(sources[next])) ++next;
    if (next < sources.size()) {
      const Id source = sources[next++];
      stack_.emplace_back(source, 0);  // `id` and `next` are dangling from here on
    } else {
      finish(id);
      stack_.pop_back();
    }
  }
}

void CanonicalGraph::put_list(std::span<const int64_t> list) {
  own_words_.push_back(list.size());
  own_words_.insert(own_words_.end(), list.begin(), list.end());
}

void CanonicalGraph::add_reached(Id id, bool is_input, uint32_t first_word) {
  const auto sources = is_input ? std::span<const Id>() : graph_->sources(id);
  const Op op = (*graph_)[id].op;
  reached_.push_back({id, is_input, !is_input && sources.size() == 2 && is_commutative(op),
                      !is_input && op == Op::Const, static_cast<uint32_t>(sources_.size()),
                      static_cast<uint32_t>(sources.size()), first_word,
                      static_cast<uint32_t>(own_words_.size()) - first_word, 0});
  for (Id source : sources) sources_.push_back(number_of_[source]);
  number_of_[id] = static_cast<uint32_t>(reached_.size()) - 1;
}

void CanonicalGraph::finish(Id id) {
  const Node& node = (*graph_)[id];
  require(
      node.op != Op::Buffer || buffer_number(*graph_, id) < kPlaceholder,
      "[realize] a value is asked for that the step of a scan, or a function that becomes an ONNX "
      "file, gets only when it runs: return what is computed from it");
  ensure(node.op != Op::Buffer, "buffer node {} has no value", id);
  walk_of_[id] = walk_;
  visited_.push_back(id);
  if (node.op == Op::Function) {  // stands for its value; its other sources serve gradients only
    number_of_[id] = number_of_[graph_->sources(id)[0]];
    has_range_checks_ |= is_range_check(node);
    return;
  }
  const auto first_word = static_cast<uint32_t>(own_words_.size());
  own_words_.push_back(static_cast<uint64_t>(node.op) | static_cast<uint64_t>(node.dtype) << 8 |
                       static_cast<uint64_t>(node.src_count) << 16);
  if (has_range_checks_) note_range_checks(id);
  switch (op_info(node.op).arg) {
    case ArgKind::None:
      break;
    case ArgKind::Int:
    case ArgKind::Bits:
      own_words_.push_back(node.op == Op::Contiguous ? node.arg != 0 : node.arg);
      break;
    case ArgKind::List:
      put_list(graph_->list(static_cast<ListId>(node.arg)));
      if (node.op == Op::Collective) {
        const size_t place = own_words_.size() - graph_->arg_list(id).size() + place_at(id);
        own_words_[place] = own_words_[place + 1] = 0;
      }
      break;
  }
  if (node.op == Op::Copy) note_device(static_cast<uint32_t>(node.arg));
  if (node.op == Op::Collective) note_device((*devices_)[id]);
  add_reached(id, false, first_word);
}

// Adds the ranges to the node's own words, sorted: their order must not depend on the sources'.
void CanonicalGraph::note_range_checks(Id id) {
  const size_t first = own_words_.size();
  for (Id source : graph_->sources(id))
    for (; (*graph_)[source].op == Op::Function; source = graph_->sources(source)[0])
      if (is_range_check((*graph_)[source])) {
        own_words_.push_back((*graph_)[source].arg);
        range_checks_.emplace_back(static_cast<uint32_t>(reached_.size()), source);
      }
  std::sort(own_words_.begin() + static_cast<std::ptrdiff_t>(first), own_words_.end());
}

// Two nodes with the same value and shape are one input, e.g. a tensor and the expression that it
// was before it was cut from its inputs.
void CanonicalGraph::finish_input(Id id, const ValuePtr& value) {
  walk_of_[id] = walk_;
  visited_.push_back(id);
  note_device(value->device);
  const ListId shape = shapes_->id(id);
  if (value->walk == walk_ && value->walk_shape == shape) {
    number_of_[id] = value->walk_number;
    return;
  }
  const auto first_word = static_cast<uint32_t>(own_words_.size());
  own_words_.push_back(static_cast<uint64_t>(Op::Buffer) |
                       static_cast<uint64_t>(value->dtype) << 8 |
                       static_cast<uint64_t>(value->device) << 32);
  put_list(graph_->list(shape));
  add_reached(id, true, first_word);
  reached_.back().input = static_cast<uint32_t>(reached_values_.size());
  reached_values_.push_back(value);
  value->walk = walk_;
  value->walk_shape = shape;
  value->walk_number = number_of_[id];
}

// Numbers the nodes by a second walk, which visits sources of commutative ops in structural order.
// Where the list of a Collective has its place and, next, its order: after the shape and the device.
size_t CanonicalGraph::place_at(Id id) const {
  return static_cast<size_t>(graph_->arg_list(id)[0]) + 2;
}

// Collectives between processes run in the order of their numbers; equal programs have equal orders.
void CanonicalGraph::number_collectives() {
  collectives_.clear();
  for (uint32_t number = 0; number < order_.size(); ++number)
    if ((*graph_)[order_[number]].op == Op::Collective && !is_input_[number])
      collectives_.push_back(number);
  std::ranges::sort(collectives_, {}, [&](uint32_t number) {
    const auto list = graph_->arg_list(order_[number]);
    const size_t place = place_at(order_[number]);
    return std::pair(list[place], list[place + 1]);
  });
  words_.insert(words_.end(), collectives_.begin(), collectives_.end());
}

namespace {

// How many of a node's last words a plan may take at launch, or sizes of axes.
size_t varying_words(const Graph& graph, const Node& n) {
  if (n.op == Op::Const) return is_ordinary(n.arg, n.dtype) ? 1 : 0;
  return has_sizes(n.op) ? (n.op == Op::Iota ? 1 : graph.list(static_cast<ListId>(n.arg)).size())
                         : 0;
}

}  // namespace

void CanonicalGraph::number_all(std::span<const Id> roots) {
  structure_.begin(reached_.size());
  for (const Reached& r : reached_)
    structure_.add(std::span(own_words_).subspan(r.first_word, r.word_count),
                   r.is_input ? (*shapes_)[r.id].size() : varying_words(*graph_, (*graph_)[r.id]),
                   std::span(sources_).subspan(r.first_source, r.source_count), r.is_commutative);
  for (Id root : roots) structure_.add_root(number_of_[root]);
  canonical_of_.assign(reached_.size(), kNoId);
  order_.reserve(reached_.size());
  is_input_.resize(reached_.size());
  end_of_own_.resize(reached_.size());
  words_.resize(own_words_.size() + sources_.size());
  next_word_ = words_.data();
  for (Id root : roots) number_from(number_of_[root]);
  for (Id id : visited_) number_of_[id] = canonical_of_[number_of_[id]];
  for (auto& [node, check] : range_checks_) node = canonical_of_[node];
  std::ranges::stable_sort(range_checks_, {}, &std::pair<uint32_t, Id>::first);
}

void CanonicalGraph::number_from(uint32_t root) {
  const auto is_numbered = [&](uint32_t position) { return canonical_of_[position] != kNoId; };
  if (is_numbered(root)) return;
  stack_.emplace_back(root, 0);
  while (!stack_.empty()) {
    auto& [position, next] = stack_.back();
    const Reached& r = reached_[position];
    uint32_t* const sources = sources_.data() + r.first_source;
    if (next == 0 && r.is_commutative && !is_numbered(sources[0]) && !is_numbered(sources[1]) &&
        comes_first(sources[1], sources[0]))
      std::swap(sources[0], sources[1]);
    while (next < r.source_count && is_numbered(sources[next])) ++next;
    if (next < r.source_count) {
      const uint32_t entered = sources[next++];
      stack_.emplace_back(entered, 0);  // `position` and `next` are dangling from here on
    } else {
      number(position);
      stack_.pop_back();
    }
  }
}

// Constants come last, as in Graph::add.
bool CanonicalGraph::comes_first(uint32_t a, uint32_t b) {
  if (reached_[a].is_const != reached_[b].is_const) return reached_[b].is_const;
  return structure_.comes_first(a, b);
}

void CanonicalGraph::number(uint32_t position) {
  const Reached& r = reached_[position];
  const size_t number = order_.size();
  canonical_of_[position] = static_cast<uint32_t>(number);
  order_.push_back(r.id);
  is_input_[number] = r.is_input;
  if (r.is_input) inputs_.push_back(std::move(reached_values_[r.input]));
  next_word_ = std::copy_n(own_words_.data() + r.first_word, r.word_count, next_word_);
  end_of_own_[number] = static_cast<size_t>(next_word_ - words_.data());
  uint64_t* const first = next_word_;
  for (uint32_t i = 0; i < r.source_count; ++i)
    *next_word_++ = canonical_of_[sources_[r.first_source + i]];
  if (r.is_commutative && first[0] > first[1]) std::swap(first[0], first[1]);
}

std::vector<Id> CanonicalGraph::computed_sizes() const {
  std::vector<Id> sizes;
  for (const auto& [node, check] : range_checks_)
    if (const Id report = graph_->sources(check)[1];
        std::ranges::find(sizes, report) == sizes.end())
      sizes.push_back(report);
  for (size_t number = 0; number < order_.size(); ++number) {
    if (is_input_[number] || (*graph_)[order_[number]].op != Op::Bounded) continue;
    const Id size = graph_->sources(order_[number])[1];
    const bool is_known = is_input_[number_of_[size]] || is_const(*graph_, size);
    if (!is_known && std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<SizeUse> CanonicalGraph::sizes(const IndexRangeTable& ranges) const {
  std::vector<SizeUse> uses;
  const std::vector<uint32_t> root_of = root_numbers(), input_of = input_numbers();
  for (const auto& [node, check] : range_checks_) {
    const uint32_t root = root_of[number_of_[graph_->sources(check)[1]]];
    if (root != kNone)
      uses.push_back({.is_root = true,
                      .number = root,
                      .least = kNoneOutside,
                      .most = kNoneOutside,
                      .node = node,
                      .range = ranges[function_call((*graph_)[check].arg)]});
  }
  for (size_t number = 0; number < order_.size(); ++number) {
    const Id id = order_[number];
    if (is_input_[number] || (*graph_)[id].op != Op::Bounded) continue;
    const uint32_t size = number_of_[graph_->sources(id)[1]];
    const auto bounds = graph_->arg_list(id);
    SizeUse use{.least = bounds[1],
                .most = (*shapes_)[id][static_cast<size_t>(bounds[0])],
                .node = static_cast<uint32_t>(number)};
    use.is_root = !is_input_[size];
    use.number = use.is_root ? root_of[size] : input_of[size];
    if (use.number != kNone) uses.push_back(use);  // else a constant
  }
  return uses;
}

// Index of the first root, by canonical number.
std::vector<uint32_t> CanonicalGraph::root_numbers() const {
  std::vector<uint32_t> numbers(order_.size(), kNone);
  for (size_t root = roots_.size(); root-- > 0;)
    numbers[roots_[root]] = static_cast<uint32_t>(root);
  return numbers;
}

// Index of the input, by canonical number.
std::vector<uint32_t> CanonicalGraph::input_numbers() const {
  std::vector<uint32_t> numbers(order_.size(), kNone);
  uint32_t next = 0;
  for (size_t number = 0; number < order_.size(); ++number)
    if (is_input_[number]) numbers[number] = next++;
  return numbers;
}

std::vector<Origins> CanonicalGraph::origins(std::span<const SizeUse> sizes) const {
  std::vector<Origins> origins(roots_.size());
  for (size_t first = 0; first < roots_.size(); first += kRootsAtOnce)
    add_origins(std::span(origins).subspan(first, std::min(kRootsAtOnce, roots_.size() - first)),
                std::span(roots_).subspan(first), sizes);
  return origins;
}

// Propagates one word of bits per node: bit i is set if root i depends on the node.
void CanonicalGraph::add_origins(std::span<Origins> origins, std::span<const uint32_t> roots,
                                 std::span<const SizeUse> sizes) const {
  std::vector<uint64_t> reached_from(order_.size());
  for (size_t i = 0; i < origins.size(); ++i) reached_from[roots[i]] |= uint64_t{1} << i;
  for (size_t number = order_.size(); number-- > 0;)
    if (reached_from[number] != 0 && !is_input_[number])
      for (Id source : graph_->sources(order_[number]))
        reached_from[number_of_[source]] |= reached_from[number];
  const auto note = [&](size_t number, std::vector<uint32_t> Origins::* list, uint32_t origin) {
    for (uint64_t from = reached_from[number]; from != 0; from &= from - 1)
      (origins[static_cast<size_t>(std::countr_zero(from))].*list).push_back(origin);
  };
  uint32_t next_input = 0;
  for (size_t number = 0; number < order_.size(); ++number)
    if (is_input_[number]) note(number, &Origins::inputs, next_input++);
  for (uint32_t i = 0; i < sizes.size(); ++i) note(sizes[i].node, &Origins::sizes, i);
}

// The identity of a Contiguous becomes its canonical number, so that equal graphs have equal
// copies.
uint64_t CanonicalGraph::new_arg(Graph& scratch, size_t number) const {
  const Node& node = (*graph_)[order_[number]];
  if (node.op == Op::Contiguous) return node.arg != 0 ? number + 1 : 0;
  if (op_info(node.op).arg != ArgKind::List) return node.arg;
  if (node.op != Op::Collective) return scratch.list(graph_->list(static_cast<ListId>(node.arg)));
  const auto list = graph_->list(static_cast<ListId>(node.arg));
  std::vector<int64_t> arg(list.begin(), list.end());
  const size_t place = place_at(order_[number]);
  arg[place] = 0;
  arg[place + 1] = std::ranges::find(collectives_, number) - collectives_.begin();
  return scratch.list(arg);
}

CanonicalGraph::Scratch CanonicalGraph::copy(std::span<const NumberSite> sites,
                                             std::span<const uint8_t> given) const {
  Scratch scratch;
  std::vector<Id> new_id(order_.size(), kNoId);
  std::vector<uint32_t> site_of(order_.size(), kNone);  // the first that is given
  for (auto i = static_cast<uint32_t>(sites.size()); i-- > 0;)
    if (given[i] != 0) site_of[sites[i].node] = i;
  std::vector<Id> sources;
  for (size_t number = 0; number < order_.size(); ++number) {
    const Id id = order_[number];
    const Node& node = (*graph_)[id];
    if (is_input_[number]) {
      const Value& value = *inputs_[scratch.inputs.size()];
      std::vector<int64_t> list = {static_cast<int64_t>(scratch.inputs.size()), value.device};
      const auto shape = (*shapes_)[id];
      list.insert(list.end(), shape.begin(), shape.end());
      new_id[number] = scratch.graph.add(Op::Buffer, node.dtype, {}, scratch.graph.list(list));
      scratch.inputs.push_back(new_id[number]);
      continue;
    }
    sources.clear();
    for (Id source : graph_->sources(node)) sources.push_back(new_id[number_of_[source]]);
    if (const uint32_t site = site_of[number]; site != kNone) {
      new_id[number] = node.op == Op::Const
                           ? make_scalar(scratch.graph, site, node.dtype)
                           : with_windows(scratch.graph, sources[0], number, sites.subspan(site),
                                          given.subspan(site), site);
      continue;
    }
    new_id[number] =
        scratch.graph.add(node.op, node.dtype, sources, new_arg(scratch.graph, number));
  }
  for (uint32_t root : roots_) scratch.roots.push_back(new_id[root]);
  scratch.walked.assign(scratch.graph.size(), kNoId);
  for (size_t number = 0; number < order_.size(); ++number)
    scratch.walked[new_id[number]] = order_[number];
  return scratch;
}

}  // namespace plugrad::engine
