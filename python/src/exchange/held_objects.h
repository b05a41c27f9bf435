// Python objects whose memory tensors use.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace plugrad::python {

namespace nb = nanobind;

/// Keeps `object` alive. The last owner may be on any thread, with or without the interpreter's
/// lock and plugrad's own: the object is released later, on a thread that runs Python code. Objects
/// held at interpreter exit are never released.
std::shared_ptr<const void> hold(nb::object object);
/// Releases what is no longer held; needs the interpreter's lock.
void release_objects();
void bind_held_objects();

}  // namespace plugrad::python
