#include "engine/lengths/any_length.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "ir/kernel_ast.h"

namespace plugrad::engine {
namespace {

[[noreturn]] void refuse(Op op, std::string_view why) {
  fail(ErrorKind::Unsupported, "{}: {}", op_info(op).name, why);
}

/// The shapes of all nodes by the length.
class Shaped {
 public:
  Shaped(const CanonicalGraph& walked, const Graph& graph, std::span<const Line> sizes)
      : walked_(walked), graph_(graph) {
    for (uint32_t number = 0; number < walked.size(); ++number) {
      lists_.push_back(sizes.subspan(at_, walked.size_count(number)));
      at_ += lists_.back().size();
      shapes_.push_back(shape_of(number));
      for (const Line& size : shapes_.back())
        if (size.by < 0) refuse(op(number), "an axis becomes shorter as another becomes longer");
    }
  }

  Op op(uint32_t number) const {
    return walked_.is_input(number) ? Op::Buffer : graph_[walked_.id(number)].op;
  }
  std::span<const Line> list(uint32_t number) const { return lists_[number]; }
  const Lines& shape(uint32_t number) const { return shapes_[number]; }
  uint32_t source(uint32_t number, size_t i = 0) const {
    return walked_.number(graph_.sources(walked_.id(number))[i]);
  }

  /// The largest length for which axis `axis` of a Shrink or Pad has the elements that it needs.
  int64_t largest_of(uint32_t number, size_t axis, int64_t most) const {
    const Line first = lists_[number][2 * axis], second = lists_[number][2 * axis + 1];
    // Not negative: elements behind a slice, or zeros behind.
    const Line behind = op(number) == Op::Pad ? second : shapes_[source(number)][axis] - second;
    return first.varies() || behind.by >= 0 ? most : std::min(most, behind.plus / -behind.by);
  }

 private:
  Lines shape_of(uint32_t number) const {
    const std::span<const Line> list = lists_[number];
    const auto first = [&] { return shapes_[source(number)]; };
    switch (op(number)) {
      case Op::Buffer:
      case Op::Reshape:
      case Op::Expand:
      case Op::Iota:
        return {list.begin(), list.end()};
      case Op::Const:
        return {};
      case Op::Shrink:
      case Op::Pad: {
        Lines shape = first();
        for (size_t i = 0; i < shape.size(); ++i)
          shape[i] = op(number) == Op::Pad ? shape[i] + list[2 * i] + list[2 * i + 1]
                                           : list[2 * i + 1] - list[2 * i];
        return shape;
      }
      case Op::Permute: {
        Lines shape;
        for (const int64_t axis : graph_.arg_list(walked_.id(number)))
          shape.push_back(first()[static_cast<size_t>(axis)]);
        return shape;
      }
      case Op::Reduce: {
        Lines shape = first();
        for (const int64_t axis : graph_.arg_list(walked_.id(number)).subspan(1))
          shape[static_cast<size_t>(axis)] = {0, 1};
        return shape;
      }
      case Op::Flip:
      case Op::Detach:
      case Op::Contiguous:
        return first();
      default:
        return elementwise(number);
    }
  }

  Lines elementwise(uint32_t number) const {
    const Id id = walked_.id(number);
    const Node& node = graph_[id];
    if (!is_alu(node.op)) refuse(node.op, "each length has kernels of its own");
    if (node.op == Op::Bitcast && size_of(node.dtype) != size_of(graph_[node.src[0]].dtype))
      refuse(node.op, "its axes have other sizes than the source's");
    for (size_t i = 0; i < graph_.sources(id).size(); ++i)
      if (const Lines& shape = shapes_[source(number, i)]; !shape.empty()) return shape;
    return {};
  }

  const CanonicalGraph& walked_;
  const Graph& graph_;
  size_t at_ = 0;
  std::vector<std::span<const Line>> lists_;
  std::vector<Lines> shapes_;
};

class Builder {
 public:
  Builder(const CanonicalGraph& walked, const Graph& graph, const LengthForm& form)
      : walked_(walked),
        graph_(graph),
        form_(form),
        shaped_(walked, graph, form.sizes),
        site_of_(walked.size(), CanonicalGraph::kNone) {
    for (uint32_t i = 0; i < form.sites.size(); ++i)
      if (form.given[i] != 0) site_of_[form.sites[i].node] = i;
  }

