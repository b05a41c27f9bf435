"""The functions of Tensor and of the module, each with arguments and the expected values."""
