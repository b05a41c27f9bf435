// Runs the layers of a Sequential in stages, a micro-batch at a time.
#include "plugrad/nn/pipeline.h"

#include <charconv>

#include "base/check.h"

namespace plugrad::nn {
namespace {

/// The layer to which a tensor of a Sequential belongs: 12 of "12.weight".
size_t layer_of(const std::string& name) {
  size_t layer = 0;
  std::from_chars(name.data(), name.data() + name.size(), layer);
  return layer;
}

}  // namespace

Pipeline::Pipeline(Sequential layers, std::vector<PipelineStage> stages, int64_t micro_batches)
    : layers_(std::move(layers)), stages_(std::move(stages)), micro_batches_(micro_batches) {
  require(micro_batches >= 1, "[Pipeline] {} micro-batches; give 1 or more", micro_batches);
  require(!stages_.empty() && stages_[0].first_layer == 0,
          "[Pipeline] the first stage begins at layer 0");
  const auto count = static_cast<int64_t>(layers_.size());
  std::vector<StateDict> states(stages_.size());
  for (size_t i = 0; i < stages_.size(); ++i) {
    const int64_t begin = stages_[i].first_layer;
    const int64_t end = i + 1 < stages_.size() ? stages_[i + 1].first_layer : count;
    require(begin < end && end <= count,
            "[Pipeline] stage {} has the layers [{}, {}) of {}; each stage has one or more", i,
            begin, end, count);
    for (const auto& entry : state_dict(layers_)) {
      const auto layer = static_cast<int64_t>(layer_of(entry.first));
      if (begin <= layer && layer < end) states[i].push_back(entry);
    }
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i].place = Tensor::zeros({1}).to(stages_[i].place).device();  // throws if unknown
    move_state(states[i], stages_[i].place);
  }
}

Tensor Pipeline::run_stage(size_t stage, const Tensor& x) const {
  const auto begin = static_cast<size_t>(stages_[stage].first_layer);
  const size_t end = stage + 1 < stages_.size()
                         ? static_cast<size_t>(stages_[stage + 1].first_layer)
                         : layers_.size();
  return layers_.run(x.to(stages_[stage].place), begin, end);
}

Tensor Pipeline::operator()(const Tensor& x) const {
  Tensor y = x;
  for (size_t stage = 0; stage < stages_.size(); ++stage) y = run_stage(stage, y);
  return y;
}

Tensor Pipeline::loss(const Tensor& x, const Tensor& y, const Loss& loss) const {
  require(x.ndim() >= 1 && y.ndim() >= 1 && x.size(0) == y.size(0) && x.size(0) >= micro_batches_,
          "[Pipeline] x is {} and y is {}; the first axes are equal, and at least {}, the number "
          "of micro-batches",
          to_string(x.shape()), to_string(y.shape()), micro_batches_);
  const int64_t count = x.size(0);
  Tensor total;
  for (int64_t i = 0; i < micro_batches_; ++i) {
    const int64_t begin = count * i / micro_batches_, end = count * (i + 1) / micro_batches_;
    const double share = static_cast<double>(end - begin) / static_cast<double>(count);
    const Slice rows(begin, end);
    const Tensor made = operator()(x.slice(0, rows));
    const Tensor term = loss(made, y.slice(0, rows).to(stages_.back().place)) * share;
    total = total.defined() ? total + term : term;
  }
  return total;
}

}  // namespace plugrad::nn
