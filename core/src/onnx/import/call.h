// One node with its inputs and attributes, the argument of an operator's function.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/file/messages.h"
#include "onnx/import/constants.h"
#include "onnx/import/value.h"
#include "tensor/sizes/size_arithmetic.h"

namespace plugrad::onnx {

/// Thrown where a model needs elements on the host that a jitted call does not have there.
struct NeedsHostValues {
  /// Which input of the node decides a shape or a branch; none if the node computes with elements.
  std::optional<size_t> input = {};
  /// Of the model's main graph; set on the way.
  std::optional<size_t> node = {};
  /// The node computes with the elements, whatever they are.
  bool is_data = false;
};

/// Thrown where one recording cannot serve all sizes of an axis.
struct NeedsExactSizes {
  std::string reason;
};

inline constexpr std::int64_t kMostSizes = 64;  // elements of a tensor that may have sizes

/// The elements of a tensor: known, or read from the device. Errors: NeedsHostValues in a jitted call.
tensor::HostValues host_values_of(const Value& tensor, bool is_jitted);

/// As numbers, whatever their dtype is.
std::vector<double> as_numbers(const tensor::HostValues& values);

/// State that the nodes of all graphs of a model share while it is recorded.
struct Recording {
  ModelFiles* files = nullptr;
  bool is_jitted = false;  // elements of tensors cannot be read
  /// Those of the inputs' axes; null if no axis has a variable size.
  tensor::SizeArithmetic* sizes = nullptr;
  /// The caller gave no bounds: operators that would take the time of the largest size need exact
  /// sizes.
  bool sizes_are_inferred = false;
  /// Runs a node's subgraph, which sees the names around the node.
  std::function<std::vector<Value>(const GraphMessage&, const std::vector<Value>&)> run;
  /// The value of a name of the node's graph, computed by earlier nodes from these values of names.
  std::function<Value(const std::map<std::string_view, Value>&, std::string_view)> recompute;
};

/// Errors: User if the host would compute more elements than it does for one node.
void require_host_elements(const Shape& shape);

/// x, computed now if the host knows what it is made of, so that no kernel does.
Tensor on_host(const Tensor& x);

class Call {
 public:
  /// `folds`: all inputs are known, and lie on the host.
  Call(const NodeMessage& node, std::int64_t opset, std::vector<Value> inputs, bool folds,
       Recording& recording);

  const NodeMessage& node() const { return node_; }
  /// The version of the operator's domain that the model imports.
  std::int64_t opset() const { return opset_; }
  /// Such as "Conv node \"conv1\"", for errors.
  std::string name() const;
  size_t output_count() const { return node_.outputs.size(); }
  /// Whether the model uses this output.
  bool wants(size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }

  // Inputs.
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input].is_given(); }
  /// Errors: User if the input is left out.
  const Value& value(size_t input) const;
  /// Errors: User if the input is left out or no tensor.
  Tensor operator[](size_t input) const;
  /// The same, from which the host can compute others (on_host()) if it knows the elements.
  Tensor parameter(size_t input) const;
  /// Undefined if the input is left out.
  Tensor optional(size_t input) const { return has(input) ? (*this)[input] : Tensor(); }
  /// Errors: User if the input is left out or no tensor of strings.
  const Strings& strings(size_t input) const;
  /// Errors: User if the input is left out or no sequence.
  const std::vector<Value>& sequence(size_t input) const;
  /// The elements of a tensor that shapes depend on: known, or read from the device. Errors:
  /// NeedsHostValues in a jitted call.
  tensor::HostValues host(size_t input) const { return read(input, false); }
  /// The same of data, which the node computes with on the host.
  tensor::HostValues data(size_t input) const { return read(input, true); }
  std::vector<std::int64_t> integers(size_t input) const { return integers_of(host(input)); }
  std::int64_t integer_input(size_t input) const;
  std::vector<double> numbers_input(size_t input) const { return as_numbers(host(input)); }

  /// Errors: User, with both shapes, if the tensor has another shape; `role` is its name in ONNX.
  void require_shape(size_t input, std::string_view role, const Shape& wanted) const;
  /// Errors: User if the host knows an element of the input, of integers, that is not in [least, most].
  void require_within(size_t input, std::string_view role, std::int64_t least,
                      std::int64_t most) const;
  /// Errors: User if broadcasting the input would enlarge x.
  void require_broadcasts_to(const Tensor& x, size_t input, std::string_view role) const;

  /// The axis counted from the first one. Errors: User if a tensor of `rank` axes does not have it.
  std::int64_t axis(std::int64_t axis, std::int64_t rank) const;
  /// The axes counted from the first one. Errors: User, as axis(), and for one that is named twice.
  std::vector<std::int64_t> axes(std::vector<std::int64_t> axes, std::int64_t rank) const;
  /// That of the attribute `axis`.
  std::int64_t axis_of(const Tensor& x, std::int64_t otherwise) const {
    return axis(integer("axis", otherwise), x.ndim());
  }

  // Axes of variable sizes (plugrad/jit.h), whose maximum size Tensor::size() gives.
  bool varies(const Tensor& x, std::int64_t axis) const;
  /// Errors: NeedsExactSizes if the axis (without one, any axis) has a variable size.
  void require_fixed(const Tensor& x, std::optional<std::int64_t> axis = {}) const;
  [[noreturn]] void needs_exact_sizes(std::string_view why) const;
  /// The elements of an input that shapes depend on, as integers() has them, or variable sizes.
  std::vector<tensor::SizeValue> sizes(size_t input) const;
  /// x with this size of the axis. Errors: NeedsExactSizes if it has another one.
  Tensor with_size(const Tensor& x, std::int64_t axis, const tensor::SizeValue& size) const;
  /// x, whose axis has the same size whatever those of other axes are.
  Tensor with_fixed_size(const Tensor& x, std::int64_t axis) const;
  /// x with the sizes of `model`, whose shape it has.
  Tensor with_sizes_of(const Tensor& x, const Tensor& model) const;
  /// The size of an axis of x: a number, or an i64 tensor of shape ().
  Tensor size_of_axis(const Tensor& x, std::int64_t axis) const;

  // Attributes. Errors: User for one of another type.
  const AttributeMessage* attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name, double otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name,
                                     std::vector<std::int64_t> otherwise = {}) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::string_view> texts(std::string_view name) const;
  /// The type that an attribute such as `to` numbers; Undefined if it is left out.
  DataType type(std::string_view name) const { return static_cast<DataType>(integer(name, 0)); }
  /// The dtype of that type.
  std::optional<DType> dtype(std::string_view name) const;
  const GraphMessage& graph(std::string_view name) const;

  Recording& recording() const { return recording_; }
  /// Errors: always User, with the node's name.
  [[noreturn]] void wrong(std::string_view what) const;
  /// Errors: always Unsupported, with the node's name.
  [[noreturn]] void unsupported(std::string_view what) const;

 private:
  tensor::HostValues read(size_t input, bool is_data) const;

  const NodeMessage& node_;
  std::int64_t opset_;
  std::vector<Value> inputs_;
  bool folds_;
  Recording& recording_;
};

using Operator = std::vector<Value> (*)(Call& call);

inline constexpr bool kVariableSizes = true;

struct OperatorRow {
  std::string_view name;
  Operator function;
  /// The function gives the right result for every size of axes of variable sizes (plugrad/jit.h), or
  /// throws. One that reads Tensor::size() or shape(), which have the maximum sizes, does not.
  bool takes_variable_sizes = false;
  std::string_view domain = "";
  bool is_random = false;  // gives other values at each call
};

/// By domain, "" for that of ONNX itself, and name.
using OperatorRows = std::map<std::pair<std::string_view, std::string_view>, const OperatorRow*>;
const OperatorRows& all_operators();
/// Null if there is no such operator.
const OperatorRow* find_operator(std::string_view domain, std::string_view name);

}  // namespace plugrad::onnx