  AnyLength run(uint32_t device) {
    made_.scratch.walked.clear();
    for (uint32_t number = 0; number < walked_.size(); ++number)
      if (walked_.is_input(number)) add_input(number);
    add_length(device);
    for (uint32_t number = 0; number < walked_.size(); ++number) {
      const Id plain = walked_.is_input(number) ? new_id_[number] : node(number);
      note(plain, number);
      new_id_[number] = with_counts(plain, number);
      note(new_id_[number], number);
    }
    for (const uint32_t root : walked_.roots()) {
      made_.scratch.roots.push_back(new_id_[root]);
      made_.roots.push_back(shaped_.shape(root));
    }
    made_.scratch.walked.resize(scratch_.size(), kNoId);
    made_.scratch.graph = std::move(scratch_);
    return std::move(made_);
  }

 private:
  int64_t most(const Line& size) const { return size.at(form_.bounds.most); }
  Id list_at_most(std::span<const Line> lines) {
    std::vector<int64_t> list;
    for (const Line& line : lines) list.push_back(most(line));
    return scratch_.list(list);
  }

  void note(Id made, uint32_t number) {
    made_.scratch.walked.resize(std::max<size_t>(made_.scratch.walked.size(), made + 1), kNoId);
    made_.scratch.walked[made] = walked_.id(number);
  }

  void add_buffer(DType dtype, uint32_t device, std::span<const Line> shape) {
    std::vector<int64_t> list = {static_cast<int64_t>(made_.scratch.inputs.size()), device};
    for (const Line& size : shape) list.push_back(most(size));
    made_.scratch.inputs.push_back(scratch_.add(Op::Buffer, dtype, {}, scratch_.list(list)));
  }

  void add_input(uint32_t number) {
    const Value& value = *walked_.inputs()[made_.inputs.size()];
    made_.inputs.push_back(shaped_.shape(number));
    add_buffer(graph_[walked_.id(number)].dtype, value.device, shaped_.shape(number));
    new_id_[number] = made_.scratch.inputs.back();
  }

  void add_length(uint32_t device) {
    add_buffer(DType::I32, device, {});
    counts_[{1, 0}] = made_.scratch.inputs.back();
  }

  Id constant(int64_t number) { return scratch_.constant(DType::I32, number); }

  // A number of elements, as a node.
  Id count(const Line& size) {
    if (const auto known = counts_.find({size.by, size.plus}); known != counts_.end())
      return known->second;
    Id made = counts_.at({1, 0});
    if (size.by != 1) made = scratch_.binary(Op::Mul, made, constant(size.by));
    if (size.plus != 0) made = scratch_.binary(Op::Add, made, constant(size.plus));
    return counts_[{size.by, size.plus}] = made;
  }

  Id scalar_of(const Line& start, int64_t largest) {
    made_.starts.push_back(start);
    return make_scalar(
        scratch_, static_cast<uint32_t>(form_.sites.size() + made_.starts.size() - 1), largest);
  }

  Id node(uint32_t number) {
    const Id id = walked_.id(number);
    const Node& n = graph_[id];
    std::vector<Id> sources;
    for (const Id source : graph_.sources(id)) sources.push_back(new_id_[walked_.number(source)]);
    switch (n.op) {
      case Op::Const:
        return site_of_[number] == CanonicalGraph::kNone
                   ? scratch_.add(n.op, n.dtype, {}, n.arg)
                   : make_scalar(scratch_, site_of_[number], n.dtype);
      case Op::Reshape:
      case Op::Expand:
        return scratch_.add(n.op, n.dtype, sources, list_at_most(shaped_.list(number)));
      case Op::Iota:
        return scratch_.add(n.op, n.dtype, {},
                            static_cast<uint64_t>(most(shaped_.list(number)[0])));
      case Op::Pad:
        return padded(number, sources[0]);
      case Op::Shrink:
        return shrunk(number, sources[0]);
      case Op::Flip:
        return flipped(number, sources[0]);
      case Op::Reduce: {
        const auto list = graph_.arg_list(id);
        sources[0] = masked(sources[0], list.subspan(1), static_cast<Op>(list[0]));
        break;
      }
      case Op::Contiguous:
        return scratch_.add(n.op, n.dtype, sources, n.arg != 0 ? number + 1 : 0);
      default:
        break;
    }
    const bool has_list = op_info(n.op).arg == ArgKind::List;
    return scratch_.add(n.op, n.dtype, sources,
                        has_list ? scratch_.list(graph_.arg_list(id)) : n.arg);
  }

