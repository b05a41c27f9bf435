#include "schedule/constant_steps.h"

#include <algorithm>
#include <numeric>

#include "ir/kernel_ast.h"

namespace plugrad::schedule {
namespace {

using Kind = PlannedBuffer::Kind;

uint64_t size_in_bytes(const PlannedBuffer& buffer) {
  return static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype);
}

// The buffers that the step writes. For user kernels and loops: all of its buffers, an upper bound.
std::vector<uint32_t> written_by(const Plan& plan, const Step& step) {
  if (step.kind == Step::Kind::Copy) return {step.buffers[0]};
  if (step.kind != Step::Kind::Kernel) return step.buffers;
  const KernelAst& ast = *plan.asts[step.ast];
  std::vector<uint32_t> written;
  for (const Id store : ast.graph.sources(ast.sink))
    written.push_back(step.buffers[param_info(ast.graph, ast.graph.sources(store)[0]).slot]);
  return written;
}

// Makes a plan of the steps of one part.
class PartMaker {
 public:
  PartMaker(const Plan& whole, ConstantPart& part)
      : whole_(whole), part_(part), new_number_(whole.buffers.size(), kNone) {}

  void make(const std::vector<bool>& read_by_rest) {
    for (const uint32_t s : part_.steps)
      for (const uint32_t b : whole_.steps[s].buffers)
        if (whole_.buffers[b].kind == Kind::Input) add(b);
    part_.plan.input_count = static_cast<uint32_t>(part_.buffers.size());
    for (const uint32_t s : part_.steps) add_step(whole_.steps[s]);
    for (uint32_t b = 0; b < part_.buffers.size(); ++b) {
      PlannedBuffer& buffer = part_.plan.buffers[b];
      if (buffer.kind != Kind::Temporary || !read_by_rest[part_.buffers[b]]) continue;
      buffer.kind = Kind::Output;
      buffer.number = static_cast<uint32_t>(part_.plan.root_buffers.size());
      part_.plan.root_buffers.push_back(b);
      part_.root_bytes += size_in_bytes(buffer);
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t add(uint32_t whole) {
    uint32_t& number = new_number_[whole];
    if (number != kNone) return number;
    number = static_cast<uint32_t>(part_.buffers.size());
    PlannedBuffer buffer = whole_.buffers[whole];
    if (buffer.kind == Kind::Input) {
      part_.input_bytes += size_in_bytes(buffer);
      buffer.number = number;
    } else if (buffer.kind == Kind::Constant) {
      part_.plan.constants.push_back(whole_.constants[buffer.number]);
      buffer.number = static_cast<uint32_t>(part_.plan.constants.size() - 1);
    }
    part_.buffers.push_back(whole);
    part_.plan.buffers.push_back(buffer);
    return number;
  }

  void add_step(Step step) {
    for (uint32_t& buffer : step.buffers) buffer = add(buffer);
    if (step.kind == Step::Kind::Kernel) {
      part_.plan.asts.push_back(whole_.asts[step.ast]);
      step.ast = static_cast<uint32_t>(part_.plan.asts.size() - 1);
    }
    part_.plan.steps.push_back(std::move(step));
  }

  const Plan& whole_;
  ConstantPart& part_;
  std::vector<uint32_t> new_number_;  // by buffer of the whole plan
};

class Splitter {
 public:
  Splitter(const Plan& plan, const std::vector<bool>& is_constant)
      : plan_(plan), is_constant_(plan.steps.size()), varies_(plan.buffers.size()) {
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      const PlannedBuffer& buffer = plan.buffers[b];
      varies_[b] = buffer.kind == Kind::Output ||
                   (buffer.kind == Kind::Input && !is_constant[buffer.number]);
    }
  }

  ConstantSplit run(const std::function<bool(const ConstantPart&)>& keeps) {
    find_constant_steps();
    ConstantSplit split;
    const std::vector<bool> read_by_rest = touched_by_rest();
    for (std::vector<uint32_t>& steps : connected_steps()) {
      ConstantPart part;
      part.steps = std::move(steps);
      PartMaker(plan_, part).make(read_by_rest);
      if (keeps(part)) split.parts.push_back(std::move(part));
    }
    make_rest(split);
    return split;
  }

 private:
  /// Starts with all kernels and copies, and removes steps that touch a varying buffer until
  /// nothing changes. Buffers that a removed step writes vary, too.
  void find_constant_steps() {
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step::Kind kind = plan_.steps[s].kind;
      is_constant_[s] = kind == Step::Kind::Kernel || kind == Step::Kind::Copy;
      if (!is_constant_[s]) mark_written(s);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t s = 0; s < plan_.steps.size(); ++s) {
        if (!is_constant_[s] ||
            std::ranges::none_of(plan_.steps[s].buffers, [&](uint32_t b) { return varies_[b]; }))
          continue;
        is_constant_[s] = false;
        changed = mark_written(s) || changed;
      }
    }
  }

