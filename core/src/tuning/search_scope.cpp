#include <cmath>
#include <exception>

#include "base/check.h"
#include "base/settings.h"
#include "plugrad/search.h"
#include "tuning/schedule_overrides.h"

namespace plugrad {

struct SearchScope::State {
  SettingScope scope;
};

SearchScope::SearchScope(int beam, double seconds) {
  require(beam >= 0 && beam <= 1024,
          "[search] a beam of {}: it takes a whole number from 0 to 1024", beam);
  require(seconds > 0 && std::isfinite(seconds),
          "[search] {} seconds: a search takes a time above 0; a beam of 0 switches it off",
          seconds);
  const auto change = [&](Settings& s) {
    s.beam = beam;
    s.beam_seconds = seconds;
  };
  state_.reset(new State{SettingScope(change)});
}

SearchScope::~SearchScope() = default;

struct OptimisationScope::State {
  std::string lists;
  SettingScope scope;
  int exceptions = std::uncaught_exceptions();
};

OptimisationScope::OptimisationScope(std::string lists) {
  tuning::begin_overrides(lists);
  const auto change = [&](Settings& s) { s.optimisations = lists; };
  state_.reset(new State{lists, SettingScope(change)});
}

// A scope left by an exception is not checked for unused overrides.
OptimisationScope::~OptimisationScope() {
  const bool is_done = std::uncaught_exceptions() <= state_->exceptions;
  try {
    tuning::end_overrides(state_->lists, is_done);
  } catch (...) {  // a warning must not terminate the program
  }
}

}  // namespace plugrad
