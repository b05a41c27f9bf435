// Merges kernels of stored values that can use the same loops: parameter, moments and gradient of
// an optimiser's step; a convolution and its relu; sums over the same elements. A value that
// another of the same kernel reads at its own index stays in a register, and needs no memory if no
// other kernel reads it.
#include <algorithm>
#include <map>
#include <queue>

#include "base/check.h"
#include "ir/user.h"
#include "schedule/fusion/cost.h"
#include "schedule/fusion/kernel_order.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

constexpr size_t kMostMembers = 8;
// Limit on the buffers of a merged kernel with reductions: LLVM compiles each load once for each
// vector of the register tile, and takes seconds for 140.
constexpr size_t kMostLeavesOfReductions = 48;
constexpr int64_t kWorthAnEpilogue =
    65536;  // elements from which fusing into a Reduce like a matmul saves more than it costs

// Longer sums are added in parts, with an epilogue for each part: one that reads arrays of its own,
// as an optimiser's step does, costs more than reading the sum again.
constexpr int64_t kOneGo = 1024;

/// A stored value that another one reads: at its own index only, or at any index.
struct Leaf {
  Id node;
  bool aligned;
};

/// Reduce loops of a kernel.
struct Inner {
  bool any = false, heavy = false,
       uniform = true;  // heavy: like a matmul; uniform: all of the same sizes
  Dims sizes;
  void add(const Dims& other, bool is_heavy) {
    uniform = uniform && (!any || sizes == other);
    sizes = other;
    any = true;
    heavy = heavy || is_heavy;
  }
};

struct Kernel {
  std::vector<Id> members;
  ListId loops = 0;  // sizes of the outputs' axes other than 1
  std::vector<Leaf> leaves;
  Inner inner;
  bool alone = false;  // a copy, or loops with conditions, which codegen partitions best alone
  bool reduces = false;
  uint32_t instructions = 0;
  bool merged = false;
};

class Sharing {
 public:
  explicit Sharing(SchedulerState& state)
      : state_(state), g_(state.graph), kernel_of_(g_.size(), kNone), seen_(4 * g_.size(), 0) {}

