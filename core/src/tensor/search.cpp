#include "plugrad/search.h"

#include <cmath>

#include "base/check.h"
#include "base/settings.h"

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

}  // namespace plugrad
