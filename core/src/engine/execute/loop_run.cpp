#include "engine/execute/loop_run.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "engine/execute/launch_log.h"

namespace plugrad::engine {
namespace {

using BufferPtr = std::shared_ptr<runtime::Buffer>;

// A non-owning pointer: the run of the enclosing plan owns the buffer.
BufferPtr borrowed(runtime::Buffer& buffer) {
  return {BufferPtr(), &buffer};
}

// One iteration's slice of a stepped array. On a device without sub-buffers, `part` is a separate
// buffer that is copied from and to the array.
struct Slice {
  BufferPtr part;
  runtime::Buffer* whole;
  uint64_t offset_bytes, size_bytes;

  Slice(runtime::Buffer& array, const LoopBody::Array& form, int64_t place)
      : whole(&array),
        offset_bytes(static_cast<uint64_t>(place) * form.stride_bytes()),
        size_bytes(form.size_bytes()) {
    part = runtime::sub_buffer(borrowed(array), offset_bytes, size_bytes);
  }
  void fetch() const {
    if (!part->is_part() && size_bytes > 0)
      runtime::copy(*part, 0, *whole, offset_bytes, size_bytes);
  }
  void give_back() const {
    if (!part->is_part() && size_bytes > 0)
      runtime::copy(*whole, offset_bytes, *part, 0, size_bytes);
  }
};

class LoopRun {
 public:
  LoopRun(const ReadyLoop& loop, std::span<const uint32_t> params,
          std::span<runtime::Buffer* const> buffers, std::span<const ValuePtr> values,
          LaunchLog& log)
      : body_(*loop.body),
        plan_(*loop.plan),
        params_(params),
        outer_(buffers),
        values_(values),
        log_(log),
        buffers_(plan_.plan.buffers.size()) {}

  void run() {
    bind_fixed();
    clear_sums();
    const int64_t length = this->length();
    for (int64_t i = 0; i < length; ++i) run_step(i, length);
  }

 private:
  runtime::Buffer& param(uint32_t number) const { return *outer_[params_[number]]; }
  runtime::Buffer& source(uint32_t number) const {
    return param(body_.first_input_param() + number);
  }
  uint32_t stepped() const { return static_cast<uint32_t>(body_.stepped.size()); }

  // The length of the arrays, or a shorter counted one, for which the host may have to wait.
  int64_t length() const {
    const auto most =
        static_cast<int64_t>(source(body_.states).size_bytes() / body_.stepped[0].stride_bytes());
    if (!body_.is_counted) return most;
    const uint32_t count = params_[body_.count_param()];
    if (!values_.empty() && values_[count] && values_[count]->size)
      return std::clamp<int64_t>(values_[count]->size->wait().number, 0, most);
    int32_t number = 0;
    outer_[count]->copy_out(&number, sizeof number);
    return std::clamp<int64_t>(number, 0, most);
  }

  // Binds the buffers that all iterations share.
  void bind_fixed() {
    const auto& planned = plan_.plan.buffers;
    const uint32_t first = body_.states + stepped();
    for (size_t b = 0; b < planned.size(); ++b) {
      if (planned[b].kind == schedule::PlannedBuffer::Kind::Temporary)
        buffers_[b] = plan_.temporaries->buffers[b].get();
      if (planned[b].kind == schedule::PlannedBuffer::Kind::Constant)
        buffers_[b] = plan_.constants[planned[b].number]->buffer.get();
      if (planned[b].kind != schedule::PlannedBuffer::Kind::Input) continue;
      const uint32_t number = body_.number_of[planned[b].number];
      if (number >= first && number < first + body_.captured) buffers_[b] = &source(number);
    }
  }

  // Iterations alternate between a sum's two buffers so that the last one writes the output.
  runtime::Buffer& sum(uint32_t number, int64_t steps_to_come) const {
    const uint32_t at = body_.states + body_.outputs + number;
    return param(steps_to_come % 2 == 0 ? at : at + body_.sums);
  }

