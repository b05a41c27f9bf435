/// All of plugrad's public interface.
#pragma once

#include "plugrad/conv.h"
#include "plugrad/data.h"
#include "plugrad/device.h"
#include "plugrad/dtype.h"
#include "plugrad/error.h"
#include "plugrad/function.h"
#include "plugrad/functional.h"
#include "plugrad/kernel.h"
#include "plugrad/linalg.h"
#include "plugrad/loss.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"
#include "plugrad/progress.h"
#include "plugrad/shape.h"
#include "plugrad/tensor.h"
#include "plugrad/window.h"