  // Terms that are chosen by an index are masked each, so that the scheduler finds them in the sum.
  Id masked(Id x, std::span<const int64_t> axes, Op op) {
    constexpr size_t kMostTerms = 32;
    std::vector<Id> terms, sums = {x};
    bool has_choices = false;
    while (op == Op::Add && !sums.empty() && sums.size() + terms.size() <= kMostTerms) {
      Id term = sums.back();
      sums.pop_back();
      while (scratch_[term].op == Op::Bounded) term = scratch_[term].src[0];
      const Node& n = scratch_[term];
      has_choices |= n.op == Op::Where;
      if (n.op == Op::Add)
        sums.insert(sums.end(), {n.src[1], n.src[0]});
      else
        terms.push_back(term);
    }
    if (!has_choices || terms.size() < 2 || !sums.empty()) return bounded_.masked(x, axes, op);
    Id total = kNoId;
    for (const Id term : terms) {
      const Id own = bounded_.masked(bounded_.like(term, x), axes, op);
      total = total == kNoId ? own : scratch_.binary(Op::Add, total, own);
    }
    return total;
  }

  Id window(Id x, size_t axis, const Line& start, int64_t largest, int64_t length) {
    return scratch_.add(Op::Window, scratch_[x].dtype, {x, scalar_of(start, largest)},
                        scratch_.list({static_cast<int64_t>(axis), length}));
  }

  // An axis that begins behind a varying number of zeros is cut out of one with zeros on both sides.
  Id padded(uint32_t number, Id x) {
    struct Cut {
      size_t axis;
      Line start;
      int64_t size;
    };
    const auto list = shaped_.list(number);
    const Lines &from = shaped_.shape(shaped_.source(number)), &to = shaped_.shape(number);
    std::vector<int64_t> amounts(list.size());
    std::vector<Cut> cuts;
    const DType dtype = scratch_[x].dtype;
    for (size_t axis = 0; axis < from.size(); ++axis) {
      const Line before = list[2 * axis], after = list[2 * axis + 1];
      if (before == Line{} && after == Line{}) continue;
      const auto at = static_cast<int64_t>(axis);
      if (from[axis].varies()) x = bounded_.whole(x, at, scratch_.constant(dtype, int64_t{0}));
      const int64_t size = most(to[axis]), own = most(from[axis]);
      amounts[2 * axis] = before.varies() ? size : before.plus;
      amounts[2 * axis + 1] = before.varies() ? size : size - own - before.plus;
      if (amounts[2 * axis + 1] < 0)
        refuse(Op::Pad, "what is padded may be longer than the result");
      if (before.varies()) cuts.push_back({axis, Line{0, size} - before, size});
    }
    x = scratch_.add(Op::Pad, dtype, {x}, scratch_.list(amounts));
    for (const Cut& cut : cuts) x = window(x, cut.axis, cut.start, cut.size, cut.size);
    return x;
  }

  Id shrunk(uint32_t number, Id x) {
    const auto list = shaped_.list(number);
    const Lines &from = shaped_.shape(shaped_.source(number)), &to = shaped_.shape(number);
    std::vector<int64_t> rest(list.size());
    for (size_t axis = 0; axis < from.size(); ++axis) {
      const Line begin = list[2 * axis];
      const int64_t length = most(to[axis]), own = most(from[axis]);
      rest[2 * axis] = begin.varies() ? 0 : begin.plus;
      rest[2 * axis + 1] = rest[2 * axis] + length;
      if (!begin.varies()) {
        if (rest[2 * axis + 1] > own) refuse(Op::Shrink, "a slice may end behind its source");
        continue;
      }
      if (to[axis].varies())  // its last elements may lie behind those of the source
        x = with_zeros_behind(x, axis, length);
      x = window(x, axis, begin, to[axis].varies() ? own : own - length, length);
    }
    return scratch_.add(Op::Shrink, scratch_[x].dtype, {x}, scratch_.list(rest));
  }