  /// Returns whether a buffer was newly marked.
  bool mark_written(size_t step) {
    bool is_new = false;
    for (const uint32_t b : written_by(plan_, plan_.steps[step])) {
      if (plan_.buffers[b].kind != Kind::Temporary || varies_[b]) continue;
      varies_[b] = is_new = true;
    }
    return is_new;
  }

  std::vector<bool> touched_by_rest() const {
    std::vector<bool> touched(plan_.buffers.size());
    for (size_t s = 0; s < plan_.steps.size(); ++s)
      for (const uint32_t b : plan_.steps[s].buffers)
        if (!is_constant_[s]) touched[b] = true;
    return touched;
  }

  /// Constant steps in order, one list for each set connected by temporaries.
  std::vector<std::vector<uint32_t>> connected_steps() const {
    std::vector<uint32_t> leader(plan_.steps.size()), toucher(plan_.buffers.size(), UINT32_MAX);
    std::iota(leader.begin(), leader.end(), 0U);
    const auto find = [&](uint32_t step) {
      while (leader[step] != step) step = leader[step] = leader[leader[step]];
      return step;
    };
    for (uint32_t s = 0; s < plan_.steps.size(); ++s)
      for (const uint32_t b : plan_.steps[s].buffers) {
        if (!is_constant_[s] || plan_.buffers[b].kind != Kind::Temporary) continue;
        if (toucher[b] == UINT32_MAX) toucher[b] = s;
        const uint32_t one = find(s), other = find(toucher[b]);
        leader[std::max(one, other)] = std::min(one, other);
      }
    std::vector<std::vector<uint32_t>> lists;
    std::vector<size_t> list_of(plan_.steps.size());
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (!is_constant_[s]) continue;
      const uint32_t first = find(s);
      if (first == s) list_of[s] = lists.size(), lists.emplace_back();
      lists[list_of[first]].push_back(s);
    }
    return lists;
  }

  void make_rest(ConstantSplit& split) const {
    split.rest = plan_;
    std::vector<bool> is_of_part(plan_.steps.size());
    for (const ConstantPart& part : split.parts) {
      for (const uint32_t s : part.steps) is_of_part[s] = true;
      for (const uint32_t root : part.plan.root_buffers) {
        PlannedBuffer& buffer = split.rest.buffers[part.buffers[root]];
        buffer.kind = Kind::Input;
        buffer.number = split.rest.input_count++;
      }
    }
    split.rest.steps.clear();
    for (uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (is_of_part[s]) continue;
      split.rest.steps.push_back(plan_.steps[s]);
      split.rest_steps.push_back(s);
    }
  }

  const Plan& plan_;
  std::vector<bool> is_constant_;  // by step
  std::vector<bool> varies_;       // by buffer
};

}  // namespace

ConstantSplit split_constant_steps(const Plan& plan, const std::vector<bool>& is_constant,
                                   const std::function<bool(const ConstantPart&)>& keeps) {
  return Splitter(plan, is_constant).run(keeps);
}

}  // namespace plugrad::schedule
