/// What of libplugrad_core.so a program may link to.
#pragma once

#define PLUGRAD_API __attribute__((visibility("default")))
