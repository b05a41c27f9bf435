/// Models from ONNX files: https://onnx.ai. See docs/onnx.md. Link libplugrad_onnx.so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plugrad/nn/state.h"
#include "plugrad/tensor.h"

namespace plugrad::onnx {

/// The size of an axis as a model declares it.
struct Dimension {
  std::optional<std::int64_t> size;  ///< none: it differs from call to call
  std::string name;                  ///< of a size that several axes share; may be empty
};

/// An input or output as a model declares it.
struct ValueInfo {
  std::string name;
  std::string type;            ///< such as "float", "string" or "optional sequence of int64"
  std::optional<DType> dtype;  ///< that of the tensor; none for what is no tensor of numbers
  std::optional<std::vector<Dimension>> shape;  ///< none: any
};

/// "name: float (batch, 3, 224, 224)"; "?" for a size that is not known.
PLUGRAD_API std::string to_string(const ValueInfo& value);

/// Strings in row-major order.
struct Strings {
  Shape shape;
  std::vector<std::string> elements;
};

/// Numbers by integer or by name, such as the probability of each label.
struct Map {
  std::variant<std::map<std::int64_t, float>, std::map<std::string, float>> entries;
};

struct Data;
struct Sequence {
  std::vector<Data> elements;
};

/// An input or output of a model: nothing (an empty optional), a tensor, strings, a map or a
/// sequence. Maps are outputs only.
struct Data {
  Data() = default;
  Data(Tensor tensor) : value(std::move(tensor)) {}        // NOLINT: a tensor is data
  Data(Strings strings) : value(std::move(strings)) {}     // NOLINT: strings are data
  Data(Map map) : value(std::move(map)) {}                 // NOLINT: a map is data
  Data(Sequence sequence) : value(std::move(sequence)) {}  // NOLINT: a sequence is data

  std::variant<std::monostate, Tensor, Strings, Map, Sequence> value;
  /// The ONNX type of a tensor's elements where its dtype is wider: "int4", "uint4", "int2" and
  /// "uint2" in i8 and u8; "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
  /// "float4e2m1" and "float8e8m0" in f32. Empty otherwise; inputs may leave it empty.
  std::string type;
};

/// The least and largest values of sizes that a model leaves open, by their names, or as "input.0"
/// by input and axis.
using SizeBounds = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

/// A network from an ONNX file. Copies share it. Calls from several threads take turns.
class PLUGRAD_API Model {
 public:
  /// Reads a file of IR version 3 to 14 into memory; external data is mapped, and must not change
  /// while the model is used. Runs on `device` (default: the default device). Errors: User for a
  /// file that is no ONNX model, Unsupported for operators that plugrad does not have, all of them
  /// in one message.
  ///
  /// One recording serves all sizes within `bounds`. Errors of a call: User for other sizes,
  /// Unsupported, with the node, if the model needs a recording for each.
  static Model load(const std::string& path, std::string_view device = {},
                    const SizeBounds& bounds = {});
  /// The same from a file's bytes, which are copied. Such a model has no external data.
  static Model from_bytes(std::span<const std::byte> file, std::string_view device = {},
                          const SizeBounds& bounds = {});

  const std::vector<ValueInfo>& inputs() const;  ///< those that a call must give
  /// Inputs with a value in the file, which a call may replace: behind inputs(), or by name.
  const std::vector<ValueInfo>& optional_inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  /// Texts that the exporter added by key, such as the names of classes. Of two with the same key,
  /// the later one is kept.
  std::map<std::string, std::string> metadata() const;

  /// Runs the model: recorded at the first call with these dtypes and shapes, replayed at the next
  /// ones; after a few shapes one recording serves many (docs/onnx.md). Tensors on another device
  /// are copied; optional inputs may be undefined. Errors: User if number, dtypes or shapes differ
  /// from inputs() and optional_inputs().
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
  /// The same: `model({image, mask})`.
  std::vector<Tensor> operator()(std::initializer_list<Tensor> inputs) const {
    return (*this)(std::vector(inputs));
  }
  /// The same by name.
  std::map<std::string, Tensor> operator()(const std::map<std::string, Tensor>& inputs) const;
  /// The same for models with other inputs and outputs than tensors, whose calls are recorded each
  /// time. Errors: User if number, kinds, dtypes or shapes differ from inputs().
  std::vector<Data> run(const std::vector<Data>& inputs) const;

  /// Text for people: how many calls were replayed, for each of the last 256 that were not which
  /// input, size or computed element differed, the nodes at which the graph is cut, and which sizes
  /// vary in one recording, or why they cannot.
  std::string explain() const;

 private:
  struct State;
  explicit Model(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct SaveOptions {
  std::vector<std::string> input_names;   ///< default: "input", or "input_0", "input_1", …
  std::vector<std::string> output_names;  ///< default: "output", or "output_0", …
  nn::StateDict parameters;    ///< names of tensors that the function reads, as of a module
  bool external_data = false;  ///< elements of large tensors in `path`.data; always beyond 2 GB
};

/// Writes a function of tensors as an ONNX file (opset 21, IR version 10), for the shapes and dtypes
/// of `inputs`, whose elements do not matter. The function is called once, in evaluation mode. Other
/// tensors that it reads become initialisers. Errors: User for a file that cannot be written, Unsupported, with all
/// of it, for what ONNX does not have: kernels of the program, gradients of loops,
/// variable sizes, random numbers, assignments to tensors outside the function.
PLUGRAD_API void save(const TensorFunction& function, const std::vector<Tensor>& inputs,
                      const std::string& path, const SaveOptions& options = {});

}  // namespace plugrad::onnx