  // The elements of a reversed axis come last: they are cut out there.
  Id flipped(uint32_t number, Id x) {
    const auto list = graph_.arg_list(walked_.id(number));
    const Lines& shape = shaped_.shape(number);
    x = scratch_.add(Op::Flip, scratch_[x].dtype, {x}, scratch_.list(list));
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (list[axis] != 0 && shape[axis].varies()) {
        const int64_t size = most(shape[axis]);
        x = window(with_zeros_behind(x, axis, size), axis, Line{0, size} - shape[axis], size, size);
      }
    return x;
  }

  Id with_zeros_behind(Id x, size_t axis, int64_t count) {
    std::vector<int64_t> amounts(2 * shapes_[x].size());
    amounts[2 * axis + 1] = count;
    return scratch_.add(Op::Pad, scratch_[x].dtype, {x}, scratch_.list(amounts));
  }

  // Whether the elements of each axis that the exact graph has come first, whatever the source's
  // extents say.
  static bool makes_axes(Op op) {
    return op == Op::Buffer || op == Op::Iota || op == Op::Expand || op == Op::Pad ||
           op == Op::Shrink || op == Op::Flip;
  }

  // The node with the extents that its shape has at each length.
  Id with_counts(Id x, uint32_t number) {
    const Lines& shape = shaped_.shape(number);
    const Op op = shaped_.op(number);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const Extent extent = extents_[x][axis];
      const auto at = static_cast<int64_t>(axis);
      if (!shape[axis].varies()) {
        if (extent.kind == Extent::Kind::Whole || extent.kind == Extent::Kind::Free) continue;
        if (!makes_axes(op)) refuse(op, "an axis would end where its elements do not");
        x = scratch_.add(Op::Bounded, scratch_[x].dtype, {x, constant(shape[axis].plus)},
                         scratch_.list({at, shape[axis].plus}));
        continue;
      }
      if (!makes_axes(op) && !(extent.is_counted() && is_same(extent.count, shape[axis])))
        refuse(op, "elements of one length lie between those of a longer one");
      x = bounded_.bound(x, at, count(shape[axis]), shape[axis].at(form_.bounds.least));
    }
    return x;
  }

  // Whether the count is this one at the least and at the largest length.
  bool is_same(Id counted, const Line& size) const {
    const auto [least, largest] = form_.bounds;
    return value(counted, least) == size.at(least) && value(counted, largest) == size.at(largest);
  }
  int64_t value(Id counted, int64_t length) const {
    const Node& n = scratch_[counted];
    if (n.op == Op::Const) return const_int(scratch_, counted);
    if (n.op == Op::Buffer) return length;
    const int64_t left = value(n.src[0], length), right = value(n.src[1], length);
    return n.op == Op::Mul ? left * right : left + right;
  }

  const CanonicalGraph& walked_;
  const Graph& graph_;
  const LengthForm& form_;
  Shaped shaped_;
  AnyLength made_;
  Graph scratch_;
  Shapes shapes_{scratch_};
  Extents extents_{scratch_, shapes_};
  BoundedGraph bounded_{scratch_, shapes_, extents_};
  std::vector<uint32_t> site_of_;
  std::vector<Id> new_id_ = std::vector<Id>(walked_.size(), kNoId);
  std::map<std::pair<int64_t, int64_t>, Id> counts_;
};

}  // namespace

int64_t largest_length(const CanonicalGraph& walked, const Graph& graph, const LengthForm& form) {
  const Shaped shaped(walked, graph, form.sizes);
  int64_t most = form.bounds.most;
  for (uint32_t number = 0; number < walked.size(); ++number)
    if (shaped.op(number) == Op::Pad || shaped.op(number) == Op::Shrink)
      for (size_t axis = 0; axis < shaped.shape(number).size(); ++axis)
        most = shaped.largest_of(number, axis, most);
  return most;
}

AnyLength for_any_length(const CanonicalGraph& walked, const Graph& graph, const LengthForm& form,
                         uint32_t device) {
  return Builder(walked, graph, form).run(device);
}

}  // namespace plugrad::engine
