// Helpers that count the cost of a jitted function's calls and read its errors.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "plugrad/plugrad.h"

namespace plugrad {

inline std::vector<float> floats(const Tensor& t) {
  return t.to_vector<float>();
}

inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Kernels that `work` launches.
inline uint64_t kernels_of(const std::function<void()>& work) {
  engine::Session& session = engine::Session::current();
  const uint64_t before = session.statistics().kernels_launched;
  work();
  return session.statistics().kernels_launched - before;
}

}  // namespace plugrad
