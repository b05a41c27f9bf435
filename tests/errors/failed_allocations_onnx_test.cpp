// The same for a model from an ONNX file.
#include <optional>
#include <span>

#include "errors/failed_allocations.h"
#include "plugrad/onnx.h"
#include "plugrad/tensor.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad {
namespace {

// y = softmax(gemm(relu(x w), v) + b), with a shape that the model computes.
std::string model_bytes() {
  using namespace onnx;
  return model_of_bytes(
      Message()
          .message(1, node("MatMul", {"x", "w"}, {"a"}))
          .message(1, node("Relu", {"a"}, {"r"}))
          .message(1, node("Gemm", {"r", "v", "b"}, {"g"}))
          .message(1, node("Softmax", {"g"}, {"s"}))
          .message(1, node("Shape", {"x"}, {"n"}))
          .message(1, node("Cast", {"n"}, {"f"}).message(5, attribute("to", int64_t{1})))
          .message(1, node("ReduceSum", {"f"}, {"t"}))
          .message(1, node("Add", {"s", "t"}, {"y"}))
          .text(2, "small")
          .message(5, constant("w", {8, 6}, ramp(48, 0.02f)))
          .message(5, constant("v", {6, 4}, ramp(24, 0.03f)))
          .message(5, constant("b", {4}, ramp(4, 0.1f)))
          .message(11, value("x", {-1, 8}))
          .message(12, value("y", {-1, 4})));
}

TEST_F(FailedAllocations, a_model_is_loaded_and_run) {
  const std::string bytes = model_bytes();
  const Tensor x = Tensor::from(ramp(16, 0.1f), {2, 8});
  std::optional<onnx::Model> model;
  const auto load_and_run = [&] {
    model = onnx::Model::from_bytes(std::as_bytes(std::span(bytes)));
    return (*model)({x})[0].to_vector<float>();
  };
  const Floats expected = load_and_run();
  const uint64_t count = count_of([&] { load_and_run(); });
  for_each_allocation(count, [&](uint64_t n) {
    engine::Session::current().clear_caches();
    model.reset();
    fails_at(n, [&] { load_and_run(); });
    if (model) {  // loaded, and not run
      ASSERT_EQ((*model)({x})[0].to_vector<float>(), expected);
    }
    ASSERT_EQ(load_and_run(), expected);
  });
}

}  // namespace
}  // namespace plugrad
