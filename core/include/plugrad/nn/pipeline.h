/// The layers of a Sequential in stages on several devices, of one process or of many.
///   nn::Pipeline net(nn::Sequential(block1, block2, block3, head), {{0, "CPU"}, {2, "CUDA"}}, 8);
///   optim::Adam opt(nn::parameters(net));
///   Tensor loss = net.loss(x, y, [](const Tensor& a, const Tensor& b) { return mse_loss(a, b); });
///   loss.backward();
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plugrad/nn/sequential.h"

namespace plugrad::nn {

/// A stage has the layers from `first_layer` to that of the next stage, and its tensors on `place`:
/// the name of a device, or of a mesh (Mesh::device()), of which each device has all of them.
struct PipelineStage {
  int64_t first_layer = 0;
  std::string place;
};

/// Stages, each on a device or a mesh of its own. In a program of many processes each stage is on a
/// mesh, such as Mesh({{"data", 1}}, {}, {rank}) of one process; all processes run the same program,
/// and results of a stage are sent to the processes of the next one. A batch is cut into micro-batches
/// along its first axis: while one stage computes a micro-batch, the stage before it can compute the
/// next one, so devices that run side by side are idle for (stages - 1) / (micro_batches + stages -
/// 1) of the time. All micro-batches go forwards before the first goes backwards, and gradients are
/// added over them. State is named as that of the Sequential. Huang et al. 2019 (GPipe).
class PLUGRAD_API Pipeline {
 public:
  /// Moves the layers to their places. Errors: User unless the stages begin at layer 0 and ascend
  /// within the layers, micro_batches >= 1, and the places are known.
  Pipeline(Sequential layers, std::vector<PipelineStage> stages, int64_t micro_batches);
  /// The result for a whole batch, on the last stage's place.
  Tensor operator()(const Tensor& x) const;

  using Loss = std::function<Tensor(const Tensor& made, const Tensor& wanted)>;
  /// The loss of a batch from its micro-batches; `loss` returns the mean over the samples that it
  /// is given, so that the result is that of the whole batch. Layers that mix samples (BatchNorm)
  /// see a micro-batch at a time. Errors: User unless x and y have the same number of samples, one
  /// or more for each micro-batch.
  Tensor loss(const Tensor& x, const Tensor& y, const Loss& loss) const;

  void visit_fields(StateVisitor& visitor) const { layers_.visit_fields(visitor); }

 private:
  Tensor run_stage(size_t stage, const Tensor& x) const;
  Sequential layers_;
  std::vector<PipelineStage> stages_;
  int64_t micro_batches_;
};

}  // namespace plugrad::nn
