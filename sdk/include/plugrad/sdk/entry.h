// SPDX-License-Identifier: Apache-2.0
// Functions that every plugin's entry needs: hello, query_interface, counters.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

#include "plugrad/plugin_api/queue.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {

// The lowest host minor version that the SDK needs. A plugin that needs a newer host passes its
// own.
inline constexpr uint32_t kLowestHostMinor = 0;

// Fills in the answer. Throws StatusError (NEED_NEWER_HOST) if the host is older than
// `lowest_host_minor`.
void answer_hello(pgr_hello* hello, uint32_t lowest_host_minor, std::string_view plugin_name);

// Returns the table called `name`. Throws StatusError (UNSUPPORTED) if it is missing or NULL.
using NamedTable = std::pair<std::string_view, const void*>;
void answer_query(const pgr_string* name, std::initializer_list<NamedTable> tables,
                  std::string_view plugin_name, const void** out_table);

// Returns the counter at `index`. Throws StatusError (NOT_FOUND) if there are fewer. The texts live
// as long as the plugin.
struct NamedCounter {
  const char *name, *unit;
  uint64_t value;
};
void answer_counter(std::initializer_list<NamedCounter> counters, uint32_t index, pgr_counter* out);

}  // namespace plugrad::sdk
