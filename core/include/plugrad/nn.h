/// Layers, and what every module has: parameters, a state dictionary, files.
///
/// A module is any struct that names its fields once:
///   struct Net {
///     nn::Conv2d conv{1, 32, 5};
///     nn::Linear out{576, 10};
///     PLUGRAD_FIELDS(conv, out)
///     Tensor operator()(const Tensor& x) { … }
///   };
/// Fields are tensors, modules, or vectors of modules; the state dictionary calls them "conv.weight", "blocks.0.bias".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugrad/data.h"
#include "plugrad/functional.h"
#include "plugrad/loss.h"
#include "plugrad/progress.h"
#include "plugrad/tensor.h"

namespace plugrad::nn {

/// Tensors by name, in the order in which the fields are named.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

/// Receives a module's fields; PLUGRAD_FIELDS writes the calls.
class PLUGRAD_API StateVisitor {
 public:
  explicit StateVisitor(StateDict& out) : out_(out) {}

  template <class... Fields>
  void visit([[maybe_unused]] std::string_view comma_separated_names, const Fields&... fields) {
    (field(next_name(comma_separated_names), fields), ...);
  }

 private:
  void field(std::string_view name, const Tensor& tensor);
  template <class Module>
  void field(std::string_view name, const Module& module) {
    enter(name);
    module.visit_fields(*this);
    leave(name);
  }
  template <class Module>
  void field(std::string_view name, const std::vector<Module>& modules) {
    enter(name);
    for (size_t i = 0; i < modules.size(); ++i) field(std::to_string(i), modules[i]);
    leave(name);
  }
  static std::string_view next_name(std::string_view& names);
  void enter(std::string_view name);
  void leave(std::string_view name);

  StateDict& out_;
  std::string prefix_;
};

/// Names the fields of a module that hold its state, once; nothing else needs to be registered.
#define PLUGRAD_FIELDS(...)                                              \
  void visit_fields(::plugrad::nn::StateVisitor& visitor) const {        \
    visitor.visit(#__VA_ARGS__ __VA_OPT__(, ) __VA_ARGS__);              \
  }

/// Every tensor of the module, trained or not, by name. The handles denote the module's own tensors.
template <class Module>
StateDict state_dict(const Module& module) {
  StateDict state;
  StateVisitor visitor(state);
  module.visit_fields(visitor);
  return state;
}

/// Those of `state` that require gradients.
PLUGRAD_API std::vector<Tensor> trained(const StateDict& state);
template <class Module>
std::vector<Tensor> parameters(const Module& module) {
  return trained(state_dict(module));
}

/// Gives the tensors of `target` the values that `source` has under their names, cast where both are floats.
/// Errors: User, listing every name that only one of them has and every shape that differs; then nothing changed.
PLUGRAD_API void load_state(const StateDict& target, const StateDict& source);
template <class Module>
void load_state_dict(const Module& module, const StateDict& source) {
  load_state(state_dict(module), source);
}

/// Writes a safetensors file, which the `safetensors` package reads too; the file appears whole or not at all.
/// Errors: User, naming the file and the reason.
PLUGRAD_API void save_state(const StateDict& state, const std::string& path);
/// The tensors of a safetensors file; it stays mapped until their values are on the device.
/// Errors: User, naming the file, the tensor and what is wrong with it; nothing is loaded then.
PLUGRAD_API StateDict read_state(const std::string& path, std::string_view device = {});
template <class Module>
void save(const Module& module, const std::string& path) {
  save_state(state_dict(module), path);
}
template <class Module>
void load(const Module& module, const std::string& path) {
  load_state(state_dict(module), read_state(path));
}

/// Whether layers that behave differently in training (BatchNorm, Dropout) do so now, on this thread: true unless
/// a scope says otherwise.
PLUGRAD_API bool is_training();
/// Sets is_training() until the end of the scope.
class PLUGRAD_API TrainingScope {
 public:
  explicit TrainingScope(bool training);
  ~TrainingScope();
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;

 private:
  bool outer_;
};

/// x times weight, transposed, plus bias. Shape: (…, in) -> (…, out). Weight (out, in) and bias (out) begin uniform in
/// ±1/sqrt(in).
struct PLUGRAD_API Linear {
  Linear(int64_t in, int64_t out, bool with_bias = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  PLUGRAD_FIELDS(weight, bias)
};

/// Cross-correlation of images. Shape: (n, in, h, w) -> (n, out, …), see conv2d. Weight (out, in / groups, kh, kw) and
/// bias (out) begin uniform in ±1/sqrt(in / groups * kh * kw).
struct PLUGRAD_API Conv2d {
  Conv2d(int64_t in, int64_t out, Pair kernel, ConvOptions options = {}, bool with_bias = true);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  ConvOptions options;
  PLUGRAD_FIELDS(weight, bias)
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the batch in the running statistics
  bool affine = true;     ///< with a trained scale and shift
};
/// (x - mean) / sqrt(variance + eps) * weight + bias for each channel (axis 1). Training takes mean and variance of the
/// batch and follows them in running_mean and running_var (unbiased); otherwise those are used. Ioffe and Szegedy 2015.
struct PLUGRAD_API BatchNorm {
  explicit BatchNorm(int64_t channels, BatchNormOptions options = {});
  Tensor operator()(const Tensor& x);
  Tensor weight, bias, running_mean, running_var;
  BatchNormOptions options;
  PLUGRAD_FIELDS(weight, bias, running_mean, running_var)
};

/// Normalises over the last axes, which have the sizes `shape`; trained scale and shift. Ba et al. 2016.
struct PLUGRAD_API LayerNorm {
  explicit LayerNorm(const Shape& shape, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;
  double eps;
  PLUGRAD_FIELDS(weight, bias)
};

/// Zeroes each element with probability p and divides the others by 1 - p, in training; else x. Srivastava et al. 2014.
struct PLUGRAD_API Dropout {
  explicit Dropout(double p = 0.5);
  Tensor operator()(const Tensor& x) const;
  double p;
  PLUGRAD_FIELDS()
};

/// Rows of a table by number. Shape: places (…) of integers -> (…, width). The table begins standard normal.
struct PLUGRAD_API Embedding {
  Embedding(int64_t count, int64_t width);
  Tensor operator()(const Tensor& places) const;
  Tensor weight;
  PLUGRAD_FIELDS(weight)
};

/// The part of `set` whose label is the largest output of `net`, in [0, 1]; not training.
template <class Net>
double accuracy(Net& net, const data::Dataset& set, int64_t batch_size = 500) {
  TrainingScope evaluation(false);
  int64_t correct = 0;
  for (auto [x, y] : set.batches(batch_size, {.keep_partial = true}))
    correct += (net(x).argmax(-1) == y).sum().template item<int64_t>();
  return static_cast<double>(correct) / static_cast<double>(set.size());
}

}  // namespace plugrad::nn
