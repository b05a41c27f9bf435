// A jitted function that runs in each call, in parts between the values that the host reads. Each
// part runs the plan of the last call that computed the same; what depends only on tensors that stay
// the same from call to call is computed once (jit/constants.h).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/recording/cut_call.h"
#include "jit/constants.h"
#include "jit/trace.h"

namespace plugrad::jit_detail {

/// Thread-safe; calls may run at once.
class JitCuts {
 public:
  /// Runs the function and computes its results. Errors: those of the function; what it assigned
  /// before stays.
  JitOutput call(engine::Session& session, std::span<const engine::StatePtr> arguments,
                 const std::function<JitOutput()>& function);
  /// The number of parts that a later call runs as an earlier one did.
  size_t recordings(engine::Session& session) const;
  std::string explain(engine::Session& session) const;

 private:
  class Call;
  /// A computation, with what it computes once.
  struct Part {
    Hash128 graph;
    uint64_t first_call, last_use;
    std::vector<uint32_t> constants{};  // inputs that stay the same
    std::vector<std::weak_ptr<engine::Value>> of{};
    int changes = 0;  // of them in a row
    std::shared_ptr<engine::ReadyPlan> ready{};
    std::shared_ptr<JitConstants> prepared{};
    bool is_repeated = false;

    bool is_of(std::span<const engine::ValuePtr> inputs) const;
    void take(std::span<const engine::ValuePtr> inputs);
    void prepare(engine::SessionState& session);
  };
  struct Seen {
    std::weak_ptr<engine::Value> value;
    uint64_t call;  // the first one that read it
  };
  Part& part_of(const Hash128& graph, uint64_t call);

  // All under the session's mutex.
  std::list<Part> parts_;
  std::unordered_map<const engine::Value*, Seen> seen_;
  uint64_t calls_ = 0, uses_ = 0;
  uint64_t cuts_of_last_ = 0, least_cuts_ = UINT64_MAX, most_cuts_ = 0;
  std::map<uint32_t, uint64_t> cuts_at_;  // by place (base/binding.h)
};

}  // namespace plugrad::jit_detail