  void clear_sums() {
    constexpr std::array<std::byte, 1> kZero{};
    for (uint32_t i = 0; i < body_.sums; ++i)
      for (const int64_t steps : {0, 1})
        if (sum(i, steps).size_bytes() > 0) sum(i, steps).fill(kZero);
  }

  void run_step(int64_t step, int64_t length) {
    slices_.clear();
    const auto place = [&](int64_t at) { return body_.is_reversed ? length - 1 - at : at; };
    for (size_t b = 0; b < buffers_.size(); ++b)
      if (plan_.plan.buffers[b].kind == schedule::PlannedBuffer::Kind::Input)
        bind_input(b, body_.number_of[plan_.plan.buffers[b].number], step, length, place);
    bind_outputs(place(step), length - 1 - step);
    give_steps(plan_, buffers_, {}, log_);
    give_outputs();
  }

  template <class Place>
  void bind_input(size_t buffer, uint32_t number, int64_t step, int64_t length,
                  const Place& place) {
    if (number < body_.states) {
      if (step == 0)
        buffers_[buffer] = &source(number);
      else
        buffers_[buffer] = fetched(param(number), body_.arrays[number], place(step - 1));
      return;
    }
    number -= body_.states;
    if (number < stepped()) {
      buffers_[buffer] = fetched(source(body_.states + number), body_.stepped[number], place(step));
      return;
    }
    number -= stepped();
    if (number >= body_.captured) buffers_[buffer] = &sum(number - body_.captured, length - step);
  }

  runtime::Buffer* fetched(runtime::Buffer& array, const LoopBody::Array& form, int64_t place) {
    const Slice slice(array, form, place);
    slice.fetch();
    kept_.push_back(slice.part);
    return slice.part.get();
  }

  // A root that is itself an input or another root is copied after the iteration.
  void bind_outputs(int64_t place, int64_t steps_to_come) {
    targets_.clear();
    const auto& roots = plan_.plan.root_buffers;
    for (uint32_t i = 0; i < roots.size(); ++i) {
      if (i < body_.states + body_.outputs) {
        slices_.emplace_back(param(i), body_.arrays[i], place);
        targets_.push_back(slices_.back().part.get());
      } else {
        targets_.push_back(&sum(i - body_.states - body_.outputs, steps_to_come));
      }
      if (is_written(i)) buffers_[roots[i]] = targets_[i];
    }
  }

  bool is_written(uint32_t root) const {
    const auto& roots = plan_.plan.root_buffers;
    return plan_.plan.buffers[roots[root]].kind == schedule::PlannedBuffer::Kind::Output &&
           std::find(roots.begin(), roots.begin() + root, roots[root]) == roots.begin() + root;
  }

  void give_outputs() {
    for (uint32_t i = 0; i < targets_.size(); ++i)
      if (!is_written(i) && targets_[i]->size_bytes() > 0)
        log_.copy(*targets_[i], *buffers_[plan_.plan.root_buffers[i]]);
    for (const Slice& slice : slices_) slice.give_back();
    kept_.clear();
  }

  const LoopBody& body_;
  ReadyPlan& plan_;
  const std::span<const uint32_t> params_;
  const std::span<runtime::Buffer* const> outer_;
  const std::span<const ValuePtr> values_;
  LaunchLog& log_;
  std::vector<runtime::Buffer*> buffers_;  // by plan buffer of the body
  std::vector<BufferPtr> kept_;            // inputs of this iteration
  std::vector<Slice> slices_;              // outputs of this iteration
  std::vector<runtime::Buffer*> targets_;  // by root
};

}  // namespace

void run_loop(const ReadyLoop& loop, std::span<const uint32_t> params,
              std::span<runtime::Buffer* const> buffers, std::span<const ValuePtr> values,
              LaunchLog& log) {
  LoopRun(loop, params, buffers, values, log).run();
}

}  // namespace plugrad::engine
