#include "scale/search.h"

#include <algorithm>

#include "base/check.h"

namespace plugrad::tools::scale {
namespace {

using sharding::AxisSet;

// A group with a smaller part of all parameters is cut with those of its shape only.
constexpr uint64_t kLeastPart = 1000;

class Search {
 public:
  Search(const Program& program, const Machine& machine, const sharding::Mesh& mesh,
         Estimator& estimator, const SearchOptions& options)
      : program_(program),
        machine_(machine),
        mesh_(mesh),
        estimator_(estimator),
        options_(options) {}

  SearchResult run() {
    for (const AxisSet batch : cuts_of_batch()) {
      Layout layout = replicated(program_);
      layout.batch = batch;
      layout.state = options_.state.value_or(0);
      for (const auto& [group, dims] : options_.groups) layout.groups[group] = dims;
      try_layout(layout);
      if (options_.only_given) break;
      try_state(layout);
      try_state(cut_groups(layout));
    }
    std::vector<Tried> all;
    for (auto& [layout, tried] : tried_)
      if (tried) all.push_back(std::move(*tried));
    std::ranges::stable_sort(all, is_better);
    require(!all.empty(), "[plan-scale] the rules of propagation allow none of the specs: {}",
            result_.reason);
    result_.tried = std::move(all);
    return std::move(result_);
  }

 private:
  static bool is_better(const Tried& a, const Tried& b) {
    if (a.fits != b.fits) return a.fits;
    const auto key = [](const Tried& x) {
      const double step = x.estimate.step_seconds();
      const auto memory = static_cast<double>(x.estimate.memory.total());
      return x.fits ? std::pair(step, memory) : std::pair(memory, step);
    };
    return key(a) < key(b);
  }

  AxisSet all_axes() const {
    AxisSet axes = 0;
    for (size_t axis = 0; axis < mesh_.sizes.size(); ++axis)
      if (mesh_.sizes[axis] > 1) axes |= AxisSet{1} << axis;
    return axes;
  }

  /// The most positions first: those specs are usual.
  std::vector<AxisSet> cuts_of_batch() const {
    if (options_.batch) return {*options_.batch};
    std::vector<AxisSet> cuts;
    const AxisSet all = all_axes();
    for (AxisSet axes = all;; axes = (axes - 1) & all) {
      if (mesh_.count(axes) <= std::max<int64_t>(program_.batch, 1)) cuts.push_back(axes);
      if (axes == 0) break;
    }
    return cuts;
  }

  const Tried* try_layout(const Layout& layout) {
    const auto [at, is_new] = tried_.try_emplace(layout);
    if (!is_new || tried_.size() > options_.most_tries) return at->second ? &*at->second : nullptr;
    try {
      Tried tried{layout, estimator_.estimate(mesh_, layout)};
      tried.fits =
          static_cast<double>(tried.estimate.memory.total()) <= machine_.device.memory_bytes;
      at->second = std::move(tried);
      return &*at->second;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::User && error.kind() != ErrorKind::Unsupported) throw;
      if (result_.refused++ == 0) result_.reason = error.what();
      return nullptr;
    }
  }

  void try_state(Layout layout) {
    if (options_.state) return;
    layout.state = layout.batch != 0 ? layout.batch : all_axes();
    if (layout.state != 0) try_layout(layout);
  }

  using Groups = std::vector<size_t>;

  uint64_t bytes_of(const Groups& groups) const {
    uint64_t bytes = 0;
    for (const size_t group : groups) bytes += program_.groups[group].bytes;
    return bytes;
  }

  /// Groups that are cut alike: first all of one shape, then each on its own, as far as it has a
  /// part in the size of the program; the largest first.
  std::vector<Groups> moves() const {
    std::map<std::vector<int64_t>, Groups> by_shape;
    std::vector<Groups> alone, all;
    for (size_t group = 0; group < program_.groups.size(); ++group) {
      if (options_.groups.contains(group)) continue;
      by_shape[program_.groups[group].shape].push_back(group);
      alone.push_back({group});
    }
    const auto by_size = [&](const Groups& a, const Groups& b) {
      return bytes_of(a) > bytes_of(b);
    };
    uint64_t total = 0;
    for (const auto& [shape, groups] : by_shape) {
      total += bytes_of(groups);
      all.push_back(groups);
    }
    std::erase_if(alone, [&](const Groups& groups) {
      return bytes_of(groups) < total / kLeastPart ||
             by_shape[program_.groups[groups[0]].shape].size() == 1;
    });
    // Matrices before vectors, those that a network repeats before embeddings.
    std::ranges::stable_sort(all, std::greater(), [&](const Groups& groups) {
      size_t parameters = 0;
      for (const size_t group : groups) parameters += program_.groups[group].leaves.size();
      const bool is_matrix = program_.groups[groups[0]].shape.size() > 1;
      return std::tuple(is_matrix, parameters, bytes_of(groups));
    });
    std::ranges::stable_sort(alone, by_size);
    all.insert(all.end(), alone.begin(), alone.end());
    return all;
  }

  /// The specs of one parameter: whole, or one dimension cut along one of the axes.
  std::vector<std::vector<AxisSet>> cuts_of(const Group& group, AxisSet axes) const {
    std::vector<std::vector<AxisSet>> cuts = {std::vector<AxisSet>(group.shape.size())};
    for (size_t d = 0; d < group.shape.size(); ++d)
      for (size_t axis = 0; axis < mesh_.sizes.size(); ++axis) {
        const AxisSet along = AxisSet{1} << axis;
        if ((along & axes) == 0 || group.shape[d] < mesh_.sizes[axis]) continue;
        cuts.push_back(cuts[0]);
        cuts.back()[d] = along;
      }
    return cuts;
  }

  /// The axes that may cut parameters: those that do not cut the batch, if there are any.
  AxisSet axes_for_groups(const Layout& layout) const {
    const AxisSet free = all_axes() & ~layout.batch;
    return free == 0 ? all_axes() : free;
  }

  Layout cut_groups(Layout best) {
    try_layout(best);
    const AxisSet axes = axes_for_groups(best);
    for (const Groups& groups : moves())
      for (const auto& dims : cuts_of(program_.groups[groups[0]], axes)) {
        Layout next = best;
        for (const size_t group : groups) next.groups[group] = dims;
        const Tried* const made = try_layout(next);
        const Tried* const known = try_layout(best);
        if (made != nullptr && (known == nullptr || is_better(*made, *known))) best = next;
      }
    return best;
  }

  const Program& program_;
  const Machine& machine_;
  const sharding::Mesh& mesh_;
  Estimator& estimator_;
  const SearchOptions& options_;
  std::map<Layout, std::optional<Tried>> tried_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Program& program, const Machine& machine, const sharding::Mesh& mesh,
                    Estimator& estimator, const SearchOptions& options) {
  return Search(program, machine, mesh, estimator, options).run();
}

}  // namespace plugrad::tools::scale
