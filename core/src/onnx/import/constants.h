// Tensors of a model's file as values.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

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

  /// Reads the constants of the graph and of its subgraphs, which constant() then returns. A
  /// recorded call must find its weights made: it takes those that it makes for values that differ
  /// from call to call.
  void read_constants(const GraphMessage& graph);
  /// Of com.microsoft.nchwc (import/blocked_channels.h), whose weights constant() gives in order.
  std::int64_t channels_per_block() const { return channels_per_block_; }

  /// Errors: User if the tensor's elements are missing, too few or of a type without a dtype, or
  /// lie outside the model's folder.
  Value constant(const TensorMessage& tensor);
  Value constant(const SparseTensorMessage& tensor);

 private:
  void add_constants(const GraphMessage& graph);
  Value read(const TensorMessage& tensor);
  Value read(const SparseTensorMessage& tensor);
  std::span<const std::byte> external(const TensorMessage& tensor,
                                      std::shared_ptr<const void>& owner);

  std::string folder_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
  std::unordered_map<const void*, Value> constants_;  // by message
  std::int64_t channels_per_block_ = 1;
};

/// The elements of a tensor in memory.
tensor::HostValues values_in_memory(std::span<const std::byte> bytes, Shape shape, DType dtype);

}  // namespace plugrad::onnx
