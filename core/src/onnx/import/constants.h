// Tensors of a model's file as values.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "onnx/file/messages.h"
#include "onnx/import/value.h"

namespace plugrad::onnx {

/// Where the elements of a model's tensors lie: its own file, and files in its folder that external
/// data names.
class ModelFiles {
 public:
  /// `folder` is empty for a model in memory, which has no external data. `owner` keeps the bytes
  /// that the tensors lie in.
  ModelFiles(std::string folder, std::shared_ptr<const void> owner)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}

  /// Errors: User if the tensor's elements are missing, too few or of a type without a dtype, or lie
  /// outside the model's folder.
  Value constant(const TensorMessage& tensor);
  Value constant(const SparseTensorMessage& tensor);

 private:
  std::span<const std::byte> external(const TensorMessage& tensor,
                                      std::shared_ptr<const void>& owner);

  std::string folder_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

/// The elements of a tensor in memory.
tensor::HostValues values_in_memory(std::span<const std::byte> bytes, Shape shape, DType dtype);

}  // namespace plugrad::onnx
