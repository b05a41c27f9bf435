// The time and the memory of one step for one layout: the plan of one position, its kernels by the
// cost model and its collectives by the links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scale/layout.h"
#include "scale/work.h"
#include "sharding/collectives.h"

namespace plugrad::tools::scale {

/// Bytes on one device at the end of a step, when most is there.
struct Memory {
  uint64_t parameters = 0, state = 0, batch = 0, other = 0;
  uint64_t results = 0;      ///< new values that cannot take the place of old ones
  uint64_t temporaries = 0;  ///< activations and gradients, by the memory planner

  uint64_t total() const { return parameters + state + batch + other + results + temporaries; }
};

/// The collectives of one kind and one number of members.
struct Traffic {
  CollectiveKind kind = CollectiveKind::AllReduce;
  uint64_t members = 0, count = 0;
  double bytes = 0, seconds = 0;
};

struct Estimate {
  uint64_t kernels = 0;
  double matrix_seconds = 0, other_seconds = 0;  ///< of kernels
  double host_seconds = 0;                       ///< of the program between kernels, if measured
  double communication_seconds = 0;
  double exposed_seconds = 0;  ///< communication that the kernels of the plan do not hide
  /// Communication that nothing hides, if collectives ran beside every kernel that does not need
  /// them.
  double exposed_at_best_seconds = 0;
  double flops = 0;
  Memory memory;
  std::vector<Traffic> traffic;

  double compute_seconds() const { return matrix_seconds + other_seconds + host_seconds; }
  double step_seconds() const { return compute_seconds() + exposed_seconds; }
  double best_step_seconds() const { return compute_seconds() + exposed_at_best_seconds; }
};

class Estimator {
 public:
  /// If the trace ran on the machine's device, the times of its kernels correct the model's.
  Estimator(const Program& program, const Machine& machine);

  /// Errors: User, if a rule of propagation does not allow the layout, or the step has a loop.
  Estimate estimate(const sharding::Mesh& mesh, const Layout& layout);
  bool is_corrected() const { return is_corrected_; }

 private:
  schedule::Plan plan_of(const Part& part) const;
  Memory memory_of(const Part& part, const schedule::Plan& plan) const;
  double step_seconds(const schedule::Plan& plan, const schedule::Step& step, bool is_shared,
                      Estimate& to);
  double collective_step(const schedule::Plan& plan, const schedule::Step& step, uint64_t mesh_size,
                         Estimate& to) const;
  void correct();

  const Program& program_;
  const Machine& machine_;
  WorkTable works_;
  Corrections corrections_;
  bool is_corrected_ = false;
};

}  // namespace plugrad::tools::scale
