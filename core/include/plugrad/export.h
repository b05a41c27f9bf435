/// Marks the symbols that libplugrad_core.so exports.
#pragma once

#define PLUGRAD_API __attribute__((visibility("default")))
