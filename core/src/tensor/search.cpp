#include "plugrad/search.h"

#include <cmath>

#include "base/check.h"
#include "base/settings.h"
#include "engine/given_lists.h"

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
  SettingScope scope;
};

OptimisationScope::OptimisationScope(std::string lists) {
  engine::check_given_lists(lists);
  const auto change = [&](Settings& s) { s.optimisations = std::move(lists); };
  state_.reset(new State{SettingScope(change)});
}

OptimisationScope::~OptimisationScope() = default;

}  // namespace plugrad
