#include "clang/crash_guard.h"

#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>

#include <memory>
#include <mutex>

namespace plugrad::clang_component {
namespace {

// LLVM calls this handler before it ends the process.
void on_fatal_error(void*, const char*, bool) {
  if (llvm::CrashRecoveryContext* context = llvm::CrashRecoveryContext::GetCurrent())
    context->HandleExit(1);
}

// LLVM's signal handlers are process-wide and therefore installed only during a compilation.
class RecoveryScope {
 public:
  RecoveryScope() {
    const std::lock_guard lock(mutex_);
    if (users_++ > 0) return;
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(on_fatal_error);
  }
  ~RecoveryScope() {
    const std::lock_guard lock(mutex_);
    if (--users_ > 0) return;
    llvm::remove_fatal_error_handler();
    llvm::CrashRecoveryContext::Disable();
  }

 private:
  static inline std::mutex mutex_;
  static inline int users_ = 0;
};

}  // namespace

bool run_guarded(const std::function<void()>& body) {
  const RecoveryScope scope;
  auto context = std::make_unique<llvm::CrashRecoveryContext>();
  if (context->RunSafely([&] { body(); })) return true;
  // Leaked on purpose: its destructor would clean up objects on the discarded stack.
  static_cast<void>(context.release());
  return false;
}

}  // namespace plugrad::clang_component
