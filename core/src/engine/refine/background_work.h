// Work for the session's background thread.
#pragma once

namespace plugrad::engine {

class CandidateThread;

/// A request to the thread (candidate_thread.h).
class BackgroundWork {
 public:
  BackgroundWork() = default;
  virtual ~BackgroundWork() = default;
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  /// Whether it is done before work that is not.
  virtual bool is_urgent() const { return false; }
  /// Called on the thread. Only std::bad_alloc leaves it.
  virtual void make(CandidateThread& thread) = 0;
  /// Called after make(), or instead of it if the thread cannot run.
  virtual void end() = 0;
};

}  // namespace plugrad::engine