  void run() {
    find_loops();
    for (Id id : state_.live)
      if (is_computed(id) && !joins_launch(id)) add_kernel(id);
    if (state_.options.share_kernels) {
      KernelOrder order(kernels_.size() + state_.buckets.size(), state_.visits);
      add_collectives(order);
      for (uint32_t k = 0; k < kernels_.size(); ++k) merge_or_append(k, order);
    }
    emit();
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  bool is_computed(Id id) const {
    return state_.stored[id] != 0 && state_.counts[id] != 0 && g_[id].op != Op::Buffer;
  }
  bool is_leaf(Id id, Id root) const {
    return id != root && state_.stored[id] != 0 && state_.devices[id] == state_.devices[root];
  }

  void find_loops() {
    loops_.resize(g_.size());
    for (Id id : state_.live) {
      Dims sizes;
      for (int64_t s : state_.shapes[id])
        if (s != 1) sizes.push_back(s);
      loops_[id] = state_.graph.list(sizes);
    }
  }

  /// Whether another output of the same user kernel exists: one launch writes all.
  bool joins_launch(Id id) {
    if (g_[id].op != Op::UserKernel) return false;
    std::vector<Id> key(g_.sources(id).begin(), g_.sources(id).end());
    key.push_back(UserKernelArg(g_.arg_list(id)).kernel());
    const auto [at, is_new] = launches_.try_emplace(key, static_cast<uint32_t>(kernels_.size()));
    if (is_new) return false;
    kernels_[at->second].members.push_back(id);
    kernel_of_[id] = at->second;
    return true;
  }

  void add_kernel(Id id) {
    Kernel k;
    k.members = {id};
    k.loops = loops_[id];
    k.alone = g_[id].op == Op::Copy || g_[id].op == Op::Collective || g_[id].op == Op::UserKernel;
    if (k.alone)
      for (Id s : g_.sources(id)) k.leaves.push_back({s, false});
    else
      collect(id, k);
    // Blocked rows belong to one store's loops. Indexed terms gain nothing beside other stores.
    k.alone = k.alone || state_.in_blocks[id] != 0 || state_.indexed[id] != 0;
    kernel_of_[id] = static_cast<uint32_t>(kernels_.size());
    kernels_.push_back(std::move(k));
  }

  /// Collects the nodes that the kernel of `root` computes; each node once for each way.
  void collect(Id root, Kernel& k) {
    ++epoch_;
    struct Visit {
      Id id;
      bool aligned, inside;  // inside another Reduce, whose loops count
    };
    std::vector<Visit> stack = {{root, true, false}};
    while (!stack.empty()) {
      const auto [id, aligned, inside] = stack.back();
      stack.pop_back();
      ++state_.visits;
      if (is_leaf(id, root)) {
        k.leaves.push_back({id, aligned});
        continue;
      }
      const Op op = g_[id].op;
      if (op == Op::Pad) k.alone = true;
      k.instructions += instructions_of(g_, g_[id]);
      if (op == Op::Reduce) {
        k.reduces = true;
        const auto source = state_.shapes[g_[id].src[0]];
        Dims sizes;
        for (int64_t axis : g_.arg_list(id).subspan(1))
          sizes.push_back(source[static_cast<size_t>(axis)]);
        if (!inside) k.inner.add(sizes, false);
        k.inner.heavy = k.inner.heavy || state_.like_matmul[id] != 0;
      }
      const bool below = inside || op == Op::Reduce;
      const bool elementwise = is_alu(op) || op == Op::Reshape || op == Op::Contiguous;
      for (Id s : g_.sources(id)) {
        const bool still = aligned && elementwise && loops_[s] == loops_[id];
        const size_t mark = 4 * size_t{s} + (still ? 2 : 0) + (below ? 1 : 0);
        if (seen_[mark] == epoch_) continue;
        seen_[mark] = epoch_;
        stack.push_back({s, still, below});
      }
    }
    std::ranges::sort(k.leaves, {}, [](const Leaf& l) { return std::pair(l.node, l.aligned); });
    // A value read both ways is not aligned.
    const auto last = std::unique(k.leaves.begin(), k.leaves.end(),
                                  [](const Leaf& a, const Leaf& b) { return a.node == b.node; });
    k.leaves.erase(last, k.leaves.end());
  }

  uint32_t writer_of(const Leaf& leaf) const { return kernel_of_[leaf.node]; }

  /// Merges kernel `k` into an earlier one if that pays.
  void merge_or_append(uint32_t k, KernelOrder& order) {
    uint32_t mine = k;
    for (uint32_t into : candidates(k)) {
      if (!may_join(k, into) || !may_follow(k, into, order)) continue;
      join(k, into);
      mine = into;
      break;
    }
    if (mine == k && !is_ordered_) order.append(k, read_by(k, kNone));
    for (const Leaf& leaf : kernels_[k].leaves) readers_[{kernels_[mine].loops, leaf.node}] = mine;
  }

  /// Where there are collectives, orders all kernels before any of them merge. The start of each
  /// bucket is a kernel of its own, behind what its members send and behind the bucket before it.
  /// So no merge makes a collective depend on a later one, or on another one of its bucket.
  void add_collectives(KernelOrder& order) {
    is_ordered_ = !state_.buckets.empty();
    for (uint32_t k = 0; is_ordered_ && k < kernels_.size(); ++k)
      order.append(k, read_by(k, kNone));
    for (uint32_t b = 0; b < state_.buckets.size(); ++b) {
      const auto start = static_cast<uint32_t>(kernels_.size()) + b;
      std::vector<uint32_t> others;
      if (b > 0) others.push_back(start - 1);
      for (const Id member : state_.buckets[b])
        for (const uint32_t read : read_by(kernel_of_[member], kNone)) others.push_back(read);
      order.append(start, others);
      for (const Id member : state_.buckets[b])
        ensure(order.reads_too(kernel_of_[member], std::span(&start, 1), SIZE_MAX),
               "collective {} of a plan depends on a later one", member);
    }
  }

  /// Makes `into` depend on what `k` reads, and what reads `k` depend on `into`. Returns false if
  /// that would close a circle.
  bool may_follow(uint32_t k, uint32_t into, KernelOrder& order) const {
    return (!is_ordered_ || order.reads_too(k, std::span(&into, 1))) &&
           order.reads_too(into, read_by(k, into));
  }

  /// Earlier kernels that `k` reads, or that read the same values.
  std::vector<uint32_t> candidates(uint32_t k) const {
    std::vector<uint32_t> found;
    for (const Leaf& leaf : kernels_[k].leaves)
      if (leaf.aligned && writer_of(leaf) != kNone) found.push_back(writer_of(leaf));
    for (const Leaf& leaf : kernels_[k].leaves) {
      if (state_.counts[leaf.node] < state_.counts[kernels_[k].members[0]]) continue;
      const auto at = readers_.find({kernels_[k].loops, leaf.node});
      if (at != readers_.end()) found.push_back(at->second);
    }
    return found;
  }

  bool may_join(uint32_t k, uint32_t into) const {
    const Kernel &a = kernels_[into], &b = kernels_[k];
    state_.visits += b.leaves.size();
    if (a.alone || b.alone || a.loops != b.loops || a.members.size() >= kMostMembers) return false;
    if (a.instructions + b.instructions > kMostInstructions) return false;
    if (state_.devices[a.members[0]] != state_.devices[b.members[0]]) return false;
    if (state_.constant[a.members[0]] != state_.constant[b.members[0]]) return false;
    const size_t leaves = a.leaves.size() + b.leaves.size();
    if (leaves + a.members.size() + 1 > state_.options.max_params) return false;
    if ((a.reduces || b.reduces) && leaves > kMostLeavesOfReductions) return false;
    bool reads_it = false;
    for (const Leaf& leaf : b.leaves) {
      const uint32_t from = writer_of(leaf);
      if (from == kNone) continue;
      if (from == into && (!leaf.aligned || state_.ends_kernel[leaf.node] != 0)) return false;
      reads_it = reads_it || from == into;
    }
    if (!a.inner.any && !b.inner.any) return true;
    if (b.inner.any)
      return a.inner.any && !a.inner.heavy && !b.inner.heavy && a.inner.uniform &&
             b.inner.uniform && a.inner.sizes == b.inner.sizes;
    return reads_it && (!a.inner.heavy || is_worth_an_epilogue(a, b));
  }

  static bool is_member(const Kernel& kernel, Id node) {
    return std::ranges::find(kernel.members, node) != kernel.members.end();
  }

  bool is_worth_an_epilogue(const Kernel& product, const Kernel& end) const {
    const int64_t count = state_.counts[end.members[0]];
    if (count < kWorthAnEpilogue) return false;
    return element_count(product.inner.sizes) <= kOneGo ||
           std::ranges::all_of(end.leaves, [&](const Leaf& leaf) {
             return state_.counts[leaf.node] < count || is_member(product, leaf.node);
           });
  }

  /// The kernels that `k` reads, without `except`.
  std::vector<uint32_t> read_by(uint32_t k, uint32_t except) const {
    std::vector<uint32_t> from;
    for (const Leaf& leaf : kernels_[k].leaves)
      if (writer_of(leaf) != kNone && writer_of(leaf) != except) from.push_back(writer_of(leaf));
    std::ranges::sort(from);
    from.erase(std::unique(from.begin(), from.end()), from.end());
    return from;
  }

  void join(uint32_t k, uint32_t into) {
    Kernel& a = kernels_[into];
    Kernel& b = kernels_[k];
    a.members.push_back(b.members[0]);
    a.instructions += b.instructions;
    a.leaves.insert(a.leaves.end(), b.leaves.begin(), b.leaves.end());
    if (b.inner.any) a.inner.add(b.inner.sizes, b.inner.heavy);
    kernel_of_[b.members[0]] = into;
    b.merged = true;
  }

  /// Values that only their own kernel reads need no memory.
  void unstore_internal() {
    std::vector<uint8_t> read(g_.size(), 0);
    for (uint32_t k = 0; k < kernels_.size(); ++k)
      for (const Leaf& leaf : kernels_[k].leaves)
        if (!kernels_[k].merged && writer_of(leaf) != k) read[leaf.node] = 1;
    for (const Kernel& k : kernels_)
      for (Id member : k.members)
        if (!k.merged && g_[member].op != Op::UserKernel && state_.requested[member] == 0 &&
            read[member] == 0)
          state_.stored[member] = 0;
  }

  /// Emits the kernels in topological order, otherwise in the order of the graph.
  void emit() {
    unstore_internal();
    std::vector<std::vector<uint32_t>> readers(kernels_.size());
    std::vector<uint32_t> waiting(kernels_.size(), 0);
    for (uint32_t k = 0; k < kernels_.size(); ++k) {
      if (kernels_[k].merged) continue;
      for (const Leaf& leaf : kernels_[k].leaves) {
        const uint32_t from = writer_of(leaf);
        if (from == kNone || from == k) continue;
        readers[from].push_back(k);
        ++waiting[k];
      }
    }
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
    for (uint32_t k = 0; k < kernels_.size(); ++k)
      if (!kernels_[k].merged && waiting[k] == 0) ready.push(k);
    while (!ready.empty()) {
      const uint32_t k = ready.top();
      ready.pop();
      std::vector<Id> outputs;
      for (Id member : kernels_[k].members)
        if (state_.stored[member] != 0) outputs.push_back(member);
      if (!outputs.empty()) state_.kernels.push_back(std::move(outputs));
      for (uint32_t r : readers[k])
        if (--waiting[r] == 0) ready.push(r);
    }
  }

  SchedulerState& state_;
  const Graph& g_;
  std::vector<Kernel> kernels_;                   // by first member, ascending
  std::vector<uint32_t> kernel_of_;               // by stored node
  std::map<std::vector<Id>, uint32_t> launches_;  // of user kernels, by sources and kernel
  std::vector<ListId> loops_;                     // by node: its sizes other than 1
  std::map<std::pair<ListId, Id>, uint32_t>
      readers_;  // the last kernel with these loops that reads the node
  std::vector<uint32_t> seen_;
  uint32_t epoch_ = 0;
  bool is_ordered_ = false;  // all kernels are in the order before any of them merge
};

}  // namespace

void share_kernels(SchedulerState& state) {
  state.buckets = collective_buckets(state);
  Sharing(state).run();
}

}  // namespace plugrad::schedule
