// Serves one page over HTTP on the loopback interface.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace plugrad::tools {

/// Serves `page` at http://127.0.0.1:PORT/TOKEN/ until SIGINT or SIGTERM; TOKEN is random. Port 0:
/// any free port. Calls `ready` with the address once requests are answered. Any other path is not
/// found; other methods and other hosts than 127.0.0.1 and localhost are refused.
/// Errors: User, if the port is taken.
void serve_page(const std::string& page, uint16_t port,
                const std::function<void(const std::string& address)>& ready);

}  // namespace plugrad::tools
