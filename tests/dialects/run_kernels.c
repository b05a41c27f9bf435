/* run_kernels INPUT OUTPUT: calls each kernel of the table `kernels` in a generated file with its
   buffers from INPUT, and writes the resulting buffers. All numbers in INPUT have 64 bits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*kernel)(void* const* buffers, const uint64_t* scalars, uint64_t begin, uint64_t end);
extern const kernel kernels[];
extern const unsigned kernel_count;

static uint64_t read_number(FILE* file) {
  uint64_t number = 0;
  if (fread(&number, sizeof number, 1, file) != 1) exit(3);
  return number;
}

static void run(kernel kernel, FILE* in, FILE* out) {
  void* buffers[64];
  uint64_t bytes[64], scalars[8];
  const uint64_t groups = read_number(in), scalar_count = read_number(in), count = read_number(in);
  uint64_t i;
  for (i = 0; i < scalar_count; ++i) scalars[i] = read_number(in);
  for (i = 0; i < count; ++i) {
    bytes[i] = read_number(in);
    buffers[i] = aligned_alloc(64, (bytes[i] + 63) / 64 * 64);
    if (!buffers[i] || fread(buffers[i], 1, bytes[i], in) != bytes[i]) exit(4);
  }
  kernel(buffers, scalars, 0, groups);
  for (i = 0; i < count; ++i) {
    if (fwrite(buffers[i], 1, bytes[i], out) != bytes[i]) exit(5);
    free(buffers[i]);
  }
}

int main(int argc, char** argv) {
  FILE *in = fopen(argv[argc - 2], "rb"), *out = fopen(argv[argc - 1], "wb");
  unsigned i;
  if (!in || !out) return 2;
  for (i = 0; i < kernel_count; ++i) run(kernels[i], in, out);
  return fclose(out) == 0 ? 0 : 6;
}
