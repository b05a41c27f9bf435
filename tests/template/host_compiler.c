/* host_compiler CC [FLAG…]: compiles an empty function by pgr_cc_compile; prints the identity and
 * the size of the library. */
#define _GNU_SOURCE
#include "plugrad/sdk/c_host_compiler.h"

int main(int argc, char** argv) {
  static const char text[] = "int nothing(void) { return 0; }\n";
  char identity[1024], *library = NULL;
  const char* const* flags = (const char* const*)argv + 2;
  uint64_t size = 0;
  pgr_compile_desc desc;
  pgr_status status;
  if (argc < 2) return 2;
  PGR_INIT(desc, COMPILE_DESC);
  desc.input = text;
  desc.input_bytes = sizeof text - 1;
  pgr_cc_identity(argv[1], flags, identity, sizeof identity);
  status = pgr_cc_compile(argv[1], &desc, flags, 0, &library, &size, NULL, NULL);
  printf("%s\n%u %lu\n", identity, (unsigned)status, (unsigned long)size);
  free(library);
  return status != PGR_STATUS_OK;
}
