// What a name of a graph stands for while a model is recorded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/file/messages.h"
#include "plugrad/onnx.h"
#include "plugrad/tensor.h"
#include "tensor/host_values.h"

namespace plugrad::onnx {

using plugrad::to_string;  // of shapes, which that of ValueInfo would hide

/// A tensor, a tensor whose elements the host knows, strings, a map, a sequence, or nothing.
class Value {
 public:
  Value() = default;  ///< an input that is left out, or an empty optional
  Value(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT: results of operators
  Value(Strings strings)
      : strings_(std::make_shared<const Strings>(std::move(strings))) {}  // NOLINT
  Value(Map map) : map_(std::make_shared<const Map>(std::move(map))) {}   // NOLINT
  static Value known(tensor::HostValues values);
  /// A tensor of the model's file that is also known.
  static Value known(tensor::HostValues values, Tensor tensor);
  static Value sequence(std::vector<Value> elements);

  bool is_given() const { return tensor_.defined() || known_ || strings_ || map_ || sequence_; }
  bool is_tensor() const { return tensor_.defined() || known_; }

  /// The tensor; made of the known elements at the first call, for all copies of the value.
  const Tensor& tensor() const;
  /// A new tensor of the known elements, whose bytes stay on the host.
  Tensor host_tensor() const;
  /// Null if the host does not know the elements.
  const tensor::HostValues* known() const { return known_ ? &known_->values : nullptr; }
  const Strings* strings() const { return strings_.get(); }
  const Map* map() const { return map_.get(); }
  const std::vector<Value>* elements() const { return sequence_.get(); }

  /// The type of a tensor's elements, or of those of a sequence, if it is an emulated one
  /// (import/emulated.h); Undefined otherwise.
  DataType emulated() const;
  /// The same tensor or sequence, whose elements are of this type if it is an emulated one.
  Value as(DataType type) const;

 private:
  struct Known {
    tensor::HostValues values;
    Tensor tensor;  // undefined until it is asked for
  };
  Tensor tensor_;
  std::shared_ptr<Known> known_;
  std::shared_ptr<const Strings> strings_;
  std::shared_ptr<const Map> map_;
  std::shared_ptr<const std::vector<Value>> sequence_;
  DataType emulated_ = DataType::Undefined;
};

/// The dtype of tensors with such elements; none if there is none. Emulated types have those of
/// import/emulated.h.
std::optional<DType> dtype_of(DataType type);

/// Known integers as numbers. Errors: User if the values are no integers.
std::vector<std::int64_t> integers_of(const tensor::HostValues& values);

}  // namespace plugrad::onnx
