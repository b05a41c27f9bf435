/* Stands for the driver of the faulty plugin. */
#include <stdio.h>

#include "faulty.h"

__attribute__((visibility("default"))) void faulty_driver_says(void) {
  printf("said by %s\n", "a driver");
  fprintf(stderr, "error: XDG_RUNTIME_DIR is invalid or not set in the environment.\n");
}
