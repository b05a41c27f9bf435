// SHA-256, so that any tool can recompute a report's digest.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <stdexcept>

#include "conformance/report/report.h"

namespace plugrad::conformance {

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("libcrypto cannot compute SHA-256");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace plugrad::conformance
