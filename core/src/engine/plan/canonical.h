// Turns the nodes reachable from some roots into a numbering that does not depend on ids: the key
// of the plan cache and, on a miss, the scratch graph to plan.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "engine/plan/canonical_order.h"
#include "engine/plan/index_ranges.h"
#include "engine/plan/size_checks.h"
#include "engine/value.h"
#include "ir/facts.h"

namespace plugrad::engine {

/// A number of a graph that a plan may take at launch instead: a constant, or where an axis of a Shrink
/// begins.
struct NumberSite {
  static constexpr uint32_t kConstant = UINT32_MAX;
  uint32_t node;  // its canonical number
  DType dtype;
  uint64_t bits;                 // as a Const node has them
  size_t word;                   // of the key's words
  uint32_t axis = kConstant;     // of the Shrink
  int64_t length = 0, most = 0;  // of what is cut out; the last begin
};

/// Whether rules treat the number like any other one.
bool is_ordinary(uint64_t bits, DType dtype);

/// Whether the op's argument is sizes of axes, or begins and ends of slices and padding.
inline bool has_sizes(Op op) {
  return op == Op::Iota || op == Op::Reshape || op == Op::Expand || op == Op::Shrink ||
         op == Op::Pad;
}

/// A graph of its own, to plan.
struct CanonicalScratch {
  Graph graph;
  std::vector<Id> roots;
  std::vector<Id> inputs;  // Buffer nodes 0, 1, … in canonical order
  std::vector<Id> walked;  // by id: the walked node that it copies
};

/// Walks depth first from the roots, sources first. Nodes that have values are the inputs, numbered
/// by first visit. Sources of a commutative op are visited in structural order
/// (canonical_order.cpp), which depends neither on ids nor on how inputs were computed. The object
/// is reused between walks, so a walk costs time only for the nodes that it reaches.
class CanonicalGraph {
 public:
  /// Errors: Internal for a Buffer without a value. A value of constants alone is an input only if
  /// it is on `device`; otherwise its node is computed again, as constants may be used on any
  /// device.
  void walk(const Graph& graph, Shapes& shapes, Devices& devices, uint32_t device,
            const ValueTable& values, std::span<const Id> roots);

  /// Hash of structure, shapes, dtypes, devices and roots: equal graphs have equal keys.
  Hash128 key() const { return hash128(std::as_bytes(std::span(words_))); }

  /// The numbers whose value changes nothing but a number in kernels, in canonical order. Graphs
  /// that differ in these alone have equal sites and equal keys without them. 0, 1, -1, infinities
  /// and NaN are part of the structure, because rules match them (number_sites.cpp).
  std::vector<NumberSite> number_sites() const;
  Hash128 key_without(std::span<const NumberSite> sites) const;

  /// How many of the node's last words are sizes of axes, or say where slices begin and end and how
  /// much is padded.
  size_t size_count(uint32_t number) const;
  /// These words of all nodes, in canonical order, and the constants that a plan may take at launch
  /// if bits need not be equal: special ones too.
  std::vector<int64_t> sizes_of_axes() const;
  std::vector<NumberSite> constant_sites() const;
  Hash128 key_without_sizes(std::span<const NumberSite> constants) const;

  /// Devices of inputs and targets of copies.
  std::span<const uint32_t> devices_used() const { return devices_used_; }

  /// Computed axis sizes and index reports that the walk reached: they must become roots, so that
  /// they can be checked.
  std::vector<Id> computed_sizes() const;
  /// The sizes and reports that are inputs or roots.
  std::vector<SizeUse> sizes(const IndexRangeTable& ranges) const;
  /// The inputs and sizes from which each root is computed.
  std::vector<Origins> origins(std::span<const SizeUse> sizes) const;

  // The walked nodes by canonical number: sources first.
  size_t size() const { return order_.size(); }
  Id id(uint32_t number) const { return order_[number]; }
  bool is_input(uint32_t number) const { return is_input_[number]; }
  uint32_t number(Id walked) const { return number_of_[walked]; }
  std::span<const uint32_t> roots() const { return roots_; }
  /// Whether the node was walked and is no input.
  bool computes(Id id) const {
    return id < walk_of_.size() && is_visited(id) && !is_input_[number_of_[id]];
  }

