// Replaces the plugin's own choice: command buffers on a CPU's driver too.
namespace plugrad::opencl {

bool prefers_command_buffers(bool) {
  return true;
}

}  // namespace plugrad::opencl
