// The public image sets: their files, checksums and mirrors.
#pragma once

#include "nn/data/data_files.h"
#include "nn/data/idx.h"

namespace plugrad::nn {

/// Training images, training labels, test images, test labels, in the form of MNIST.
struct IdxSet {
  std::string name;
  IdxExpectation expected[4];
  std::vector<std::string> mirrors;
};
IdxSet mnist_set();
IdxSet fashion_mnist_set();

/// The four arrays, in that order. Errors: see load_files.
std::vector<IdxArray> load_idx_set(const IdxSet& set, const DataPlaces& places, const Say& say);

}  // namespace plugrad::nn
