// DLPack 1.x: arrays of other libraries, and tensors for them.
// Source: https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h
#pragma once

#include "exchange/host_array.h"

namespace plugrad::python {

/// The array of an object with __dlpack__ and __dlpack_device__. Of memory that only a device can
/// read, its library makes a copy on the host. Errors: BufferError if it does not.
HostArray array_of_dlpack(nb::handle object, Copying copying);
/// The array of a capsule, which is used up. Errors: BufferError for a used or damaged capsule, a
/// major version other than 1, and memory that the host cannot read.
HostArray array_of_capsule(nb::handle capsule);

void bind_dlpack(nb::class_<Tensor>& tensor);

}  // namespace plugrad::python
