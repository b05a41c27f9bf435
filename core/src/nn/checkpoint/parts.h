// Which elements of a tensor each process has, and which process saves them.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint_index.h"
#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// The elements that one device has.
struct PlacedBox {
  io::Box box;
  size_t rank = 0;     // of the process
  size_t shard = 0;    // index into Tensor::shards() of that process
  std::string device;  // empty in other processes
};

/// The parts of a tensor on a mesh, by position; of another tensor all of it, in every process.
/// Of a sum whose terms lie on a mesh: the parts of the sum.
std::vector<PlacedBox> placed_boxes(const Tensor& tensor);

/// A part of a tensor to be saved, and its writer.
struct PlannedPart {
  PlacedBox placed;
  std::string key;  // in the file
};
struct PlannedTensor {
  std::string name;
  Tensor tensor;
  Shape shape;
  std::vector<PlannedPart> parts;
};

/// Of the processes that have a part, the one with the fewest bytes so far saves it. Equal in all
/// processes. Errors: User for two tensors of one name.
std::vector<PlannedTensor> plan_save(const StateDict& state);

}  // namespace plugrad::nn
