/* Prints the size of every struct and the offset and size of every field. Exits with 1 if
   layout_fields.h lacks a field or a struct has padding. */
#include <stdio.h>
#include <string.h>

#include "layout_fields.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"

struct row {
  const char *type, *field; /* field NULL: the struct itself */
  size_t offset, size;
};

#define STRUCT_ROW(type) {#type, NULL, 0, sizeof(type)},
#define FIELD_ROW(type, field) {#type, #field, offsetof(type, field), sizeof(((type*)0)->field)},
static const struct row rows[] = {PGR_LAYOUT(STRUCT_ROW, FIELD_ROW)};

#define ROW_COUNT (sizeof rows / sizeof rows[0])

static int complain(const struct row* row, const char* what) {
  fprintf(stderr, "%s.%s: %s\n", row->type, row->field ? row->field : "", what);
  return 1;
}

/* The fields are contiguous and fill the struct: none is missing, and there is no padding. */
static int check_contiguous(void) {
  size_t i, end = 0, size = 0;
  int bad = 0;
  for (i = 0; i < ROW_COUNT; ++i) {
    if (!rows[i].field) {
      if (end != size) bad |= complain(&rows[i - 1], "the struct goes on behind its last field");
      if (rows[i].size % 8) bad |= complain(&rows[i], "the size is not a multiple of 8");
      end = 0;
      size = rows[i].size;
      continue;
    }
    if (rows[i].offset != end)
      bad |= complain(&rows[i], "does not begin where the field before ends");
    end = rows[i].offset + rows[i].size;
  }
  if (end != size)
    bad |= complain(&rows[ROW_COUNT - 1], "the struct goes on behind its last field");
  return bad;
}

#define NUMBER_ROW(NAME, type, number) {#type, number, sizeof(type)},
static const struct {
  const char* type;
  int number;
  size_t size;
} numbers[] = {PGR_STRUCTS(NUMBER_ROW)};

/* Every struct that begins with struct_size has a number, except the common header. */
static int check_numbers(void) {
  size_t i, n;
  int bad = 0;
  for (i = 1; i < ROW_COUNT; ++i) {
    int found = strcmp(rows[i].type, "pgr_struct_header") == 0;
    if (!rows[i].field || strcmp(rows[i].field, "struct_size") != 0) continue;
    if (rows[i].offset != 0) bad |= complain(&rows[i], "is not the first field");
    for (n = 0; n < sizeof numbers / sizeof numbers[0]; ++n)
      if (strcmp(numbers[n].type, rows[i].type) == 0) found = 1;
    if (!found) bad |= complain(&rows[i], "the struct has no number in PGR_STRUCTS");
  }
  return bad;
}

int main(void) {
  size_t i;
  for (i = 0; i < ROW_COUNT; ++i) {
    if (rows[i].field)
      printf("  %s %lu %lu\n", rows[i].field, (unsigned long)rows[i].offset,
             (unsigned long)rows[i].size);
    else
      printf("%s %lu\n", rows[i].type, (unsigned long)rows[i].size);
  }
  for (i = 0; i < sizeof numbers / sizeof numbers[0]; ++i)
    printf("number %s %d\n", numbers[i].type, numbers[i].number);
  return check_contiguous() | check_numbers();
}
