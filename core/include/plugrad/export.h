/// Marks the symbols that libplugrad_core.so and libplugrad_onnx.so export.
#pragma once

#define PLUGRAD_API __attribute__((visibility("default")))