  std::span<const ValuePtr> inputs() const { return inputs_; }
  /// Moves the inputs' values out, in canonical order; valid once.
  std::vector<ValuePtr> take_inputs() { return std::move(inputs_); }

  using Scratch = CanonicalScratch;
  /// Copies the walked nodes into a graph of their own, with canonically numbered Buffers. The sites
  /// that are `given` at launch, by index, become Scalars with this number.
  Scratch copy(std::span<const NumberSite> sites = {}, std::span<const uint8_t> given = {}) const;
  static constexpr uint32_t kNone = UINT32_MAX;

 private:
  /// A node or an input reached by the walk; reached_ is in topological order.
  struct Reached {
    Id id;
    bool is_input, is_commutative, is_const;
    uint32_t first_source, source_count;  // in sources_
    uint32_t first_word, word_count;      // in own_words_: the node without its sources
    uint32_t input;                       // in reached_values_
  };
  bool is_visited(Id id) const { return walk_of_[id] == walk_; }
  void begin(const Graph& graph);
  bool is_input(Id id, const ValueTable& values);
  void reach_from(Id root, const ValueTable& values);
  void finish(Id id);
  void finish_input(Id id, const ValuePtr& value);
  void add_reached(Id id, bool is_input, uint32_t first_word);
  void number_all(std::span<const Id> roots);
  void number_from(uint32_t root);
  bool comes_first(uint32_t a, uint32_t b);
  void number(uint32_t position);
  void note_range_checks(Id id);
  size_t place_at(Id id) const;
  void number_collectives();
  std::vector<uint32_t> root_numbers() const;
  std::vector<uint32_t> input_numbers() const;
  void add_origins(std::span<Origins> origins, std::span<const uint32_t> roots,
                   std::span<const SizeUse> sizes) const;
  uint64_t new_arg(Graph& scratch, size_t number) const;
  Id with_windows(Graph& scratch, Id source, size_t number, std::span<const NumberSite> sites,
                  std::span<const uint8_t> given, uint32_t first) const;
  void add_begins(uint32_t number, std::vector<NumberSite>& sites) const;
  std::vector<uint32_t> constants_shown(std::vector<uint8_t>& stays) const;
  bool may_vary(Id reader, uint32_t constant, std::span<const uint32_t> shown) const;
  void put_list(std::span<const int64_t> list);
  void note_device(uint32_t device);

  static constexpr size_t kRootsAtOnce = 64;  // bits of a word
  const Graph* graph_ = nullptr;
  Shapes* shapes_ = nullptr;
  Devices* devices_ = nullptr;
  uint32_t device_ = 0;
  uint32_t walk_ = 0;
  std::vector<uint32_t> walk_of_;    // by id
  std::vector<uint32_t> number_of_;  // by id: index into reached_ during a walk, canonical after it
  std::vector<Id> visited_;          // every id that has a number
  std::vector<Reached> reached_;
  std::vector<uint32_t> sources_;  // indices into reached_
  std::vector<uint64_t> own_words_;
  std::vector<ValuePtr> reached_values_;
  std::vector<uint32_t> canonical_of_;  // by index into reached_
  std::vector<Id> order_;               // by canonical number: the first id that has it
  std::vector<bool> is_input_;
  std::vector<uint32_t> collectives_;  // canonical numbers, in the order in which they run
  // Range checks of indices, each with a node computed from the indices: an index into reached_
  // during a walk, a canonical number after it.
  std::vector<std::pair<uint32_t, Id>> range_checks_;
  bool has_range_checks_ = false;
  std::vector<uint64_t> words_;
  uint64_t* next_word_ = nullptr;   // in words_, while nodes are numbered
  std::vector<size_t> end_of_own_;  // by canonical number: where its own words end
  std::vector<uint32_t> roots_;
  std::vector<ValuePtr> inputs_;
  std::vector<uint32_t> devices_used_;
  std::vector<std::pair<uint32_t, uint32_t>> stack_;  // node, next source
  StructuralOrder structure_;
};

}  // namespace plugrad::engine
